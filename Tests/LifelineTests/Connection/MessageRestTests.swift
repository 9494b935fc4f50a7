import LifelineCore
import LifelineTransport
import Testing

@testable import Lifeline

/// Tasks that alternate in taking messages lose none, and no task waits while there is a message.
@Suite(.timeLimit(.minutes(1))) struct MessageRestTests {
    private let queue = BatchQueue<Int>(marks: WaterMarks(low: 10, high: 1000))
    private let rest = MessageRest<Int>()

    private func next() async throws -> Int? {
        try await QueueSource(queue: queue, rest: rest).next(isolation: nil)
    }

    private func nextBatch() async throws -> [Int]? {
        try await QueueSource(queue: queue, rest: rest).nextBatch(isolation: nil)
    }

    private func receive(_ elements: [Int]) {
        _ = queue.receive(elements, cost: elements.count)
    }

    @Test func theRestComesBeforeTheNextBatch() async throws {
        receive([1, 2, 3])
        receive([4, 5])
        #expect(try await next() == 1)
        #expect(try await nextBatch() == [2, 3])
        #expect(try await next() == 4)
        #expect(queue.takeBatch(after: rest) {} == [5])
        #expect(queue.takeBatch(after: rest) {} == [])
        receive([6])
        #expect(try await next() == 6)
    }

    @Test(arguments: [nil, ConnectionError(code: .ioError, message: "")])
    func theRestComesBeforeTheEnd(error: ConnectionError?) async throws {
        receive([1, 2, 3])
        #expect(try await next() == 1)
        queue.finish(throwing: error)
        #expect(try await next() == 2)
        #expect(try await nextBatch() == [3])
        if error == nil {
            #expect(try await next() == nil)
            #expect(try await nextBatch() == nil)
        } else {
            await #expect(throws: ConnectionError.self) { try await next() }
            await #expect(throws: ConnectionError.self) { try await nextBatch() }
        }
    }

    @Test func aCancelledTaskLeavesTheRest() async throws {
        receive([1, 2])
        #expect(try await next() == 1)
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await #expect(throws: CancellationError.self) { try await next() }
            await #expect(throws: CancellationError.self) { try await nextBatch() }
        }
        await cancelled.value
        #expect(try await next() == 2)
    }

    /// The first task gets a batch and is cancelled before it takes a message of it, while the second task begins.
    @Test func theNextTaskGetsTheBatchOfACancelledOne() async throws {
        receive([1, 2])
        let cancelled = Task {
            try await QueueSource(queue: queue, rest: rest, cancelsOnceFilled: true).next(isolation: nil)
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(try await next() == 1)
        #expect(try await nextBatch() == [2])
    }

    @Test func tasksThatRelieveEachOtherLoseNothing() async throws {
        for round in 0..<1000 {
            let queue = BatchQueue<Int>(marks: WaterMarks(low: 10, high: 1000))
            let source = QueueSource(queue: queue, rest: MessageRest())
            let (taken, continuation) = AsyncStream<Int>.makeStream()
            let loop: @Sendable () async throws -> Void = {
                while let next = try await source.next(isolation: nil) { continuation.yield(next) }
            }
            let first = Task { try await loop() }
            for _ in 0..<(round % 40) { await Task.yield() }
            let producer = Task { _ = queue.receive([1, 2], cost: 2) }
            for _ in 0..<(round % 3) { await Task.yield() }
            first.cancel()
            let second = Task { try await persist(loop) }
            await producer.value
            _ = await first.result
            // The queue does not end before this check, because its end would wake a task that waits in vain.
            var numbers = taken.makeAsyncIterator()
            // The tasks may report their messages in either order.
            let both = await [numbers.next(), numbers.next()]
            try #require(Set(both) == [1, 2], "round \(round)")
            queue.finish(throwing: nil)
            try await second.value
        }
    }
}

/// Runs a loop until it is not refused: one that begins while another one still waits is.
private func persist(_ loop: @Sendable () async throws -> Void) async throws {
    while true {
        do {
            return try await loop()
        } catch let error as ConnectionError where error.code == .concurrentIteration {
            await Task.yield()
        }
    }
}

private struct QueueSource: MessageSource {
    let queue: BatchQueue<Int>
    let rest: MessageRest<Int>
    /// Cancels the task that has just filled the rest.
    var cancelsOnceFilled = false

    func fill() -> Bool {
        let isFilled = queue.fill(rest) {}
        if isFilled, cancelsOnceFilled { withUnsafeCurrentTask { $0?.cancel() } }
        return isFilled
    }

    func takeBatch() -> [Int] { queue.takeBatch(after: rest) {} }

    nonisolated(nonsending) func wait() async throws -> Bool { try await queue.untyped.wait(besides: rest) }
}
