import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// Errors before there is a connection.
@Suite(.timeLimit(.minutes(1))) struct ConnectingTests {
    @Test func refused() async throws {
        let port = try TestPort.next()
        let error = await connectionError {
            try await withTestConnection(to: .tcp(host: "127.0.0.1", port: port)) { _ in }
        }
        #expect(error?.code == .connectFailed)
        #expect(error?.message.contains("127.0.0.1") == true)
        #expect(error?.cause != nil)
    }

    @Test func unknownHost() async {
        var configuration = ConnectionConfiguration()
        // The name service may take long to answer that the name does not exist.
        configuration.connectTimeout = .seconds(50)
        // RFC 6761 keeps .invalid from ever existing.
        let endpoint = Endpoint.tcp(host: "nowhere.invalid", port: 1)
        let error = await connectionError {
            try await withTestConnection(to: endpoint, configuration: configuration) { _ in }
        }
        #expect(error?.code == .connectFailed)
        #expect(error?.message.contains("not found") == true)
    }

    @Test func timeout() async throws {
        // A full backlog: the kernel drops further SYNs, and the attempt hangs.
        let listener = try await RawSocket.listen(backlog: 0)
        let waiting = try await RawSocket.connect(toPort: listener.port)
        var configuration = ConnectionConfiguration()
        configuration.connectTimeout = .milliseconds(50)
        let error = await connectionError {
            try await withTestConnection(
                to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
                configuration: configuration
            ) { _ in }
        }
        #expect(error?.code == .connectTimeout)
        #expect(error?.message.contains("0.05 seconds") == true)
        withExtendedLifetime(waiting) {}
    }

    @Test func cancelled() async throws {
        let listener = try await RawSocket.listen(backlog: 0)
        let waiting = try await RawSocket.connect(toPort: listener.port)
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: UInt16(listener.port))
        let task = Task { try await withTestConnection(to: endpoint) { _ in } }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        withExtendedLifetime(waiting) {}
    }

    @Test func noUnixSocket() async throws {
        try await withTemporaryPath { path in
            let error = await connectionError { try await withTestConnection(to: .unix(path: path)) { _ in } }
            #expect(error?.code == .connectFailed)
        }
    }

    @Test(arguments: [107, 108])
    func unixPathLength(length: Int) async throws {
        try await withTemporaryPath { path in
            let long = path + String(repeating: "x", count: length - path.utf8.count)
            let endpoint = Endpoint.unix(path: long)
            let connecting = await connectionError { try await withTestConnection(to: endpoint) { _ in } }
            let listening = await connectionError { try await withTestServer(on: endpoint, handler: echo) { _ in } }
            if length == 107 {
                #expect(connecting?.code == .connectFailed)
                #expect(listening == nil)
            } else {
                #expect(connecting?.code == .unixSocketPathTooLong)
                #expect(listening?.code == .unixSocketPathTooLong)
            }
        }
    }
}

/// Errors before a server listens.
@Suite(.timeLimit(.minutes(1))) struct ListeningTests {
    @Test func portInUse() async throws {
        try await withTestServer(handler: echo) { server in
            let endpoint = try await server.boundEndpoint
            let error = await connectionError { try await withTestServer(on: endpoint, handler: echo) { _ in } }
            #expect(error?.code == .addressInUse)
            #expect(error?.message.contains("\(endpoint)") == true)
        }
    }

    @Test func portCanBeUsedAgainAtOnce() async throws {
        let port = try TestPort.next()
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: port)
        try await withTestServer(on: endpoint, handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint) { _ = try await roundTrip(TestMessage(), on: $0) }
        }
        try await TestPort.waitUntilFree(port)
        let boundEndpoint = try await withTestServer(on: endpoint, handler: echo) { try await $0.boundEndpoint }
        #expect(boundEndpoint == endpoint)
    }

    @Test func foreignAddress() async {
        // RFC 5737's documentation addresses are on no machine.
        let error = await connectionError {
            try await withTestServer(on: .tcp(host: "192.0.2.1", port: 0), handler: echo) { _ in }
        }
        #expect(error?.code == .listenFailed)
        #expect(error?.cause != nil)
    }

    @Test func staleUnixSocketIsReplaced() async throws {
        try await withTemporaryPath { path in
            try await RawSocket.bindAndAbandon(path: path)
            #expect(fileExists(at: path))
            try await withTestServer(on: .unix(path: path), handler: echo) { server in
                try await withTestConnection(to: server.boundEndpoint) { connection in
                    let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                    #expect(reply?.number == 1)
                }
            }
        }
    }

    @Test func liveUnixSocketIsRefused() async throws {
        try await withTemporaryPath { path in
            try await withTestServer(on: .unix(path: path), handler: echo) { server in
                let error = await connectionError {
                    try await withTestServer(on: server.boundEndpoint, handler: echo) { _ in }
                }
                #expect(error?.code == .addressInUse)
                // The first server continues.
                try await withTestConnection(to: server.boundEndpoint) { connection in
                    let reply = try await roundTrip(TestMessage(number: 1), on: connection)
                    #expect(reply?.number == 1)
                }
            }
        }
    }

    @Test func ordinaryFileIsLeftAlone() async throws {
        try await withTemporaryPath { path in
            makeFile(at: path)
            let error = await connectionError {
                try await withTestServer(on: .unix(path: path), handler: echo) { _ in }
            }
            #expect(error?.code == .addressInUse)
            #expect(fileExists(at: path))
        }
    }

    @Test func fileOfALaterServerIsLeftAlone() async throws {
        try await withTemporaryPath { path in
            try await withTestServer(on: .unix(path: path), handler: echo) { _ in
                removeFile(at: path)
                try await RawSocket.bindAndAbandon(path: path)
                makeOld(path)
            }
            #expect(fileExists(at: path))
        }
    }
}
