import LifelineClientTestSupport
import LifelineCore
import LifelineProtos
import LifelineTestSupport
import Testing

@testable import Lifeline

/// Every way to break the rules that a client has: its session ends, it is told why, and nobody else notices.
@Suite(.timeLimit(.minutes(5))) struct SessionViolationTests {
    private typealias Frame = Lifeline_Session_V1_Frame

    /// Something that no client may send.
    private struct Violation: Sendable {
        let name: String
        let bytes: [UInt8]

        init(_ name: String, _ frames: Frame...) throws {
            self.name = name
            bytes = try frames.flatMap { frame in try frame.withDelimitedBytes { Array($0) } }
        }

        /// - Parameter payload: what stands in the frame.
        init(_ name: String, payload: [UInt8]) {
            self.name = name
            bytes = [UInt8](prefix: payload.count) + payload
        }

        init(_ name: String, raw bytes: [UInt8]) {
            (self.name, self.bytes) = (name, bytes)
        }
    }

    // MARK: What breaks the rules

    private static func request(
        _ sequence: UInt64 = 1,
        serial: UInt32 = 1,
        _ change: (inout Frame) -> Void = { _ in }
    ) -> Frame {
        .with {
            ($0.sequence, $0.request.serial, $0.request.method) = (sequence, serial, "t.T/Block")
            change(&$0)
        }
    }

    /// More than half of the window: a message with 32,990 bytes in a field that its type does not have.
    private static let longPayload: [UInt8] = [0x7A, 0xDE, 0x81, 0x02] + [UInt8](repeating: 0, count: 32_990)

    private static func push(_ sequence: UInt64 = 1, _ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            ($0.sequence, $0.push.method) = (sequence, "t.T/Wait")
            change(&$0)
        }
    }

    private static func response(_ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            ($0.urgentSequence, $0.response.serial) = (1, 1)
            change(&$0)
        }
    }

    private static func cancel(_ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            ($0.urgentSequence, $0.cancel.serial) = (1, 1)
            change(&$0)
        }
    }

    private static func hello(_ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            ($0.hello.minimumVersion, $0.hello.maximumVersion, $0.hello.attempt) = (1, 1, 1)
            ($0.hello.window.frames, $0.hello.window.bytes) = (100, 100_000)
            change(&$0)
        }
    }

    private static func welcome(_ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            let sixteen = [UInt8](repeating: 1, count: 16)
            ($0.welcome.version, $0.welcome.sessionID, $0.welcome.token) = (1, sixteen, sixteen)
            ($0.welcome.window.frames, $0.welcome.window.bytes) = (100, 100_000)
            change(&$0)
        }
    }

    private static func control(_ kind: Int, _ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            switch kind {
            case 0: $0.ping.number = 1
            case 1: $0.pong.number = 1
            default: $0.goodbye.message = "bye"
            }
            change(&$0)
        }
    }

    private static func entries(_ count: Int, length: Int = 1) -> [String: String] {
        [String: String](uniqueKeysWithValues: (0..<count).map { ("\($0)", String(repeating: "v", count: length)) })
    }

    /// Bytes that are no frame, wherever they come.
    private static let undecodable = [
        Violation("a length over the limit", raw: [0x81, 0x80, 0x80, 0x02]),
        Violation("the largest length", raw: [0xFF, 0xFF, 0xFF, 0xFF, 0x0F]),
        Violation("a length of more than 32 bits", raw: [0xFF, 0xFF, 0xFF, 0xFF, 0x1F]),
        Violation("a length of six bytes", raw: [0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
        Violation("an end of a group", payload: [0x0C]),
        Violation("a wire type 6", payload: [0x0E]),
        Violation("a wire type 7", payload: [0x07, 0x07, 0x07]),
        Violation("a field 0", payload: [0x00, 0x00]),
        Violation("a field number over 2^29", payload: [0x80, 0x80, 0x80, 0x80, 0x10, 0x00]),
        Violation("a number of eleven bytes", payload: [0x08] + [UInt8](repeating: 0x80, count: 10) + [0x01]),
        Violation("a number that ends early", payload: [0x08, 0x80]),
        Violation("a fixed number that ends early", payload: [0xF9, 0x0F, 0x01]),
        Violation("a push that ends early", payload: [0x3A, 0x05, 0x0A]),
        Violation("a method that is longer than its push", payload: [0x3A, 0x02, 0x0A, 0x7F]),
        Violation("a method that is no UTF-8", payload: [0x08, 0x01, 0x3A, 0x04, 0x0A, 0x02, 0xFF, 0xFE]),
        Violation("a surrogate in a method", payload: [0x08, 0x01, 0x3A, 0x05, 0x0A, 0x03, 0xED, 0xA0, 0x80]),
        Violation("metadata that are no UTF-8", payload: [0x08, 0x01, 0x3A, 0x05, 0x1A, 0x03, 0x0A, 0x01, 0xFF]),
        Violation("a group in a group without end", payload: [0xFB, 0x0F, 0xFB, 0x0F]),
        Violation("groups a hundred deep", payload: (0..<101).flatMap { _ in [0xFB, 0x0F] as [UInt8] }),
    ]

    private static func openings() throws -> [Violation] {
        undecodable
            + [
                try Violation("nothing", Frame()),
                try Violation("an acknowledgement", .with { $0.acknowledgement = 1 }),
                try Violation("a request", request()),
                try Violation("a push", push()),
                try Violation("a response", response()),
                try Violation("a cancel", cancel()),
                try Violation("a goodbye", control(2)),
                try Violation("a welcome", welcome()),
                try Violation("no window", hello { $0.hello.window = .init() }),
                try Violation("a window of no frames", hello { $0.hello.window.frames = 0 }),
                try Violation("a window of no bytes", hello { $0.hello.window.bytes = 0 }),
                try Violation("a window for no refusal", hello { $0.hello.window.bytes = 4_095 }),
                try Violation("too long a name", hello { $0.hello.name = String(repeating: "n", count: 16_385) }),
                try Violation("too many metadata", hello { $0.hello.metadata = .init(entries(129)) }),
                try Violation("too long metadata", hello { $0.hello.metadata = .init(entries(2, length: 8_200)) }),
            ]
    }

    private static func frames() throws -> [Violation] {
        let sixteen = [UInt8](repeating: 1, count: 16)
        var violations = undecodable
        violations += [
            try Violation("a second hello", hello()),
            try Violation("a hello that goes on", hello { ($0.hello.sessionID, $0.hello.token) = (sixteen, sixteen) }),
            try Violation("a hello without a window", hello { $0.hello.window = .init() }),
            try Violation("a hello with a place", hello { $0.sequence = 1 }),
            try Violation("a hello with an urgent place", hello { $0.urgentSequence = 1 }),
            try Violation("a welcome", welcome()),
            try Violation("a welcome with a place", welcome { $0.sequence = 1 }),
            try Violation("a welcome without credentials", welcome { $0.welcome.token = [] }),
            try Violation("a welcome with a short name", welcome { $0.welcome.sessionID = [1] }),
            try Violation("a welcome without a window", welcome { $0.welcome.window = .init() }),
            try Violation("an ordinary response too early", response { ($0.sequence, $0.urgentSequence) = (2, 0) }),
            try Violation("an urgent request", request(0) { $0.urgentSequence = 1 }),
            try Violation("an urgent push", push(0) { $0.urgentSequence = 1 }),
            try Violation("a request without a place", request(0)),
            try Violation("a response without a place", response { $0.urgentSequence = 0 }),
            try Violation("a cancel without a place", cancel { $0.urgentSequence = 0 }),
            try Violation("a request with two places", request { $0.urgentSequence = 1 }),
            try Violation("a push with two places", push { $0.urgentSequence = 1 }),
            try Violation("a response with two places", response { $0.sequence = 1 }),
            try Violation("a cancel with two places", cancel { $0.sequence = 1 }),
            try Violation("nothing with two places", .with { ($0.sequence, $0.urgentSequence) = (1, 1) }),
            try Violation("a serial 0", request(serial: 0)),
            try Violation("a serial twice", request(), request(2)),
            try Violation("a push with too many metadata", push { $0.push.metadata = .init(entries(129)) }),
            try Violation("a response with too many metadata", response { $0.response.metadata = .init(entries(129)) }),
            try Violation(
                "a response with too many details",
                response { $0.response.details = .init(repeating: .init(), count: 129) }
            ),
            try Violation("more frames than the window", push(), push(2), push(3), push(4), push(5)),
            try Violation("a message over the window", push { $0.push.payload = [UInt8](repeating: 0, count: 65_536) }),
            try Violation(
                "more bytes than the window",
                push { $0.push.payload = longPayload },
                push(2) { $0.push.payload = longPayload }
            ),
        ]
        for (name, kind) in [("ping", 0), ("pong", 1), ("goodbye", 2)] {
            violations += [
                try Violation("a \(name) with a place", control(kind) { $0.sequence = 1 }),
                try Violation("a \(name) with an urgent place", control(kind) { $0.urgentSequence = 1 }),
            ]
        }
        for place in [UInt64(2), 1 << 32, .max] {
            violations += [
                try Violation("a push at place \(place)", push(place)),
                try Violation("a request at place \(place)", request(place)),
                try Violation("a response at place \(place)", response { $0.urgentSequence = place }),
                try Violation("a cancel at place \(place)", cancel { $0.urgentSequence = place }),
                try Violation("an acknowledgement of \(place)", .with { $0.acknowledgement = place }),
                try Violation("an urgent acknowledgement of \(place)", .with { $0.urgentAcknowledgement = place }),
            ]
        }
        // Field 200 with 300 bytes, and a name of metadata sixty times: what no window counts.
        let unknown: [UInt8] = [0xC2, 0x0C, 0xAC, 0x02] + [UInt8](repeating: 0, count: 300)
        let (pushEntry, requestEntry): ([UInt8], [UInt8]) = ([0x1A, 0x00], [0x22, 0x00])
        for (name, tag, entry) in [("push", UInt8(0x3A), pushEntry), ("request", 0x2A, requestEntry)] {
            let repeated = (0..<60).flatMap { _ in entry }
            let serial: [UInt8] = name == "push" ? [] : [0x08, 0x01]
            for (what, fields) in [("padding", unknown), ("a name again and again", repeated)] {
                let content = serial + fields
                violations.append(
                    Violation(
                        "a \(name) with \(what)",
                        payload: [0x08, 0x01, tag] + [UInt8](prefix: content.count) + content
                    )
                )
            }
        }
        return violations
    }

    // MARK: What becomes of them

    /// A server whose handlers do not return, and another client's session, which goes on.
    private func withBystander(_ body: (SessionServer) async throws -> Void) async throws {
        let block = SessionMethod.unary("t.T/Block") { (message: TestMessage, _) in
            try await Task.sleep(for: .seconds(1_000_000))
            return message
        }
        let wait = SessionMethod.push("t.T/Wait") { (_: TestMessage, _) in
            try await Task.sleep(for: .seconds(1_000_000))
        }
        let echo = SessionMethod.unary("t.T/Echo") { (message: TestMessage, _) in message }
        let configure: (inout SessionServerConfiguration) -> Void = {
            $0.limits.maximumUnprocessedMessageCount = 4
            $0.limits.maximumUnprocessedByteCount = 64 << 10
        }
        try await withServer(block, wait, echo, configure: configure) { server, _ in
            let bystander = try await RawSessionClient.connect(to: server)
            _ = try await bystander.hello()
            let session = try #require(server.sessions.first)
            try await body(server)
            #expect(server.sessions.map(\.id) == [session.id])
            try await bystander.send(
                .with { ($0.sequence, $0.request.serial, $0.request.method) = (1, 1, "t.T/Echo") }
            )
            #expect(try await bystander.next().response.serial == 1)
        }
    }

    /// The goodbye that a client gets, before nothing more comes; nil where the connection ends without.
    private func lastWord(_ client: RawSessionClient) async throws -> Lifeline_Session_V1_Goodbye? {
        while let frame = try? await client.next() {
            if case .goodbye(let goodbye)? = frame.kind {
                #expect(try await client.isEnded())
                return goodbye
            }
        }
        return nil
    }

    @Test func inPlaceOfAHello() async throws {
        try await withBystander { server in
            for violation in try Self.openings() {
                let client = try await RawSessionClient.connect(to: server)
                try await client.socket.write(violation.bytes)
                try? client.socket.finish()
                let goodbye = try await lastWord(client)
                #expect(goodbye.map { $0.code == .violation && !$0.message.isEmpty } ?? true, "\(violation.name)")
                #expect(server.sessions.count == 1, "\(violation.name)")
            }
        }
    }

    @Test func inASession() async throws {
        let violations = try Self.frames()
        #expect(violations.count >= 75)
        try await withBystander { server in
            for violation in violations {
                let client = try await RawSessionClient.connect(to: server)
                let welcome = try await client.hello().welcome
                try await client.socket.write(violation.bytes)
                // Where bytes that were not read are left, the system may reset the connection before the goodbye is
                // read.
                let goodbye = try await lastWord(client)
                #expect(goodbye.map { $0.code == .violation && !$0.message.isEmpty } ?? true, "\(violation.name)")
                let id = try #require(SessionID(welcome.sessionID))
                try await until { server.session(id: "\(id)") == nil }
            }
        }
    }

    /// In the hello that goes on with a session in which the server sent nothing.
    @Test func inAHelloThatGoesOn() async throws {
        let progress: [(String, @Sendable (inout Lifeline_Session_V1_Hello) -> Void)] = [
            ("processed ahead", { $0.processed = 1 }), ("received ahead", { $0.received = 1 }),
            ("urgent ahead", { $0.urgentProcessed = 1 }), ("processed far ahead", { $0.processed = .max }),
            ("received far ahead", { $0.received = .max }), ("urgent far ahead", { $0.urgentProcessed = .max }),
        ]
        try await withBystander { server in
            for (name, change) in progress {
                let client = try await RawSessionClient.connect(to: server)
                let welcome = try await client.hello().welcome
                let second = try await RawSessionClient.connect(to: server)
                let answer = try await second.hello {
                    ($0.sessionID, $0.token, $0.attempt) = (welcome.sessionID, welcome.token, 2)
                    change(&$0)
                }
                #expect(answer.goodbye.code == .violation, "\(name)")
                try await until { server.sessions.count == 1 }
            }
        }
    }

    /// Whoever has the highest attempt has the session in the end, whatever the order in which the hellos come.
    @Test func fourConnectionsRaceForASession() async throws {
        try await withBystander { server in
            for _ in 0..<20 {
                let first = try await RawSessionClient.connect(to: server)
                let welcome = try await first.hello().welcome
                let answers = try await withThrowingTaskGroup(of: (UInt64, RawSessionClient, Frame).self) { group in
                    for attempt in UInt64(2)...5 {
                        group.addTask {
                            let client = try await RawSessionClient.connect(to: server)
                            let answer = try await client.hello {
                                ($0.sessionID, $0.token, $0.attempt) = (welcome.sessionID, welcome.token, attempt)
                            }
                            return (attempt, client, answer)
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }
                }
                #expect(server.sessions.count == 2)
                let last = try #require(answers.last)
                #expect(last.2.welcome.resumed && last.2.welcome.sessionID == welcome.sessionID)
                for (_, client, answer) in answers.dropLast() {
                    // It was overtaken, or had the session for a moment.
                    if case .goodbye(let goodbye)? = answer.kind {
                        #expect(goodbye.code == .replaced)
                    } else {
                        #expect(try await lastWord(client)?.code == .replaced)
                    }
                }
                try await last.1.send(
                    .with { ($0.sequence, $0.request.serial, $0.request.method) = (1, 1, "t.T/Echo") }
                )
                #expect(try await last.1.next().response.serial == 1)
                try await last.1.send(.with { $0.goodbye.code = .closed })
                try await until { server.sessions.count == 1 }
            }
        }
    }
}

extension [UInt8] {
    /// A length in front of so many bytes, below 2^14.
    fileprivate init(prefix count: Int) {
        self = count < 0x80 ? [UInt8(count)] : [UInt8(count & 0x7F) | 0x80, UInt8(count >> 7)]
    }
}
