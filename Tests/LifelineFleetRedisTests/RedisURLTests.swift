import LifelineCore
import LifelineFleetRedis
import Testing

@Suite struct RedisURLTests {
    @Test(arguments: [
        ("redis://localhost", Endpoint.tcp(host: "localhost", port: 6379), nil, 0),
        ("REDIS://localhost/", .tcp(host: "localhost", port: 6379), nil, 0),
        ("redis://10.0.0.1:7000/3", .tcp(host: "10.0.0.1", port: 7000), nil, 3),
        ("redis://[::1]:7000", .tcp(host: "::1", port: 7000), nil, 0),
        ("rediss://[fe80::1%25eth0]", .tls(host: "fe80::1%25eth0", port: 6379), nil, 0),
        (
            "rediss://:secret@redis.example/1", .tls(host: "redis.example", port: 6379),
            RedisCredentials(password: "secret"), 1
        ),
        (
            "redis://ann:p%40ss%2Fw%C3%B6rd@h:1/2", .tcp(host: "h", port: 1),
            RedisCredentials(user: "ann", password: "p@ss/wörd"), 2
        ),
        ("redis://ann:a@b/c:d@h", .tcp(host: "h", port: 6379), RedisCredentials(user: "ann", password: "a@b/c:d"), 0),
        ("redis://ann:@h", .tcp(host: "h", port: 6379), RedisCredentials(user: "ann", password: ""), 0),
    ])
    func reads(url: String, endpoint: Endpoint, credentials: RedisCredentials?, database: Int) throws {
        let configuration = try RedisConfiguration(url: url)
        #expect(configuration.endpoint == endpoint)
        #expect(configuration.credentials == credentials)
        #expect(configuration.database == database)
    }

    @Test(arguments: [
        ("localhost:6379", "has no scheme"),
        ("http://localhost", "neither redis nor rediss"),
        ("redis://", "host is missing"),
        ("redis://:6379", "host is missing"),
        ("redis://ho st", "character that no host has"),
        ("redis://::1", "needs brackets"),
        ("redis://[::1", "not closed"),
        ("redis://[::1]x", "no port"),
        ("redis://h:0", "no number from 1 to 65535"),
        ("redis://h:65536", "no number from 1 to 65535"),
        ("redis://h:secret", "no number from 1 to 65535"),
        ("redis://h/secret", "no number of a database"),
        ("redis://h/-1", "no number of a database"),
        ("redis://h/1/2", "no number of a database"),
        ("redis://secret@h", "stands one word"),
        ("redis://ann:secret%4@h", "has a %"),
        ("redis://ann:secret%FF@h", "has a %"),
        ("redis://ann:secret@h:x", "no number from 1 to 65535"),
        ("redis://ann:secret@", "host is missing"),
    ])
    func refuses(url: String, reason: String) {
        let error = #expect(throws: RedisError.self) { try RedisConfiguration(url: url) }
        #expect(error?.code == .invalidURL)
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
        let isHidden = error?.description.contains("secret") == false && error?.description.contains("ann") == false
        #expect(isHidden || !url.contains("@"), "\(error?.message ?? "")")
    }

    @Test func hidesThePassword() {
        let credentials = RedisCredentials(user: "ann", password: "secret")
        var configuration = RedisConfiguration(endpoint: .tcp(host: "h", port: 1))
        configuration.credentials = credentials
        var dumped = ""
        dump(configuration, to: &dumped)
        for text in ["\(credentials)", String(reflecting: credentials), "\(configuration)", dumped] {
            #expect(text.contains("ann") && !text.contains("secret"))
        }
    }
}
