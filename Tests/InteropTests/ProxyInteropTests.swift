import Foundation
import Lifeline
import LifelineProtos
import LifelineTestSupport
import Testing

/// A chat through third-party proxies.
@Suite(.timeLimit(.minutes(2)), .serialized) struct ProxyInteropTests {
    /// More bytes than the sockets in between hold, so that all four sides sometimes wait for each other.
    private static let messages = (0..<200).map { number in
        ChatMessage.with {
            $0.id = "\(number)"
            $0.text = String(repeating: "Grüezi ", count: number * 10)
        }
    }

    private func withEchoServer(_ body: nonisolated(nonsending) (_ port: UInt16) async throws -> Void) async throws {
        try await withServer(
            listeningOn: .tcp(host: "127.0.0.1", port: 0),
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            for try await message in connection.messages { try await connection.send(message) }
        } _: { server in
            try await body(UInt16(try #require(await server.boundEndpoint.port)))
        }
    }

    private func chat(with endpoint: Endpoint, through proxy: ProxyConfiguration) async throws -> [ChatMessage] {
        var configuration = ConnectionConfiguration()
        configuration.proxy = proxy
        // The proxy's name service may take long to answer that the name does not exist.
        configuration.connectTimeout = .seconds(60)
        return try await withConnection(
            to: endpoint,
            configuration: configuration,
            receiving: ChatMessage.self,
            sending: ChatMessage.self
        ) { connection in
            #expect(connection.remoteEndpoint == endpoint)
            async let sending: Void = connection.send(contentsOf: Self.messages)
            var echoed: [ChatMessage] = []
            var iterator = connection.messages.makeAsyncIterator()
            while echoed.count < Self.messages.count, let message = try await iterator.next() { echoed.append(message) }
            try await sending
            return echoed
        }
    }

    private func error(of endpoint: Endpoint, through proxy: ProxyConfiguration) async throws -> ConnectionError {
        try await #require(throws: ConnectionError.self) { _ = try await chat(with: endpoint, through: proxy) }
    }

    @Test(arguments: ProxyProgram.allCases, [false, true])
    func carriesAChat(program: ProxyProgram, wantsCredentials: Bool) async throws {
        try await withEchoServer { server in
            try await program.runLogged(wantingCredentials: wantsCredentials) { port, log in
                let credentials = wantsCredentials ? ProxyProgram.credentials : nil
                let proxy = program.configuration(port: port, credentials: credentials)
                // By address, and by a name that the proxy resolves.
                for host in ["127.0.0.1", "localhost"] {
                    let echoed = try await chat(with: .tcp(host: host, port: server), through: proxy)
                    #expect(echoed == Self.messages)
                    // The connection went through the proxy.
                    #expect(try log().contains("\(host):\(server)"))
                }
            }
        }
    }

    @Test(arguments: ProxyProgram.allCases) func credentialsThatAreNotWantedDoNoHarm(program: ProxyProgram) async throws
    {
        try await withEchoServer { server in
            try await program.run(wantingCredentials: false) { port in
                let proxy = program.configuration(port: port, credentials: ProxyProgram.credentials)
                let echoed = try await chat(with: .tcp(host: "127.0.0.1", port: server), through: proxy)
                #expect(echoed == Self.messages)
            }
        }
    }

    @Test(arguments: ProxyProgram.allCases) func aWrongPasswordAndNoneAreTyped(program: ProxyProgram) async throws {
        try await program.run(wantingCredentials: true) { port in
            let wrong = ProxyConfiguration.Credentials(user: "ada", password: "wr0ng")
            for credentials in [wrong, nil] {
                let proxy = program.configuration(port: port, credentials: credentials)
                let error = try await error(of: .tcp(host: "127.0.0.1", port: 1), through: proxy)
                #expect(error.code == .proxyAuthenticationRequired)
                #expect(!"\(error)".contains("wr0ng"))
                let advice = credentials == nil ? "Set the proxy's credentials" : "Check user and password"
                #expect(error.message.contains(advice))
            }
        }
    }

    @Test(arguments: ProxyProgram.allCases) func anEndpointThatIsNotThere(program: ProxyProgram) async throws {
        let nobody = try TestPort.next()
        try await program.run(wantingCredentials: false) { port in
            let proxy = program.configuration(port: port, credentials: nil)
            for host in ["127.0.0.1", "nowhere.invalid"] {
                let error = try await error(of: .tcp(host: host, port: nobody), through: proxy)
                #expect(error.code == .proxyConnectFailed, "\(error)")
                #expect(error.cause is ProxyAnswer)
            }
        }
    }

    // MARK: The command

    private func send(to endpoint: String, _ arguments: [String], environment: [String]) async throws -> Program.Outcome
    {
        let lifeline = try Program.product("lifeline", []).path
        let command = environment + [lifeline, "send", "--to", endpoint] + chatMessage("Hello") + arguments
        return try await Program(URL(filePath: "/usr/bin/env"), command).outcome()
    }

    @Test(arguments: ProxyProgram.allCases) func theCommandGoesThroughIt(program: ProxyProgram) async throws {
        try await program.run(wantingCredentials: true) { port in
            let proxy = program.url(port: port, user: "ada:s3cret@")
            let ways: [(arguments: [String], environment: [String])] = [
                (["--proxy", proxy], []), ([], ["all_proxy=\(proxy)"]),
                (["--proxy", proxy], ["all_proxy=http://127.0.0.1:1"]),
                (["--no-proxy"], ["all_proxy=http://127.0.0.1:1"]),
                ([], ["all_proxy=http://127.0.0.1:1", "no_proxy=127.0.0.0/8"]),
            ]
            for way in ways {
                let output = try await receive(options: chatSchema, count: 1, format: "text") { endpoint in
                    let outcome = try await send(to: endpoint, way.arguments, environment: way.environment)
                    #expect(outcome.status == 0, "\(outcome.errorText)")
                }
                #expect(String(decoding: output, as: UTF8.self).contains("text: \"Hello\""))
            }
            // The error is reported once, and the client does not try again.
            let wrong = program.url(port: port, user: "ada:wr0ng@")
            for (arguments, environment) in [([], ["all_proxy=\(wrong)"]), (["--proxy", wrong], [])] {
                let outcome = try await send(to: "tcp://127.0.0.1:1", arguments, environment: environment)
                #expect(outcome.status == 69)
                #expect(outcome.errorText.contains("Check user and password of the proxy."))
                #expect(!outcome.errorText.contains("wr0ng"))
            }
        }
    }

    @Test func theCommandDoesNotPrintPasswords() async throws {
        let arguments = ["--proxy", "http://ada:s3cret@proxy:99999"]
        let outcome = try await send(to: "tcp://127.0.0.1:1", arguments, environment: [])
        #expect(outcome.status == 64)
        #expect(outcome.errorText.contains("is no proxy") && !outcome.errorText.contains("s3cret"))
        let environment = ["all_proxy=ftp://ada:s3cret@proxy"]
        let other = try await send(to: "tcp://127.0.0.1:1", [], environment: environment)
        #expect(other.status == 65)
        #expect(other.errorText.contains("all_proxy") && !other.errorText.contains("s3cret"))
    }
}
