import Foundation
import Lifeline
import LifelineOlderFramings
import LifelineTestSupport
import Testing

/// Our clients of the older framings with servers in Python: two implementations agree.
@Suite(.timeLimit(.minutes(2)), .serialized) struct OlderFramingsInteropTests {
    private var configuration: ClientConfiguration {
        var configuration = ClientConfiguration()
        configuration.backoff.initialDelay = .milliseconds(1)
        return configuration
    }

    private func number(_ value: UInt32, _ rest: String = "") -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) } + rest.utf8
    }

    /// The error of a request.
    private func failure<Answer>(_ request: () async throws -> Answer) async -> RequestError? {
        do {
            _ = try await request()
            return nil
        } catch {
            return error as? RequestError
        }
    }

    private func cancelledWhenAsked(
        _ request: Task<FixedHeaderResponse, any Error>,
        _ client: FixedHeaderClient
    ) async throws {
        while client.statistics.waitingCount == 0 { await Task.yield() }
        request.cancel()
        #expect(await failure { try await request.value }?.code == .cancelled)
    }

    // MARK: Fixed headers

    /// A client with its own numbering may use a serial that equals the url: both servers answer it.
    @Test func aSerialThatIsTheURL() async throws {
        let request: [UInt8] = [0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 0, 1, 9]
        let answer: [UInt8] = [0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 1, 9]
        func check(_ endpoint: Endpoint) async throws {
            let peer = try await RawSocket.connect(toPort: Int(endpoint.port ?? 0))
            try await peer.write(request)
            #expect(try await peer.read(answer.count) == answer)
            try peer.finish()
            #expect(try await peer.read() == [])
        }
        try await ReferenceServer.fixedHeader.run { try await check($0) }
        try await withServer(
            listeningOn: Endpoint.tcp(host: "127.0.0.1", port: 0),
            receiving: FixedHeaderRequest.self,
            sending: FixedHeaderResponse.self
        ) { connection in
            for try await request in connection.messages {
                #expect(!request.isNotification)
                try await connection.send(request.response(content: request.content))
            }
        } _: { server in
            try await check(server.boundEndpoint)
        }
    }

    @Test(arguments: [[], ["--chunk", "1"], ["--chunk", "13"]]) func fixedHeaders(arguments: [String]) async throws {
        try await ReferenceServer.fixedHeader.run(arguments) { endpoint in
            try await withFixedHeaderClient(to: endpoint, configuration: configuration) { client in
                for text in ["", "Grüezi"] {
                    let answer = try await client.request(url: 0x500, content: Array(text.utf8))
                    #expect(answer.url == 0x500 && answer.status == 0 && answer.content == Array(text.utf8))
                }
                let refusal = try await client.request(url: 0x501)
                #expect(refusal.status == 404 && !refusal.content.isEmpty)
                #expect(try await client.request(url: 0x999).status == 400)

                async let slow = client.request(url: 0x502, content: number(20, "slow"))
                #expect(try await client.request(url: 0x500, content: [1]).content == [1])
                #expect(try await slow.content == Array("slow".utf8))

                // The last one first.
                let (first, second) = (number(2, "first"), number(2, "second"))
                async let earlier = client.request(url: 0x503, content: first)
                async let later = client.request(url: 0x503, content: second)
                #expect(try await earlier.content == Array("first".utf8))
                #expect(try await later.content == Array("second".utf8))

                try await client.notify(9, content: [1])
                #expect(try await client.request(url: 0x505, content: number(7, "news")).content.isEmpty)
                var pushes = client.pushes.makeAsyncIterator()
                #expect(try await pushes.next() == .push(9, content: [1]))
                #expect(try await pushes.next() == .push(7, content: Array("news".utf8)))
            }
        }
    }

    @Test func fixedHeadersInLargeContents() async throws {
        try await ReferenceServer.fixedHeader.run { endpoint in
            try await withFixedHeaderClient(to: endpoint, configuration: configuration) { client in
                // The limit of both sides.
                let content = (0..<(4 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 7) }
                let answer = try await client.request(url: 0x500, content: content)
                #expect(answer.content == content)
                let error = await failure { try await client.request(url: 0x500, content: content + [0]) }
                #expect(error?.code == .notSent)
            }
        }
    }

    @Test func fixedHeadersTooLate() async throws {
        try await ReferenceServer.fixedHeader.run { endpoint in
            try await withFixedHeaderClient(to: endpoint, configuration: configuration) { client in
                // The timeout includes connecting, so the client connects first.
                _ = try await client.request(url: 0x500)
                // Two such requests are answered together, the last one first, and only when the second one has
                // arrived. It has to be sent within the timeout, even on a busy machine.
                let (first, second) = (number(2, "late"), number(2))
                let error = await failure {
                    try await client.request(url: 0x503, content: first, timeout: .seconds(3))
                }
                #expect(error?.code == .timedOut)
                let cancelled = Task { try await client.request(url: 0x504) }
                try await cancelledWhenAsked(cancelled, client)
                _ = try await client.request(url: 0x503, content: second)
                // Requests that are answered after the late answer.
                _ = try await client.request(url: 0x500)
                #expect(client.statistics.lateAnswerCount == 1)
                _ = try await client.request(url: 0x506)
                _ = try await client.request(url: 0x507)
                #expect(client.statistics.lateAnswerCount == 2 && client.statistics.unknownAnswerCount == 1)
            }
        }
    }

    @Test(arguments: [(0x508, "frameTooLarge"), (0x509, "truncatedFrame"), (0x50A, nil)] as [(UInt32, String?)])
    func fixedHeadersThatEndBadly(url: UInt32, cause: String?) async throws {
        try await ReferenceServer.fixedHeader.run { endpoint in
            try await withFixedHeaderClient(to: endpoint, configuration: configuration) { client in
                let error = await failure { try await client.request(url: url) }
                #expect(error?.code == .connectionLost)
                let violation = (error?.cause as? ConnectionError)?.cause as? FramingError
                #expect(violation.map { "\($0.code)" } == cause)
                // Over the next connection.
                let answer = try await client.request(url: 0x500, content: [1])
                #expect(answer.content == [1])
            }
        }
    }

    @Test func fixedHeadersHeartbeat() async throws {
        var configuration = configuration
        configuration.connection.heartbeat.interval = .milliseconds(20)
        // Long enough for a slow machine.
        configuration.connection.heartbeat.timeout = .seconds(30)
        try await ReferenceServer.fixedHeader.run { endpoint in
            try await withFixedHeaderClient(to: endpoint, configuration: configuration) { client in
                // Answered after five more pings; until then the server sends only pongs.
                _ = try await client.request(url: 0x50B, content: number(5))
                #expect(client.statistics.unknownAnswerCount == 0)
            }
        }
    }

    @Test func fixedHeadersWithoutHeartbeat() async throws {
        var configuration = configuration
        configuration.connection.heartbeat.interval = .milliseconds(20)
        configuration.connection.heartbeat.timeout = .milliseconds(50)
        // No connection lasts, and there may be many before the request is sent.
        configuration.backoff.maximumAttempts = nil
        try await ReferenceServer.fixedHeader.run(["--no-pong"]) { endpoint in
            try await withFixedHeaderClient(to: endpoint, configuration: configuration) { client in
                let error = await failure { try await client.request(url: 0x504, timeout: .seconds(60)) }
                #expect(error?.code == .connectionLost)
                #expect((error?.cause as? ConnectionError)?.code == .heartbeatTimeout)
            }
        }
    }

    // MARK: Head lines

    @Test(arguments: [[], ["--chunk", "1"], ["--chunk", "13"]]) func headLines(arguments: [String]) async throws {
        try await ReferenceServer.headLine.run(arguments) { endpoint in
            try await withHeadLineClient(to: endpoint, configuration: configuration) { client in
                for type in ["echo", "text-size", "liberties"] {
                    let answer = try await client.request(type: type, content: Array("{}\r\n".utf8))
                    #expect(answer == HeadLineMessage(type: type, content: Array("{}\r\n".utf8)))
                }
                let answer = try await client.request(type: "\"\\ü\n", answerType: "error")
                #expect(String(decoding: answer.content, as: UTF8.self) == "unknown type \"\\ü\n")
                #expect(try await client.requestAnything(type: "ping", content: [1]).type == "pong")

                try await client.notify(type: "note", content: [1])
                #expect(try await client.request(type: "push", content: [5]).content.isEmpty)
                _ = try await client.request(type: "flood", content: number(100))
                var pushes = client.pushes.makeAsyncIterator()
                #expect(try await pushes.next() == HeadLineMessage(type: "news", content: [5]))
                for count in 0..<100 { #expect(try await pushes.next()?.content == Array("\(count)".utf8)) }
            }
        }
    }

    @Test func headLinesInLargeContents() async throws {
        try await ReferenceServer.headLine.run { endpoint in
            try await withHeadLineClient(to: endpoint, configuration: configuration) { client in
                // The limit of both sides.
                let content = (0..<(4 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 7) }
                for _ in 0..<2 {
                    let answer = try await client.request(type: "echo", content: content)
                    #expect(answer.content == content)
                    let error = await failure { try await client.request(type: "echo", content: content + [0]) }
                    #expect(error?.code == .notSent)
                }
            }
        }
    }

    @Test func headLinesTooLate() async throws {
        try await ReferenceServer.headLine.run { endpoint in
            try await withHeadLineClient(to: endpoint, configuration: configuration) { client in
                // The timeout includes connecting, so the client connects first.
                _ = try await client.request(type: "echo")
                // It is answered only when there is another request. It has to be sent within the timeout, even on a
                // busy machine.
                let error = await failure {
                    try await client.request(type: "delay", content: number(.max, "late"), timeout: .seconds(3))
                }
                #expect(error?.code == .timedOut)
                let answer = try await client.request(type: "delay", content: number(0, "in time"))
                #expect(answer.content == Array("in time".utf8), "not the late one")
                #expect(client.statistics.lateAnswerCount == 1)
            }
        }
    }

    @Test(arguments: ["json", "utf8", "duplicate", "size", "long", "huge", "line", "surrogate"])
    func headLinesThatAreNone(kind: String) async throws {
        try await ReferenceServer.headLine.run { endpoint in
            try await withHeadLineClient(to: endpoint, configuration: configuration) { client in
                let error = await failure { try await client.request(type: "malformed", content: Array(kind.utf8)) }
                #expect(error?.code == .connectionLost)
                let violation = (error?.cause as? ConnectionError)?.cause as? FramingError
                let code: FramingError.Code =
                    switch kind {
                    case "long": .headTooLarge
                    case "huge": .frameTooLarge
                    default: .malformedHead
                    }
                #expect(violation?.code == code)
                let answer = try await client.request(type: "echo", content: [1])
                #expect(answer.content == [1])
            }
        }
    }

    @Test func headLinesThatEndBadly() async throws {
        try await ReferenceServer.headLine.run { endpoint in
            try await withHeadLineClient(to: endpoint, configuration: configuration) { client in
                for type in ["cut", "close"] {
                    let error = await failure { try await client.request(type: type) }
                    #expect(error?.code == .connectionLost)
                    let violation = (error?.cause as? ConnectionError)?.cause as? FramingError
                    #expect(violation?.code == (type == "cut" ? .truncatedFrame : nil))
                    let answer = try await client.request(type: "echo", content: [1])
                    #expect(answer.content == [1])
                }
            }
        }
    }
}
