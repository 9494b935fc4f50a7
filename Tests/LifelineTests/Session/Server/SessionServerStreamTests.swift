import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineWellKnownTypes
import TestProtos
import Testing

@testable import Lifeline

/// Methods with streams, against clients that send them part by part.
@Suite(.timeLimit(.minutes(1))) struct SessionServerStreamTests {
    private typealias Frame = Lifeline_Session_V1_Frame

    /// A handler's record of its end.
    private struct End: Equatable {
        let code: SessionError.Code?
        let isCancelled: Bool
    }

    private let echo = SessionMethod.unary("t.T/Echo") { (message: TestMessage, _) in message }

    /// Replies with the numbers of all messages.
    private let collect = SessionMethod.clientStream("t.T/Collect") {
        (messages: SessionMessages<TestMessage>, _) -> TestMessage in
        var numbers: [Int] = []
        for try await message in messages { numbers.append(message.number ?? -1) }
        return Self.message(numbers)
    }

    /// Sends each message back.
    private let chat = SessionMethod.bothWays("t.T/Chat") {
        (messages: SessionMessages<TestMessage>, stream: SessionStreamWriter<TestMessage>, _) in
        for try await message in messages { try await stream.send(message) }
    }

    private static func message(_ numbers: [Int]) -> TestMessage {
        TestMessage(numbers.map(String.init).joined(separator: ",").utf8)
    }

    private static func payload(_ number: Int) throws -> [UInt8] { try TestMessage(number: number).serializedBytes() }

    /// The text of an encoded message.
    private static func text(_ payload: [UInt8]) throws -> String {
        String(decoding: try TestMessage(serializedBytes: payload).payload, as: UTF8.self)
    }

    private func withClient(
        _ methods: SessionMethod...,
        interceptors: [any SessionServerInterceptor] = [],
        configure: (inout SessionServerConfiguration) -> Void = { _ in },
        _ body: (RawSessionClient, SessionServer, ManualClock) async throws -> Void
    ) async throws {
        try await withServer(methods, interceptors: interceptors, configure: configure) { server, clock in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await body(client, server, clock)
        }
    }

    /// Waits until all of the client's ordinary frames up to a place are processed.
    private func waitUntilProcessed(_ place: UInt64, by server: SessionServer) async throws {
        let session = try #require(server.sessions.first)
        try await until { session.engine.state.withLock { $0.machine.inbound.processed } >= place }
    }

    /// The next response, in either lane.
    private func nextResponse(of client: RawSessionClient) async throws -> Lifeline_Session_V1_Response {
        let frame = try await client.next()
        switch frame.kind {
        case .urgentResponse(let response)?, .response(let response)?: return response
        default: throw Unexpected(frame: frame)
        }
    }

    private struct Unexpected: Error {
        let frame: Frame
    }

    /// Expects that the session continues.
    private func expectEcho(_ client: RawSessionClient, serial: UInt32 = 1_000) async throws {
        try await client.ask("t.T/Echo", serial: serial, Self.payload(5))
        let response = try await nextResponse(of: client)
        #expect(response.serial == serial && response.status == 0)
        #expect(try Self.text(response.payload) == "5")
    }

    // MARK: Client streams

    @Test func partsComeInOrderUntilTheEnd() async throws {
        try await withClient(collect) { client, server, _ in
            try await client.ask("t.T/Collect", hasParts: true)
            for number in 1...200 { try await client.sendPart(Self.payload(number)) }
            // The name, the request and all parts are processed: the handler waits for more.
            try await waitUntilProcessed(202, by: server)
            try await client.sendPart(Self.payload(201))
            try await client.endParts()
            let frame = try await client.next()
            #expect((frame.urgentResponse.serial, frame.urgentResponse.status) == (1, 0))
            #expect(try Self.text(frame.urgentResponse.payload) == (1...201).map(String.init).joined(separator: ","))
        }
    }

    @Test func aStreamWithoutMessages() async throws {
        try await withClient(collect, chat) { client, _, _ in
            try await client.ask("t.T/Collect", serial: 1, hasParts: true)
            try await client.endParts(of: 1)
            let reply = try await client.next().urgentResponse
            #expect((reply.serial, reply.status) == (1, 0))
            #expect(try Self.text(reply.payload) == "")
            try await client.ask("t.T/Chat", serial: 2, hasParts: true)
            try await client.endParts(of: 2)
            let response = try await client.next().urgentResponse
            #expect((response.serial, response.status, response.payload) == (2, 0, []), "there were no parts")
        }
    }

    @Test func streamsSideBySide() async throws {
        try await withClient(collect) { client, _, _ in
            for serial: UInt32 in 1...10 { try await client.ask("t.T/Collect", serial: serial, hasParts: true) }
            for number in 1...20 {
                for serial: UInt32 in 1...10 {
                    try await client.sendPart(Self.payload(number * Int(serial)), of: serial)
                }
            }
            for serial: UInt32 in (1...10).reversed() {
                try await client.endParts(of: serial)
                let reply = try await client.next().urgentResponse
                #expect(reply.serial == serial)
                #expect(
                    try Self.text(reply.payload)
                        == (1...20).map { String($0 * Int(serial)) }.joined(separator: ",")
                )
            }
        }
    }

    @Test func batchesOfMessages() async throws {
        let batches = SessionMethod.clientStream("t.T/Batches") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            var numbers: [Int] = []
            for try await batch in messages.batches {
                #expect(!batch.isEmpty)
                numbers += batch.map { $0.number ?? -1 }
            }
            return Self.message(numbers)
        }
        try await withClient(batches) { client, server, _ in
            try await client.ask("t.T/Batches", hasParts: true)
            for number in 1...100 { try await client.sendPart(Self.payload(number)) }
            try await client.endParts()
            let reply = try await client.next().urgentResponse
            #expect(try Self.text(reply.payload) == (1...100).map(String.init).joined(separator: ","))
            // The name, the request, the parts and the end.
            try await waitUntilProcessed(103, by: server)
        }
    }

    /// Leaving a loop loses no messages.
    @Test func aLoopGoesOnWhereTheLastOneStopped() async throws {
        let loops = SessionMethod.clientStream("t.T/Loops") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            var numbers: [Int] = []
            for try await message in messages {
                numbers.append(message.number ?? -1)
                if numbers.count == 2 { break }
            }
            for try await batch in messages.batches { numbers += batch.map { $0.number ?? -1 } }
            for try await _ in messages { Issue.record("there is no more") }
            return Self.message(numbers)
        }
        try await withClient(loops) { client, _, _ in
            try await client.ask("t.T/Loops", hasParts: true)
            for number in 1...5 { try await client.sendPart(Self.payload(number)) }
            try await client.endParts()
            #expect(try Self.text(try await client.next().urgentResponse.payload) == "1,2,3,4,5")
        }
    }

    /// Received messages that were not taken are dropped, and so are later ones.
    @Test func aHandlerRepliesBeforeTheEnd() async throws {
        let first = SessionMethod.clientStream("t.T/First") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            for try await message in messages { return message }
            throw SessionStatus(.notFound)
        }
        try await withClient(first, echo) { client, server, _ in
            try await client.ask("t.T/First", hasParts: true)
            for number in 1...5 { try await client.sendPart(Self.payload(number)) }
            let reply = try await client.next().urgentResponse
            #expect(try Self.text(reply.payload) == "1")
            try await waitUntilProcessed(7, by: server)
            let session = try #require(server.sessions.first)
            let lateCount = session.statistics.lateMessageCount
            for number in 6...8 { try await client.sendPart(Self.payload(number)) }
            try await client.endParts()
            try await waitUntilProcessed(11, by: server)
            #expect(session.statistics.lateMessageCount == lateCount + 4)
            try await expectEcho(client)
            #expect(client.isAcknowledged(11))
        }
    }

    @Test func aHandlerThrows() async throws {
        let thrower = SessionMethod.clientStream("t.T/Throw") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            for try await message in messages where message.number == 2 { throw SessionStatus(.notFound, "gone") }
            return TestMessage()
        }
        try await withClient(thrower, echo) { client, server, _ in
            try await client.ask("t.T/Throw", hasParts: true)
            for number in 1...3 { try await client.sendPart(Self.payload(number)) }
            let response = try await client.next().urgentResponse
            #expect((response.serial, response.status) == (1, SessionStatus.Code.notFound.rawValue))
            #expect(response.message == "gone")
            try await waitUntilProcessed(5, by: server)
            try await expectEcho(client)
        }
    }

    /// The messages before the handler's current one count as processed, although it asks for no more.
    @Test func aHandlerThatWaitsHoldsBackOneMessage() async throws {
        let (third, goOn) = (Event(), Event())
        let wait = SessionMethod.clientStream("t.T/Wait") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            var count = 0
            for try await _ in messages {
                count += 1
                if count == 3 {
                    third.signal()
                    try await goOn.wait()
                }
            }
            return TestMessage(number: count)
        }
        try await withClient(wait, echo) { client, server, _ in
            try await client.ask("t.T/Wait", hasParts: true)
            let parts = try (1...5).flatMap { try Frame.part(Self.payload($0)).withDelimitedBytes { Array($0) } }
            try await client.socket.write(parts)
            try await third.wait()
            // The name, the request and two parts.
            try await waitUntilProcessed(4, by: server)
            try await expectEcho(client)
            let session = try #require(server.sessions.first)
            #expect(session.engine.state.withLock { $0.machine.inbound.processed } == 4)
            goOn.signal()
            try await client.endParts()
            #expect(try Self.text(await nextResponse(of: client).payload) == "5")
            // In addition, the name, the request and the end of the echo and of the stream.
            try await waitUntilProcessed(10, by: server)
        }
    }

    @Test func aMessageThatIsMalformed() async throws {
        try await withClient(collect, chat, echo) { client, _, _ in
            for (serial, method) in [(1, "t.T/Collect"), (2, "t.T/Chat")] as [(UInt32, String)] {
                try await client.ask(method, serial: serial, hasParts: true)
                try await client.sendPart([0xFF], of: serial)
                let response = try await client.next().urgentResponse
                #expect((response.serial, response.status) == (serial, SessionStatus.Code.invalidArgument.rawValue))
            }
            try await expectEcho(client)
        }
    }

    @Test func aMethodIsCalledInAnotherForm() async throws {
        let stream = SessionMethod.stream("t.T/Stream") {
            (_: TestMessage, _: SessionStreamWriter<TestMessage>, _) in Issue.record("it has begun")
        }
        let push = SessionMethod.push("t.T/Push") { (_: TestMessage, _) in Issue.record("it has begun") }
        try await withClient(echo, stream, push, collect, chat) { client, _, _ in
            let calls: [(String, hasParts: Bool, SessionStatus.Code)] = [
                ("t.T/Echo", true, .unimplemented), ("t.T/Stream", true, .unimplemented),
                ("t.T/Collect", false, .unimplemented), ("t.T/Chat", false, .unimplemented),
                ("t.T/Push", false, .unimplemented), ("t.T/Push", true, .unimplemented),
                ("t.T/Nothing", false, .unimplemented), ("t.T/Nothing", true, .unimplemented),
            ]
            for (index, (method, hasParts, code)) in calls.enumerated() {
                let serial = UInt32(index + 1)
                try await client.ask(method, serial: serial, hasParts: hasParts)
                if hasParts {
                    try await client.sendPart(Self.payload(1), of: serial)
                    try await client.endParts(of: serial)
                }
                let response = try await client.next().urgentResponse
                #expect((response.serial, response.status) == (serial, code.rawValue), "\(method), \(hasParts)")
            }
            try await expectEcho(client)
        }
    }

    // MARK: Ends

    /// A method that records the end of its messages.
    private func ending(_ ends: Notes<End>, _ begun: Event) -> SessionMethod {
        .clientStream("t.T/End") { (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            do {
                for try await _ in messages { begun.signal() }
                ends.add(End(code: nil, isCancelled: Task.isCancelled))
            } catch {
                // The handler's task is cancelled at about the same time.
                try? await Event().wait()
                ends.add(End(code: (error as? SessionError)?.code, isCancelled: Task.isCancelled))
            }
            return TestMessage()
        }
    }

    @Test func aClientCancels() async throws {
        let (ends, begun) = (Notes<End>(), Event())
        try await withClient(ending(ends, begun), echo) { client, _, _ in
            try await client.ask("t.T/End", hasParts: true)
            try await client.sendPart(Self.payload(1))
            try await begun.wait()
            // A message and the end follow the cancel, while the handler may still run.
            try await client.send(.with { $0.cancel.serial = 1 }, .part(Self.payload(2)), .end())
            try await until { ends.count == 1 }
            // The server sends nothing for the cancelled request.
            try await expectEcho(client)
        }
        #expect(ends.all == [End(code: .cancelled, isCancelled: true)])
    }

    @Test func theDeadlineComes() async throws {
        let (ends, begun) = (Notes<End>(), Event())
        try await withClient(ending(ends, begun), echo) { client, _, clock in
            try await client.ask("t.T/End", hasParts: true) { $0.timeoutMilliseconds = 5 }
            try await client.sendPart(Self.payload(1))
            try await begun.wait()
            clock.advance(by: .milliseconds(5))
            try await until { ends.count == 1 }
            try await client.sendPart(Self.payload(2))
            try await expectEcho(client)
        }
        #expect(ends.all == [End(code: .cancelled, isCancelled: true)])
    }

    @Test func theSessionEnds() async throws {
        let (ends, begun) = (Notes<End>(), Event())
        try await withClient(ending(ends, begun)) { client, server, _ in
            try await client.ask("t.T/End", hasParts: true)
            try await client.sendPart(Self.payload(1))
            try await begun.wait()
            try await client.send(.with { $0.goodbye.code = .closed })
            try await until { server.sessions.isEmpty && ends.count == 1 }
        }
        #expect(ends.all == [End(code: .cancelled, isCancelled: true)])
    }

    @Test func theServerIsShutDownAtOnce() async throws {
        let (ends, begun) = (Notes<End>(), Event())
        try await withClient(ending(ends, begun)) { client, server, _ in
            try await client.ask("t.T/End", hasParts: true)
            try await client.sendPart(Self.payload(1))
            try await begun.wait()
            await server.shutdown(gracePeriod: .zero)
            #expect(ends.count == 1, "it has returned")
        }
        #expect(ends.all == [End(code: .cancelled, isCancelled: true)])
    }

    /// Open calls continue within the grace period.
    @Test func theServerIsShutDownInOrder() async throws {
        try await withClient(collect, chat, configure: { $0.drainSpread = .zero }) { client, server, _ in
            try await client.ask("t.T/Collect", serial: 1, hasParts: true)
            try await client.sendPart(Self.payload(1), of: 1)
            try await client.ask("t.T/Chat", serial: 2, hasParts: true)
            try await client.sendPart(Self.payload(2), of: 2)
            #expect(try Self.text(try await client.next().responsePart.payload) == "2")
            async let down: Void = server.shutdown(gracePeriod: .seconds(100))
            #expect(try await client.next().goodbye.code == .draining)
            try await client.sendPart(Self.payload(3), of: 1)
            try await client.endParts(of: 1)
            #expect(try Self.text(try await client.next().urgentResponse.payload) == "1,3")
            try await client.sendPart(Self.payload(4), of: 2)
            try await client.endParts(of: 2)
            #expect(try Self.text(try await client.next().responsePart.payload) == "4")
            #expect(try await client.next().response.serial == 2)
            try await client.acknowledgeAll()
            try client.socket.finish()
            #expect(try await client.isEnded())
            await down
        }
    }

    /// Received parts are not taken again, and the following ones are in order.
    @Test func aStreamOutlivesItsConnection() async throws {
        try await withServer(collect) { server, _ in
            let first = try await RawSessionClient.connect(to: server)
            let welcome = try await first.hello().welcome
            try await first.ask("t.T/Collect", hasParts: true)
            for number in 1...3 { try await first.sendPart(Self.payload(number)) }
            let session = try #require(server.sessions.first)
            try await until { session.engine.state.withLock { $0.machine.inbound.received } == 5 }
            try await waitUntilProcessed(4, by: server)
            try first.socket.reset()
            let second = try await RawSessionClient.connect(to: server, methods: first.methods)
            let back = try await second.resume(welcome).welcome
            // The handler may still work on the third part.
            #expect(back.resumed && back.progress.received == 5 && back.progress.processed >= 4)
            for number in 4...5 { try await second.sendPart(Self.payload(number)) }
            try await second.endParts()
            #expect(try Self.text(try await second.next().urgentResponse.payload) == "1,2,3,4,5")
        }
    }

    // MARK: Both ways

    @Test func partsGoBothWaysSideBySide() async throws {
        try await withClient(chat) { client, _, _ in
            try await client.ask("t.T/Chat", hasParts: true)
            for number in 1...50 {
                try await client.sendPart(Self.payload(number))
                let part = try await client.next().responsePart
                #expect(part.serial == 1)
                #expect(try Self.text(part.payload) == "\(number)")
                try await client.acknowledgeAll()
            }
            try await client.endParts()
            let response = try await client.next()
            // The response is in the lane of the parts, behind them.
            #expect((response.response.serial, response.response.status, client.urgentCount) == (1, 0, 0))
        }
    }

    @Test func aHandlerThrowsBehindItsMessages() async throws {
        let half = SessionMethod.bothWays("t.T/Half") {
            (messages: SessionMessages<TestMessage>, stream: SessionStreamWriter<TestMessage>, _) in
            for try await message in messages {
                try await stream.send(message)
                throw SessionStatus(.dataLoss, "half")
            }
        }
        try await withClient(half, echo) { client, server, _ in
            try await client.ask("t.T/Half", hasParts: true)
            for number in 1...2 { try await client.sendPart(Self.payload(number)) }
            #expect(try Self.text(try await client.next().responsePart.payload) == "1")
            let response = try await client.next().response
            #expect((response.serial, response.status) == (1, SessionStatus.Code.dataLoss.rawValue))
            try await waitUntilProcessed(4, by: server)
            try await expectEcho(client)
        }
    }

    /// The handler may return before it has taken all of the client's messages, or before the client has sent them.
    @Test func aHandlerReturnsBeforeTheEnd() async throws {
        let greet = SessionMethod.bothWays("t.T/Greet") {
            (_: SessionMessages<TestMessage>, stream: SessionStreamWriter<TestMessage>, _) in
            try await stream.send(TestMessage(number: 9))
        }
        try await withClient(greet, echo) { client, _, _ in
            try await client.ask("t.T/Greet", hasParts: true)
            #expect(try Self.text(try await client.next().responsePart.payload) == "9")
            #expect(try await client.next().response.serial == 1)
            try await client.sendPart(Self.payload(1))
            try await client.endParts()
            try await expectEcho(client)
        }
    }

    @Test func messagesThatAreSentAtMostOnce() async throws {
        let (ends, begun) = (Notes<End>(), Event())
        try await withClient(collect, ending(ends, begun), echo) { client, _, _ in
            func unplaced(_ number: Int, of serial: UInt32) throws -> Frame {
                let payload = try Self.payload(number)
                return .with {
                    ($0.unplacedRequestPart.serial, $0.unplacedRequestPart.payload) = (serial, payload)
                }
            }
            try await client.ask("t.T/Collect", hasParts: true)
            try await client.sendPart(Self.payload(1))
            try await client.send(unplaced(2, of: 1))
            try await client.sendPart(Self.payload(3))
            try await client.endParts()
            #expect(try Self.text(try await client.next().urgentResponse.payload) == "1,2,3")
            // Parts behind the end, of a request without parts, of no request, and of one that has ended.
            try await client.ask("t.T/End", serial: 2, hasParts: true)
            try await client.send(.end(of: 2), unplaced(1, of: 2), unplaced(1, of: 7), unplaced(1, of: 1))
            #expect(try await client.next().urgentResponse.serial == 2)
            try await client.send(unplaced(1, of: 2))
            try await expectEcho(client)
        }
    }

    // MARK: Credit

    /// A grant is sent when half of the credit was consumed. It states the sum since the beginning of the stream.
    @Test func readMessagesAreGrantedAgain() async throws {
        let credit = 64 << 10
        try await withClient(collect, configure: { $0.limits.maximumUnreadByteCount = credit }) { client, _, _ in
            try await client.ask("t.T/Collect", hasParts: true)
            var granted = UInt64(credit)
            var used = 0
            let part = Frame.part(try TestMessage([UInt8](repeating: 0x31, count: 20_000)).serializedBytes())
            let cost = try part.serializedBytes().count + SessionSize.frameOverhead
            for _ in 1...100 {
                if used >= Int(granted) {
                    // Waits for a grant beyond the used credit.
                    while used >= Int(granted) {
                        let frame = try await client.nextFrame()
                        guard case .credit(let grant)? = frame.kind else { continue }
                        #expect((grant.method, grant.request, grant.response) == (0, 1, 0))
                        #expect(grant.bytes >= granted + UInt64(credit / 2))
                        #expect((Int(grant.bytes) - credit).isMultiple(of: cost) && Int(grant.bytes) <= used + credit)
                        granted = grant.bytes
                    }
                }
                try await client.send(part)
                used += cost
            }
            try await client.endParts()
            #expect(try await client.next().urgentResponse.status == 0)
        }
    }

    /// 8 MiB wait in one stream. This does not delay another stream, pushes or calls.
    @Test func aStreamThatIsNotReadDelaysNoOther() async throws {
        let (begun, release) = (Event(), Event())
        let slow = SessionMethod.clientStream("t.T/Slow") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            begun.signal()
            try await release.wait()
            var count = 0
            for try await message in messages { count += message.payload.count }
            return TestMessage(number: count)
        }
        let pushed = Notes<Int>()
        let push = SessionMethod.push("t.T/Push") { (message: TestMessage, _) in pushed.add(message.number ?? -1) }
        let configure: (inout SessionServerConfiguration) -> Void = {
            $0.limits.maximumUnreadByteCount = 8 << 20
            $0.limits.maximumUnprocessedByteCount = 16 << 20
        }
        try await withClient(slow, collect, push, echo, configure: configure) { client, server, _ in
            let session = try #require(server.sessions.first)
            try await client.ask("t.T/Slow", serial: 1, hasParts: true)
            try await begun.wait()
            let part = Frame.part(try TestMessage([UInt8](repeating: 7, count: 64 << 10)).serializedBytes(), of: 1)
            let cost = try part.serializedBytes().count + SessionSize.frameOverhead
            // As many parts as the credit allows: the last one may exceed it.
            let count = (8 << 20) / cost + 1
            for _ in 0..<count { try await client.send(part) }
            try await until { session.engine.state.withLock { $0.machine.inbound.unprocessedSize.frameCount } == count }
            // These messages follow all of those parts.
            try await client.ask("t.T/Collect", serial: 2, hasParts: true)
            for number in 1...1_000 { try await client.sendPart(Self.payload(number), of: 2) }
            for number in 1...100 { try await client.push("t.T/Push", Self.payload(number)) }
            try await expectEcho(client, serial: 3)
            try await client.endParts(of: 2)
            #expect(
                try Self.text(try await client.next().urgentResponse.payload)
                    == (1...1_000).map(String.init).joined(separator: ",")
            )
            try await until { pushed.count == 100 }
            #expect(pushed.all == Array(1...100))
            // They are acknowledged although the stream before them waits.
            let end = UInt64(2 + count + 2 + 1_000 + 1 + 100 + 2 + 1)
            try await until { session.engine.state.withLock { $0.machine.inbound.unprocessedSize.frameCount } == count }
            try await expectEcho(client, serial: 4)
            for place in 1...end {
                #expect(client.isAcknowledged(place) == !(UInt64(3)...UInt64(2 + count)).contains(place), "\(place)")
            }
            release.signal()
            try await client.endParts(of: 1)
            #expect(try Self.text(try await client.next().urgentResponse.payload) == "\(count << 16)")
        }
    }

    /// The same for a method's pushes, if its handler takes long.
    @Test func pushesThatAreNotHandledDelayNoOther() async throws {
        let release = Event()
        let handled = Notes<Int>()
        let slow = SessionMethod.push("t.T/Slow") { (_: TestMessage, _) in
            try await release.wait()
            handled.add(0)
        }
        let fast = SessionMethod.push("t.T/Fast") { (message: TestMessage, _) in handled.add(message.number ?? -1) }
        try await withClient(slow, fast, collect, echo) { client, _, _ in
            let payload = try TestMessage([UInt8](repeating: 7, count: 64 << 10)).serializedBytes()
            // 256 KiB in all.
            for _ in 1...4 { try await client.push("t.T/Slow", payload) }
            for number in 1...1_000 { try await client.push("t.T/Fast", Self.payload(number)) }
            try await client.ask("t.T/Collect", serial: 1, hasParts: true)
            try await client.sendPart(Self.payload(1), of: 1)
            try await client.endParts(of: 1)
            #expect(try Self.text(try await client.next().urgentResponse.payload) == "1")
            try await expectEcho(client)
            try await until { handled.count == 1_000 }
            #expect(handled.all == Array(1...1_000))
            release.signal()
            try await until { handled.count == 1_004 }
        }
    }

    /// The same in the other direction: a client that grants one stream no credit gets all the others.
    @Test func aStreamWithoutCreditDelaysNoOther() async throws {
        let cancelled = Event()
        let endless = SessionMethod.stream("t.T/Endless") {
            (_: TestMessage, stream: SessionStreamWriter<TestMessage>, _) in
            defer { cancelled.signal() }
            while true { try await stream.send(TestMessage([UInt8](repeating: 7, count: 1_000))) }
        }
        try await withServer(endless, chat, echo) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello {
                ($0.terms.windowFrames, $0.terms.windowBytes, $0.terms.credit) = (10_000, 1 << 20, 64 << 10)
            }
            let session = try #require(server.sessions.first)
            try await client.ask("t.T/Endless", serial: 1)
            var used = 0
            while used < 64 << 10 {
                let frame = try await client.next()
                #expect(frame.responsePart.serial == 1)
                used += try frame.serializedBytes().count + SessionSize.frameOverhead
            }
            // The stream's handler waits. Nothing is acknowledged, and no other message waits.
            try await until { session.engine.state.withLock { $0.machine.waitingCount } == 1 }
            for number in 1...100 { try await session.push("t.T/News", TestMessage(number: number)) }
            for number in 1...100 { #expect(try Self.text(try await client.next().push.payload) == "\(number)") }
            try await client.ask("t.T/Chat", serial: 2, hasParts: true)
            for number in 1...100 {
                try await client.sendPart(Self.payload(number), of: 2)
                let part = try await client.next().responsePart
                #expect(part.serial == 2)
                #expect(try Self.text(part.payload) == "\(number)")
            }
            try await client.endParts(of: 2)
            #expect(try await client.next().response.serial == 2)
            try await expectEcho(client)
            // A grant lets the stream continue by the granted amount.
            try await client.send(.with { ($0.credit.response, $0.credit.bytes) = (1, (64 << 10) + 5_000) })
            while used < (64 << 10) + 5_000 {
                let frame = try await client.next()
                #expect(frame.responsePart.serial == 1)
                used += try frame.serializedBytes().count + SessionSize.frameOverhead
            }
            try await client.send(.with { $0.cancel.serial = 1 })
            try await cancelled.wait()
            try await expectEcho(client, serial: 1_001)
        }
    }

    // MARK: Interceptors

    private struct Watching: SessionServerInterceptor {
        let notes: Notes<String>

        func intercept(
            _ call: SessionCall,
            session: SessionServerEnd,
            next: @escaping @Sendable (SessionCall) async throws -> SessionReply
        ) async throws -> SessionReply {
            notes.add("\(call.method) \(call.kind) \(call.payloadByteCount) \(call.metadata)")
            var call = call
            call.metadata["seen"] = "yes"
            var reply = try await next(call)
            reply.metadata["replied"] = "\(reply.payloadByteCount)"
            return reply
        }
    }

    /// Interceptors see a call once, with its kind, and without the messages of its stream.
    @Test func interceptorsSeeACall() async throws {
        let notes = Notes<String>()
        let seen = SessionMethod.clientStream("t.T/Seen") {
            (messages: SessionMessages<TestMessage>, context) -> TestMessage in
            var count = 0
            for try await _ in messages { count += 1 }
            return TestMessage("\(context.metadata["seen"] ?? "no"), \(count)".utf8)
        }
        try await withClient(seen, chat, interceptors: [Watching(notes: notes)]) { client, _, _ in
            try await client.ask("t.T/Seen", serial: 1, hasParts: true) { $0.metadata = ["a": "b"] }
            for number in 1...3 { try await client.sendPart(Self.payload(number), of: 1) }
            try await client.endParts(of: 1)
            let reply = try await client.next().urgentResponse
            #expect(try Self.text(reply.payload) == "yes, 3")
            #expect(reply.metadata["replied"] == "8")
            try await client.ask("t.T/Chat", serial: 2, hasParts: true)
            for number in 1...3 {
                try await client.sendPart(Self.payload(number), of: 2)
                #expect(try Self.text(try await client.next().responsePart.payload) == "\(number)")
            }
            try await client.endParts(of: 2)
            #expect(try await client.next().response.metadata["replied"] == "0")
        }
        #expect(notes.all == [#"t.T/Seen clientStream 0 ["a": "b"]"#, "t.T/Chat bothWays 0 [:]"])
    }
}
