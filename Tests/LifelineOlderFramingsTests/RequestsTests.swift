import Glibc
import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineOlderFramings
import LifelineTestSupport
import LifelineTransport
import Testing

/// Requests over fixed headers to a scripted peer, on a manual clock.
@Suite(.timeLimit(.minutes(1))) struct RequestsTests {
    /// Runs `body` with a client, and a listener that it connects to.
    private func withScene(
        requests: RequestConfiguration = RequestConfiguration(),
        _ body: (FixedHeaderClient, RawSocket, ManualClock) async throws -> Void
    ) async throws {
        let listener = try await RawSocket.listen()
        let clock = ManualClock()
        var configuration = ClientConfiguration()
        configuration.connection.maximumFrameLength = 1 << 20
        let client = FixedHeaderClient(
            .fixedHeader,
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: configuration,
            requests: requests,
            logger: TestLog().logger,
            environment: ClientEnvironment(
                transport: NIOTransport.shared,
                clock: clock,
                network: ManualNetwork(),
                seed: 1
            )
        )
        let running = Task { try await client.run() }
        defer { running.cancel() }
        try await body(client, listener, clock)
        running.cancel()
        // The client is released, whether or not the test has closed it.
        _ = await running.result
    }

    @Test func answersInAnyOrder() async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            async let first = client.request(url: 0x500, content: [1])
            async let second = client.request(url: 0x500, content: [2])
            var asked: [RawRequest] = []
            while asked.count < 2 { asked.append(try await peer.readRequest()) }
            #expect(Set(asked.map(\.serial)) == [0x401, 0x402])
            for request in asked.reversed() { try await peer.answer(request, content: request.content + [9]) }
            #expect(try await first.content == [1, 9])
            #expect(try await second.content == [2, 9])
            #expect(client.statistics.waitingCount == 0)
        }
    }

    @Test func aDeadlineAndALateAnswer() async throws {
        try await withScene { client, listener, clock in
            let peer = try await listener.accept()
            let late = Task { try await client.request(url: 0x500, timeout: .seconds(5)) }
            let request = try await peer.readRequest()
            let deadline = clock.now + .seconds(5)
            try await until { clock.nextWakeUp == deadline }
            clock.advance(to: deadline)
            #expect(await late.requestError?.code == .timedOut)
            try await peer.answer(request)
            try await peer.push(7)
            for try await push in client.pushes {
                #expect(push.url == 7)
                break
            }
            #expect(client.statistics.lateAnswerCount == 1)
            // The client continues.
            async let next = client.request(url: 0x500, content: [1])
            try await peer.answer(try await peer.readRequest(), content: [2])
            #expect(try await next.content == [2])
        }
    }

    @Test func withoutAConnectionItWaitsUntilItsDeadline() async throws {
        try await withScene { client, listener, clock in
            // Nobody reads its requests, because the connection is lost at once.
            var peer = try await listener.accept()
            try peer.reset()
            var events = client.events.makeAsyncIterator()
            let lost = try await events.reach(.backingOff)
            let due = try #require(lost.transition.nextAttempt)
            let early = Task { try await client.request(url: 0x500, timeout: .milliseconds(1)) }
            let patient = Task { try await client.request(url: 0x501, timeout: .seconds(20)) }
            try await until { client.statistics.waitingCount == 2 && clock.nextWakeUp ?? due < due }
            clock.advance(by: .milliseconds(1))
            #expect(await early.requestError?.code == .timedOut)
            clock.advance(to: due)
            peer = try await listener.accept()
            let request = try await peer.readRequest()
            #expect(request.url == 0x501)
            try await peer.answer(request, content: [3])
            #expect(try await patient.value.content == [3])
        }
    }

    @Test func cancelling() async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            let task = Task { try await client.request(url: 0x500) }
            let request = try await peer.readRequest()
            task.cancel()
            #expect(await task.requestError?.code == .cancelled)
            #expect(client.statistics.waitingCount == 0)
            try await peer.answer(request)
            try await peer.push(8)
            for try await push in client.pushes where push.url == 8 { break }
            #expect(client.statistics.lateAnswerCount == 1)
        }
    }

    @Test func cancelledBeforeItBegan() async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            let started = Event()
            let task = Task {
                try? await started.wait()
                return try await client.request(url: 0x500)
            }
            task.cancel()
            started.signal()
            #expect(await task.requestError?.code == .cancelled)
            async let next = client.request(url: 0x501)
            let request = try await peer.readRequest()
            #expect(request.url == 0x501, "the other was never sent")
            try await peer.answer(request)
            _ = try await next
        }
    }

    @Test func aLostConnectionFailsWhatIsInFlight() async throws {
        try await withScene { client, listener, _ in
            var peer = try await listener.accept()
            let tasks = (0..<3).map { _ in Task { try await client.request(url: 0x500) } }
            for _ in tasks { _ = try await peer.readRequest() }
            try peer.reset()
            for task in tasks {
                let error = await task.requestError
                #expect(error?.code == .connectionLost)
                #expect((error?.cause as? ConnectionError)?.code == .closedByPeer)
            }
            #expect(client.statistics.waitingCount == 0)
            client.reconnect()
            peer = try await listener.accept()
            async let next = client.request(url: 0x500)
            let request = try await peer.readRequest()
            #expect(request.serial == 0x404, "serials count on")
            try await peer.answer(request, content: [4])
            #expect(try await next.content == [4])
        }
    }

    @Test func thePeersEndFailsWhatIsInFlight() async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            let task = Task { try await client.request(url: 0x500) }
            _ = try await peer.readRequest()
            try peer.finish()
            let error = await task.requestError
            #expect(error?.code == .connectionLost)
            #expect((error?.cause as? ConnectionError)?.code == .closedByPeer)
        }
    }

    @Test(arguments: [
        ([0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 16, 0, 1], FramingError.Code.frameTooLarge),
        ([0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 9, 1], .truncatedFrame),
    ]) func aPeerThatBreaksTheRules(bytes: [UInt8], code: FramingError.Code) async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            let task = Task { try await client.request(url: 0x500) }
            _ = try await peer.readRequest()
            try await peer.write(bytes)
            if code == .truncatedFrame { try peer.finish() }
            let error = await task.requestError
            #expect(error?.code == .connectionLost)
            let cause = error?.cause as? ConnectionError
            #expect(cause?.code == .protocolViolation)
            #expect((cause?.cause as? FramingError)?.code == code)
            let failure = await #expect(throws: RawSocket.Failure.self) { try await peer.read() }
            #expect(failure?.code == ECONNRESET, "no regular end")
        }
    }

    @Test func answersThatNobodyAskedFor() async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            async let answer = client.request(url: 0x500)
            let request = try await peer.readRequest()
            var other = request
            other.serial = 0xFFFF_0000
            try await peer.answer(other)
            try await peer.answer(request, content: [1])
            #expect(try await answer.content == [1])
            #expect(client.statistics.unknownAnswerCount == 1)
        }
    }

    @Test func noMoreThanMayWait() async throws {
        var configuration = RequestConfiguration()
        configuration.maximumRequestCount = 2
        try await withScene(requests: configuration) { client, listener, _ in
            let peer = try await listener.accept()
            let tasks = (0..<2).map { _ in Task { try await client.request(url: 0x500) } }
            let requests = [try await peer.readRequest(), try await peer.readRequest()]
            let error = await #expect(throws: RequestError.self) { try await client.request(url: 0x500) }
            #expect(error?.code == .tooManyInFlight)
            for request in requests { try await peer.answer(request) }
            for task in tasks { _ = try await task.value }
            async let next = client.request(url: 0x500)
            try await peer.answer(try await peer.readRequest())
            _ = try await next
        }
    }

    @Test func requestsThatCannotBeSent() async throws {
        try await withScene { client, listener, _ in
            let tooLong = [UInt8](repeating: 0, count: 1 << 20 + 1)
            for (url, content) in [(UInt32(0x500), tooLong), (1, [])] {
                let error = await #expect(throws: RequestError.self) {
                    try await client.request(url: url, content: content)
                }
                #expect(error?.code == .notSent)
                #expect((error?.cause as? ConnectionError)?.code == .messageRefused)
                #expect((error?.cause as? ConnectionError)?.cause is FramingError)
            }
            #expect(client.statistics.waitingCount == 0)
            await client.close()
            let error = await #expect(throws: RequestError.self) { try await client.request(url: 0x500) }
            #expect(error?.code == .notSent)
            #expect((error?.cause as? ConnectionError)?.code == .closedLocally)
            withExtendedLifetime(listener) {}
        }
    }

    @Test(arguments: [0, 1, 0x401, .max] as [UInt32]) func numbersThatNotifyNobody(number: UInt32) async throws {
        try await withScene { client, listener, _ in
            let error = await connectionError { try await client.notify(number) }
            #expect(error?.code == .messageRefused)
            #expect((error?.cause as? FramingError)?.code == .invalidHead)
            let push = #expect(throws: FramingError.self) { try FixedHeaderResponse.push(number) }
            #expect(push?.code == .invalidHead)
            withExtendedLifetime(listener) {}
        }
    }

    // MARK: Pushes

    /// A server whose pushes have higher numbers: our requests never have such serials.
    @Test func aPushWithTheNumberOfARequest() async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            async let first = client.request(url: 0x402)
            let request = try await peer.readRequest()
            try await peer.push(0x402)
            try await peer.answer(request, content: [1])
            #expect(try await first.content == [1])
            async let second = client.request(url: 0x402)
            let next = try await peer.readRequest()
            #expect(next.serial == 0x403, "not the url")
            try await peer.answer(next)
            _ = try await second
            for try await push in client.pushes {
                #expect(push.isPush && push.url == 0x402)
                break
            }
        }
    }

    @Test func pushesThatWaitDoNotHoldAnswersUp() async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            for number: UInt32 in 2..<102 { try await peer.push(number, content: [UInt8](repeating: 0, count: 1000)) }
            // Together they exceed the water mark. Answers do not wait where pushes do.
            for _ in 0..<3 {
                async let answer = client.request(url: 0x500)
                try await peer.answer(
                    try await peer.readRequest(),
                    content: [UInt8](repeating: 1, count: 1 << 20)
                )
                #expect(try await answer.content.count == 1 << 20)
            }
            var expected: UInt32 = 2
            for try await push in client.pushes {
                #expect(push.url == expected)
                expected += 1
                if expected == 102 { break }
            }
        }
    }

    /// The bytes of an answer do not count for pushes that arrive with it.
    @Test func answersDoNotFillTheQueueOfPushes() async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            // The answers are more than the water mark together, the pushes far less.
            for _ in 0..<40 {
                async let answer = client.request(url: 0x500)
                let request = try await peer.readRequest()
                try await peer.answer(request, content: [UInt8](repeating: 1, count: 10_000), pushing: 7)
                #expect(try await answer.content.count == 10_000)
            }
        }
    }

    @Test func pushesThatNobodyTakesAreDropped() async throws {
        var configuration = RequestConfiguration()
        configuration.takesPushes = false
        try await withScene(requests: configuration) { client, listener, _ in
            let peer = try await listener.accept()
            async let answer = client.request(url: 0x500)
            let request = try await peer.readRequest()
            for _ in 0..<20 { try await peer.push(7, content: [UInt8](repeating: 0, count: 100_000)) }
            try await peer.answer(request)
            _ = try await answer
            #expect(client.statistics.droppedPushCount == 20)
        }
    }
}

/// A request in its wire format.
struct RawRequest: Sendable {
    var url: UInt32
    var serial: UInt32
    var content: [UInt8]
}

extension RawSocket {
    /// The client's next request, without heartbeats.
    func readRequest() async throws -> RawRequest {
        let header = try await read(12)
        try #require(header.count == 12)
        let fields = stride(from: 0, to: 12, by: 4).map { offset in
            header[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
        }
        let content = fields[2] == 0 ? [] : try await read(Int(fields[2]))
        return RawRequest(url: fields[0], serial: fields[1], content: content)
    }

    /// Answers, and pushes in the same write.
    func answer(_ request: RawRequest, content: [UInt8] = [], pushing number: UInt32? = nil) async throws {
        let answer = response([request.url, 0, request.serial], content)
        try await write(answer + (number.map { response([$0, 0, $0], []) } ?? []))
    }

    func push(_ number: UInt32, content: [UInt8] = []) async throws {
        try await write(response([number, 0, number], content))
    }

    private func response(_ fields: [UInt32], _ content: [UInt8]) -> [UInt8] {
        let header = (fields + [UInt32(content.count)]).flatMap { field in
            withUnsafeBytes(of: field.bigEndian) { Array($0) }
        }
        return header + content
    }
}

extension Task where Failure == any Error {
    /// The error of the request; nil if it succeeded.
    var requestError: RequestError? {
        get async {
            guard case .failure(let error) = await result else { return nil }
            return error as? RequestError
        }
    }
}
