import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineWellKnownTypes
import TestProtos
import Testing

@testable import Lifeline

/// Every way in which a client can break the rules: its session ends, it gets the reason, and other clients notice
/// nothing.
@Suite(.timeLimit(.minutes(5))) struct SessionViolationTests {
    private typealias Frame = Lifeline_Session_V1_Frame

    /// A frame that no client may send.
    private struct Violation: Sendable {
        let name: String
        let bytes: [UInt8]

        init(_ name: String, _ frames: Frame...) throws {
            try self.init(name, frames)
        }

        init(_ name: String, _ frames: [Frame]) throws {
            self.name = name
            bytes = try frames.flatMap { frame in try frame.withDelimitedBytes { Array($0) } }
        }

        /// - Parameter payload: the content of the frame.
        init(_ name: String, payload: [UInt8]) {
            self.name = name
            var bytes: [UInt8] = []
            FieldWriter.appendVarint(UInt64(payload.count), to: &bytes)
            self.bytes = bytes + payload
        }

        init(_ name: String, raw bytes: [UInt8]) {
            (self.name, self.bytes) = (name, bytes)
        }
    }

    // MARK: Violations

    /// Names of methods whose handlers do not return: the first one answers requests, the others take pushes and parts.
    private static let block = Frame.method(1, "t.T/Block")
    private static let wait = Frame.method(1, "t.T/Wait")
    private static let take = Frame.method(1, "t.T/Take")

    private static func request(serial: UInt32 = 1, _ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            ($0.request.serial, $0.request.method) = (serial, 1)
            change(&$0)
        }
    }

    private static let streamRequest = request { $0.request.partsFollow = true }

    /// A message that takes a little more than a number of bytes.
    private static func payload(_ byteCount: Int) -> [UInt8] {
        (try? TestMessage([UInt8](repeating: 0, count: byteCount)).serializedBytes()) ?? []
    }

    private static func push(_ method: UInt32 = 1, _ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            $0.push.method = method
            change(&$0)
        }
    }

    private static func response(_ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            $0.response.serial = 1
            change(&$0)
        }
    }

    private static func urgentResponse(_ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            $0.urgentResponse.serial = 1
            change(&$0)
        }
    }

    private static func hello(_ change: (inout Frame) -> Void = { _ in }) -> Frame {
        var frame = Frame.hello()
        change(&frame)
        return frame
    }

    private static func welcome(_ change: (inout Frame) -> Void = { _ in }) -> Frame {
        .with {
            let sixteen = [UInt8](repeating: 1, count: 16)
            ($0.welcome.version, $0.welcome.sessionID, $0.welcome.token) = (1, sixteen, sixteen)
            $0.welcome.terms = .test
            change(&$0)
        }
    }

    private static func ranges(_ numbers: [UInt64]) -> Frame {
        .with { $0.acknowledgement.ranges = .init(numbers) }
    }

    private static func entries(_ count: Int, length: Int = 1) -> [String: String] {
        [String: String](uniqueKeysWithValues: (0..<count).map { ("\($0)", String(repeating: "v", count: length)) })
    }

    /// Bytes that are not a frame at any point of a connection.
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
        Violation("a push that ends early", payload: [0x42, 0x05, 0x0A]),
        Violation("a name that is longer than its frame", payload: [0x72, 0x02, 0x12, 0x7F]),
        Violation("a name that is no UTF-8", payload: [0x72, 0x06, 0x08, 0x01, 0x12, 0x02, 0xFF, 0xFE]),
        Violation("a surrogate in a name", payload: [0x72, 0x07, 0x08, 0x01, 0x12, 0x03, 0xED, 0xA0, 0x80]),
        Violation("metadata that are no UTF-8", payload: [0x42, 0x05, 0x12, 0x03, 0x0A, 0x01, 0xFF]),
        Violation("a group in a group without end", payload: [0xFB, 0x0F, 0xFB, 0x0F]),
        Violation("groups a hundred deep", payload: (0..<101).flatMap { _ in [0xFB, 0x0F] as [UInt8] }),
        Violation("one kind twice", payload: [0x7A, 0x00, 0x7A, 0x00]),
        Violation("two kinds", payload: [0x7A, 0x00, 0x42, 0x02, 0x08, 0x01]),
        // Fields 100 and 101.
        Violation("two unknown kinds", payload: [0xA2, 0x06, 0x00, 0xAA, 0x06, 0x00]),
    ]

    private static func openings() throws -> [Violation] {
        undecodable
            + [
                try Violation("an acknowledgement", .with { $0.acknowledgement.ordinary = 1 }),
                try Violation("a credit", .with { ($0.credit.method, $0.credit.bytes) = (1, 1) }),
                try Violation("a name", block),
                try Violation("a request", request()),
                try Violation("a part", .part()),
                try Violation("an end of parts", .end()),
                try Violation("a part of a response", .with { $0.responsePart.serial = 1 }),
                try Violation("a push", push()),
                try Violation("a push without a place", .with { $0.unplacedPush.method = 1 }),
                try Violation("a response", response()),
                try Violation("an urgent response", urgentResponse()),
                try Violation("a cancel", .with { $0.cancel.serial = 1 }),
                try Violation("a blank", .with { $0.blank = .init() }),
                try Violation("a goodbye", .with { $0.goodbye.message = "bye" }),
                try Violation("a welcome", welcome()),
                Violation("an unknown kind", payload: [0xA2, 0x06, 0x00]),
                try Violation("no terms", hello { $0.hello.terms = .init() }),
                try Violation("a window of no frames", hello { $0.hello.terms.windowFrames = 0 }),
                try Violation("a window of no bytes", hello { $0.hello.terms.windowBytes = 0 }),
                try Violation("a window for no refusal", hello { $0.hello.terms.windowBytes = 4_095 }),
                try Violation("too little credit", hello { $0.hello.terms.credit = (64 << 10) - 1 }),
                try Violation("no long frames", hello { $0.hello.terms.maximumFrame = 4_095 }),
                try Violation("too long a name", hello { $0.hello.name = String(repeating: "n", count: 16_385) }),
                try Violation("too many metadata", hello { $0.hello.metadata = .init(entries(129)) }),
                try Violation("too long metadata", hello { $0.hello.metadata = .init(entries(2, length: 8_200)) }),
            ]
    }

    private static func openingsAgain() throws -> [Violation] {
        let sixteen = [UInt8](repeating: 1, count: 16)
        return [
            try Violation("a second hello", hello()),
            try Violation("a hello that goes on", hello { ($0.hello.sessionID, $0.hello.token) = (sixteen, sixteen) }),
            try Violation("a hello without terms", hello { $0.hello.terms = .init() }),
            try Violation("a welcome", welcome()),
            try Violation("a welcome without credentials", welcome { $0.welcome.token = [] }),
            try Violation("a welcome with a short name", welcome { $0.welcome.sessionID = [1] }),
            try Violation("a welcome without terms", welcome { $0.welcome.terms = .init() }),
        ]
    }

    private static func names() throws -> [Violation] {
        var names: [Frame] = []
        for number in UInt32(1)...1_025 { names.append(.method(number, "t.T/\(number)")) }
        return [
            try Violation("more names than a side may give", names),
            try Violation("a name with number 0", .method(0, "t.T/Block")),
            try Violation("a name with the next number but one", .method(2, "t.T/Block")),
            try Violation("a number twice", block, .method(1, "t.T/Other")),
            try Violation("a second number for a name", block, .method(2, "t.T/Block")),
            try Violation("an empty name", .method(1, "")),
            try Violation("too long a name of a method", .method(1, String(repeating: "n", count: 257))),
            try Violation("a push without a name", push()),
            try Violation("a push of method 0", wait, push(0)),
            try Violation("a push of the next method", wait, push(2)),
            try Violation("an unplaced push without a name", .with { $0.unplacedPush.method = 1 }),
            try Violation("a request without a name", request()),
            try Violation("a request of method 0", block, request { $0.request.method = 0 }),
            try Violation("a request of the next method", block, request { $0.request.method = 2 }),
        ]
    }

    private static func calls() throws -> [Violation] {
        [
            try Violation("a serial 0", block, request(serial: 0)),
            try Violation("a serial twice", block, request(), request()),
            try Violation("a serial twice, with parts", take, streamRequest, streamRequest),
            try Violation(
                "a payload beside parts",
                take,
                request { ($0.request.partsFollow, $0.request.payload) = (true, [0]) }
            ),
            try Violation("a part after the end", take, streamRequest, .end(), .part()),
            try Violation("a second end", take, streamRequest, .end(), .end()),
            try Violation("a part of a request without parts", block, request(), .part()),
            try Violation("an end of a request without parts", block, request(), .end()),
            try Violation("a push with too many metadata", wait, push { $0.push.metadata = .init(entries(129)) }),
            try Violation(
                "a push with too long metadata",
                wait,
                push { $0.push.metadata = .init(entries(2, length: 33_000)) }
            ),
            try Violation(
                "an unplaced push with too many metadata",
                wait,
                .with { ($0.unplacedPush.method, $0.unplacedPush.metadata) = (1, .init(entries(129))) }
            ),
            try Violation("a response with too many metadata", response { $0.response.metadata = .init(entries(129)) }),
            try Violation(
                "an urgent response with too many metadata",
                urgentResponse { $0.urgentResponse.metadata = .init(entries(129)) }
            ),
            try Violation(
                "a response with too many details",
                urgentResponse { $0.urgentResponse.details = .init(repeating: .init(), count: 129) }
            ),
        ]
    }

    private static func windows() throws -> [Violation] {
        let others = [Frame.method(2, "t.T/Wait2"), .method(3, "t.T/Wait3")]
        let parts = (1...5).map { _ in Frame.part() }
        // More than a third of the window, and more than the credit.
        let third = payload(88_000)
        return [
            try Violation("more frames than the window", [wait] + (1...5).map { _ in push() }),
            try Violation("more parts than the window", [take, streamRequest] + parts),
            try Violation("a message over the window", wait, push { $0.push.payload = payload(256 << 10) }),
            Violation("an unknown kind over the window", payload: [0x82, 0x01, 0x81, 0x80, 0x10] + payload(262_141)),
            try Violation(
                "an urgent frame over the window",
                urgentResponse { $0.urgentResponse.payload = payload(256 << 10) }
            ),
            try Violation(
                "more bytes than the window",
                [wait] + others + (1...3).map { push($0) { $0.push.payload = third } }
            ),
            try Violation("a push without credit", wait, push { $0.push.payload = third }, push()),
            try Violation("a part without credit", take, streamRequest, .part(third), .part()),
            try Violation("a credit for nothing", .with { $0.credit.bytes = 1 }),
            try Violation(
                "a credit for two things",
                .with { ($0.credit.method, $0.credit.request, $0.credit.bytes) = (1, 1, 1) }
            ),
            try Violation("a gap of nothing", ranges([0, 1])),
            try Violation("a range of nothing", ranges([1, 0])),
            try Violation("half a range", ranges([1, 1, 1])),
            try Violation("a range beyond all numbers", ranges([.max, 1])),
            try Violation("too many ranges", ranges([UInt64](repeating: 1, count: 2_050))),
            try Violation("an acknowledgement of a frame that was not sent", ranges([1, 1])),
        ]
    }

    private static func frames() throws -> [Violation] {
        var violations = undecodable
        violations += try openingsAgain() + names() + calls() + windows()
        for place in [UInt64(1), 1 << 32, .max] {
            violations += [
                try Violation("an acknowledgement of \(place)", .with { $0.acknowledgement.ordinary = place }),
                try Violation("an urgent acknowledgement of \(place)", .with { $0.acknowledgement.urgent = place }),
            ]
        }
        return violations
    }

    // MARK: Consequences

    /// A server whose handlers do not return, and another client's session, which continues.
    private func withBystander(_ body: (SessionServer) async throws -> Void) async throws {
        let block = SessionMethod.unary("t.T/Block") { (message: TestMessage, _) in
            try await Event().wait()
            return message
        }
        let take = SessionMethod.clientStream("t.T/Take") { (_: SessionMessages<TestMessage>, _) -> TestMessage in
            try await Event().wait()
            return TestMessage()
        }
        func wait(_ name: String) -> SessionMethod {
            .push(name) { (_: TestMessage, _) in try await Event().wait() }
        }
        let echo = SessionMethod.unary("t.T/Echo") { (message: TestMessage, _) in message }
        let configure: (inout SessionServerConfiguration) -> Void = {
            $0.limits.maximumUnprocessedMessageCount = 4
            $0.limits.maximumUnprocessedByteCount = 256 << 10
            $0.limits.maximumUnreadByteCount = 64 << 10
        }
        try await withServer(
            block,
            take,
            wait("t.T/Wait"),
            wait("t.T/Wait2"),
            wait("t.T/Wait3"),
            echo,
            configure: configure
        ) { server, _ in
            let bystander = try await RawSessionClient.connect(to: server)
            _ = try await bystander.hello()
            let session = try #require(server.sessions.first)
            try await body(server)
            #expect(server.sessions.map(\.id) == [session.id])
            try await bystander.ask("t.T/Echo")
            #expect(try await bystander.next().urgentResponse.serial == 1)
        }
    }

    /// The goodbye that a client gets as the last frame; nil if the connection ends without one.
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
                // If unread bytes are left, the system may reset the connection before the goodbye is read.
                let goodbye = try await lastWord(client)
                #expect(goodbye.map { $0.code == .violation && !$0.message.isEmpty } ?? true, "\(violation.name)")
                let id = try #require(SessionID(welcome.sessionID))
                try await until { server.session(id: "\(id)") == nil }
            }
        }
    }

    /// Violations in the hello that resumes a session in which the server sent nothing.
    @Test func inAHelloThatGoesOn() async throws {
        let progress: [(String, @Sendable (inout Lifeline_Session_V1_Hello) -> Void)] = [
            ("processed ahead", { $0.progress.processed = 1 }), ("received ahead", { $0.progress.received = 1 }),
            ("urgent ahead", { $0.progress.urgent = 1 }), ("processed far ahead", { $0.progress.processed = .max }),
            ("received far ahead", { $0.progress.received = .max }),
            ("urgent far ahead", { $0.progress.urgent = .max }),
        ]
        try await withBystander { server in
            for (name, change) in progress {
                let client = try await RawSessionClient.connect(to: server)
                let welcome = try await client.hello().welcome
                let second = try await RawSessionClient.connect(to: server)
                let answer = try await second.resume(welcome, change)
                #expect(answer.goodbye.code == .violation, "\(name)")
                try await until { server.sessions.count == 1 }
            }
        }
    }

    /// Violations in the hello of a client that has acknowledged the first two of four ordinary frames, the last one,
    /// and a response.
    @Test func inAHelloThatGoesBack() async throws {
        let progress: [(String, processed: UInt64, received: UInt64, urgent: UInt64)] = [
            ("all lower", 1, 1, 1), ("received lower than processed", 4, 3, 1), ("processed lower", 1, 4, 1),
            ("received lower than a range", 2, 3, 1), ("urgent lower", 4, 4, 0), ("nothing at all", 0, 0, 0),
        ]
        try await withBystander { server in
            for (name, processed, received, urgent) in progress {
                let client = try await RawSessionClient.connect(to: server)
                let welcome = try await client.hello().welcome
                let id = try #require(SessionID(welcome.sessionID))
                let session = try #require(server.session(id: "\(id)"))
                for number in 1...3 { try await session.push("t.T/News", TestMessage(number: number)) }
                for _ in 1...3 { #expect(try await client.next().push.method == 1) }
                try await client.ask("t.T/Echo")
                #expect(try await client.next().urgentResponse.serial == 1)
                // Acknowledges places up to 2, and 4.
                try await client.send(
                    .with {
                        ($0.acknowledgement.ordinary, $0.acknowledgement.urgent) = (2, 1)
                        $0.acknowledgement.ranges = [1, 1]
                    },
                    .with { $0.ping.number = 1 }
                )
                #expect(try await client.next().pong.number == 1)
                let second = try await RawSessionClient.connect(to: server)
                let answer = try await second.resume(welcome) {
                    ($0.progress.processed, $0.progress.received, $0.progress.urgent) = (processed, received, urgent)
                }
                #expect(answer.goodbye.code == .violation, "\(name)")
                await session.end(gracePeriod: .zero)
            }
        }
    }

    /// Other errors in a hello do not affect the session that it names.
    @Test func aBrokenHelloCostsItsOwnConnectionAlone() async throws {
        let changes: [(String, @Sendable (inout Lifeline_Session_V1_Hello) -> Void)] = [
            ("no terms", { $0.terms = .init() }), ("too little credit", { $0.terms.credit = 1 }),
            ("too long a name", { $0.name = String(repeating: "n", count: 16_385) }),
            ("too many metadata", { $0.metadata = .init(Self.entries(129)) }),
            ("no long frames", { $0.terms.maximumFrame = 4_095 }),
        ]
        try await withBystander { server in
            for (name, change) in changes {
                let client = try await RawSessionClient.connect(to: server)
                let welcome = try await client.hello().welcome
                let second = try await RawSessionClient.connect(to: server)
                #expect(try await second.resume(welcome, change).goodbye.code == .violation, "\(name)")
                let third = try await RawSessionClient.connect(to: server)
                #expect(try await third.resume(welcome, attempt: 3).welcome.resumed, "\(name)")
                try await third.send(.with { $0.goodbye.code = .closed })
                try await until { server.sessions.count == 1 }
            }
        }
    }

    /// Responses that a client does not acknowledge: each is short, but takes memory until it is acknowledged.
    @Test func tooManyResponsesThatAreNotAcknowledged() async throws {
        try await withBystander { server in
            let client = try await RawSessionClient.connect(to: server)
            let welcome = try await client.hello().welcome
            let id = try #require(SessionID(welcome.sessionID))
            let session = try #require(server.session(id: "\(id)"))
            try await client.name("t.T/Nothing")
            func ask(_ serials: ClosedRange<UInt32>) async throws {
                try await client.socket.write(
                    try serials.flatMap { try Self.request(serial: $0).withDelimitedBytes { Array($0) } }
                )
            }
            for start in stride(from: UInt32(1), to: 16_384, by: 1_024) { try await ask(start...start + 1_023) }
            try await until { session.statistics.keptMessageCount == 16_384 }
            try await ask(16_385...16_385)
            #expect(try await lastWord(client)?.code == .violation)
            try await until { server.sessions.count == 1 }
        }
    }

    /// In the end, the connection with the highest attempt has the session, in whatever order the hellos arrive.
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
                    // The connection was overtaken, or had the session only for a moment.
                    if case .goodbye(let goodbye)? = answer.kind {
                        #expect(goodbye.code == .replaced)
                    } else {
                        #expect(try await lastWord(client)?.code == .replaced)
                    }
                }
                try await last.1.ask("t.T/Echo")
                #expect(try await last.1.next().urgentResponse.serial == 1)
                try await last.1.send(.with { $0.goodbye.code = .closed })
                try await until { server.sessions.count == 1 }
            }
        }
    }
}
