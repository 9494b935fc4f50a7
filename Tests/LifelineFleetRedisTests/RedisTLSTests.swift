import LifelineCore
import LifelineFleetRedis
import LifelineTestSupport
import NIOCore
import Testing

@Suite(.timeLimit(.minutes(2)))
struct RedisTLSTests {
    @Test(arguments: ["127.0.0.1", "localhost", "[::1]"])
    func speaksTLSWithAnAuthorityOfItsOwn(host: String) async throws {
        try await withTLSServer { server, authority in
            var configuration = try server.configuration(url: "rediss://\(host):\(try #require(server.tlsPort))")
            configuration.tls.trust = .roots(.bytes(authority))
            let value = ByteBuffer(repeating: 7, count: 1_000_000)
            try await withRedisClient(configuration) { client in
                try await client.subscribe(to: ["a"])
                #expect(try await client.send(RedisCommand("SET", "a", .bytes(value))) == .status("OK"))
                #expect(try await client.send(RedisCommand("GET", "a")) == .bytes(value))
                try await server.restart()
                while await redisError({ _ = try await client.send(RedisCommand("PING")) }) != nil {}
            }
        }
    }

    @Test func refusesAnAuthorityThatNobodyKnows() async throws {
        try await withTLSServer { server, _ in
            let configuration = try server.configuration(url: "rediss://127.0.0.1:\(try #require(server.tlsPort))")
            try await withRedisClient(configuration) { client in
                // The first handshake may take longer than the command.
                var reason: ConnectionError?
                while reason == nil {
                    let error = await redisError {
                        _ = try await client.send(RedisCommand("PING"), timeout: .milliseconds(100))
                    }
                    #expect(error?.code == .timedOut)
                    reason = (error?.cause as? RedisError)?.cause as? ConnectionError
                }
                #expect(reason?.code == .certificateUntrusted)
            }
        }
    }

    @Test func saysWhichFileIsMissing() throws {
        var configuration = try RedisConfiguration(url: "rediss://localhost")
        configuration.tls.trust = .roots(.file("/nowhere/ca.pem"))
        let error = #expect(throws: RedisError.self) { try RedisClient(configuration) }
        #expect(error?.code == .invalidConfiguration && error?.description.contains("/nowhere/ca.pem") == true)
    }

    private func withTLSServer(
        _ body: nonisolated(nonsending) (RedisServerProcess, _ authority: [UInt8]) async throws -> Void
    ) async throws {
        let authority = try TestCertificate.authority()
        let leaf = try TestCertificate.localhost(issuedBy: authority)
        try await withRedisServer(identity: leaf) { try await body($0, authority.pem) }
    }
}
