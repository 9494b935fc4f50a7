import LifelineCore
import LifelineTestSupport
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@testable import LifelineTransport

@Suite(.timeLimit(.minutes(1))) struct LoopExecutorTests {
    private let loop = MultiThreadedEventLoopGroup.singleton.next()

    @Test func tasksAndTheirChildrenRunOnTheLoop() async {
        let loop = loop
        let task = Task(executorPreference: LoopExecutor(loop)) {
            let before = loop.inEventLoop
            async let child = loop.inEventLoop
            let isChildThere = await child
            await Task.yield()
            return [before, isChildThere, loop.inEventLoop]
        }
        #expect(await task.value == [true, true, true])
    }

    /// Tasks are woken from the loop itself, from another loop's thread and from the threads of the pool.
    @Test func everyTaskGoesOn() async {
        let executor = LoopExecutor(loop)
        let other = MultiThreadedEventLoopGroup.singleton.makeIterator().first { $0 !== loop } ?? loop
        let sum = await withTaskGroup(of: Int.self) { group in
            for number in 0..<1_000 {
                group.addTask(executorPreference: executor) {
                    await Task.yield()
                    await withCheckedContinuation { continuation in other.execute { continuation.resume() } }
                    await Task.detached {}.value
                    return number
                }
            }
            return await group.reduce(0, +)
        }
        #expect(sum == 499_500)
    }

    @Test func aTaskThatYieldsLeavesTheLoopToItsTimers() async {
        let isOver = NIOLockedValueBox(false)
        let task = Task(executorPreference: LoopExecutor(loop)) {
            var count = 0
            while !isOver.withLockedValue({ $0 }) {
                count += 1
                await Task.yield()
            }
            return count
        }
        loop.scheduleTask(in: .milliseconds(1)) { isOver.withLockedValue { $0 = true } }
        _ = await task.value
    }

    /// A task that yields, and one that waits for the loop for a short or a longer time. NIO polls no socket while
    /// something is due.
    @Test(arguments: [nil, 50, 300]) func aTaskThatGoesOnLeavesTheLoopToItsSockets(work: Int64?) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let listener = try await listenAnswering(on: NIOTransport(group: group))
        let isOver = NIOLockedValueBox(false)
        let rounds = NIOLockedValueBox(0)
        let task = Task(executorPreference: LoopExecutor(loop)) {
            while !isOver.withLockedValue({ $0 }) {
                rounds.withLockedValue { $0 += 1 }
                if let work { await wait(for: .microseconds(work), of: loop) } else { await Task.yield() }
            }
        }
        let peer = try await RawSocket.connect(toPort: listener.boundEndpoint.port ?? 0)
        let before = rounds.withLockedValue { $0 }
        try await peer.write([0x00])
        #expect(try await peer.read(1) == [0x00])
        isOver.withLockedValue { $0 = true }
        // Some polls, each after at most 50 ms. (A yield takes far less than a poll.)
        if work != nil { #expect(rounds.withLockedValue { $0 } - before < 5_000) }
        await task.value
        await listener.close()
        try await group.shutdownGracefully()
    }

    /// Keeps the loop busy for some time.
    private func wait(for time: TimeAmount, of loop: any EventLoop) async {
        await withCheckedContinuation { continuation in
            loop.execute {
                spin(for: time)
                continuation.resume()
            }
        }
    }

    /// While the loop polls its sockets by itself, tasks need not be held for it, which would delay answers.
    @Test(arguments: [true, false]) func tasksAreHeldOnlyWhereNoSocketIsRead(reading: Bool) async {
        let clock = TestClock()
        let executor = LoopExecutor(loop) { clock.now }
        executor.socketWasRead()
        await Task(executorPreference: executor) {
            for _ in 0..<1_200 {
                clock.advance(by: .microseconds(50))
                if reading { executor.socketWasRead() }
                await Task.yield()
            }
        }.value
        // One for 5 ms, of 60.
        #expect(reading ? executor.pauseCount == 0 : 10...12 ~= executor.pauseCount)
    }

    /// A read shows that the loop has polled its sockets, however long the pause has to last.
    @Test func tasksThatAPauseHoldsRunBehindARead() throws {
        let (clock, loop) = (TestClock(), EmbeddedEventLoop())
        let executor = LoopExecutor(loop) { clock.now }
        let order = NIOLockedValueBox<[Int]>([])
        func run(_ number: Int) {
            Task(executorPreference: executor) {
                order.withLockedValue { $0.append(number) }
                if number == 1 { clock.advance(by: .milliseconds(6)) }
            }
        }
        executor.readAtOnce(isAll: true) { for number in 1...3 { run(number) } }
        loop.run()
        #expect(order.withLockedValue { $0 } == [1])
        #expect(executor.pauseCount == 1)
        executor.readAtOnce(isAll: true) { run(4) }
        #expect(order.withLockedValue { $0 } == [1, 2, 3, 4])
        loop.advanceTime(by: .milliseconds(1))
        #expect(order.withLockedValue { $0 } == [1, 2, 3, 4], "none is left for the end of the pause")
    }

    /// An idle loop polls its sockets, although it finds nothing to read.
    @Test func tasksThatComeNowAndThenAreHardlyHeld() async throws {
        let clock = TestClock()
        let executor = LoopExecutor(loop) { clock.now }
        for _ in 0..<200 {
            await Task(executorPreference: executor) { clock.advance(by: .microseconds(50)) }.value
            // After the loop has found that it has nothing more to do.
            try await loop.submit { clock.advance(by: .microseconds(950)) }.get()
        }
        // One pause in 50 ms, in 200 ms; without a recognized poll, one in 5 ms.
        #expect(3...5 ~= executor.pauseCount)
    }

    /// However often the loop does other work between them.
    @Test func tasksRunInTheOrderInWhichTheyCame() async throws {
        let executor = LoopExecutor(loop)
        let order = NIOLockedValueBox<[Int]>([])
        @Sendable func add(_ numbers: Range<Int>) -> [Task<Void, Never>] {
            numbers.map { number in
                Task(executorPreference: executor) {
                    order.withLockedValue { $0.append(number) }
                    spin(for: .microseconds(50))
                }
            }
        }
        let first = try await loop.submit { add(0..<200) }.get()
        // While those run.
        let second = add(200..<400)
        for task in first + second { await task.value }
        #expect(order.withLockedValue { $0 } == Array(0..<400))
    }

    @Test func connectionsTellOfTheirReads() async throws {
        let listener = try await listenAnswering(on: NIOTransport(group: MultiThreadedEventLoopGroup.singleton))
        let peer = try await RawSocket.connect(toPort: listener.boundEndpoint.port ?? 0)
        let executor = try #require(await listener.nextConnection()?.connection.executor as? LoopExecutor)
        // For a loop that accepts connections, an accept counts, too.
        let before = executor.readCount
        for count in 1...3 {
            try await peer.write([0x00])
            #expect(try await peer.read(1) == [0x00])
            #expect(executor.readCount == before + count)
        }
        await listener.close()
    }

    /// The loop writes a task's bytes as separate work.
    @Test func theLoopWritesWhatTasksSendBeforeAllHaveRun() async throws {
        let (loop, executor) = (loop, LoopExecutor(loop))
        let wasWritten = NIOLockedValueBox(false)
        let places = try await loop.submit {
            (0..<40).map { number in
                Task(executorPreference: executor) {
                    if number == 0 { loop.execute { wasWritten.withLockedValue { $0 = true } } }
                    spin(for: .microseconds(50))
                    return wasWritten.withLockedValue { $0 }
                }
            }
        }.get()
        #expect(await places.first?.value == false)
        #expect(await places.last?.value == true)
    }

    /// A waiting task wakes up while the others are handled.
    @Test func theLoopWritesSoonerBehindARead() async throws {
        #expect(try await taskCountBeforeWrite(reading: true) == 3)
        #expect(try await taskCountBeforeWrite(reading: false) == 15)
    }

    /// How many tasks of 10 µs each run before the loop writes the bytes of the first.
    private func taskCountBeforeWrite(reading: Bool) async throws -> Int {
        let clock = TestClock()
        let (loop, executor) = (loop, LoopExecutor(loop) { clock.now })
        let count = NIOLockedValueBox((run: 0, beforeWrite: 0))
        let writer = try await loop.submit {
            WritingConnection { count.withLockedValue { $0.beforeWrite = $0.run } }.bound(to: loop)
        }.get()
        // Otherwise, tasks would be held, because the loop may not have polled its sockets for long.
        executor.socketWasRead()
        await Task(executorPreference: executor) {}.value
        let tasks = try await loop.submit {
            var tasks: [Task<Void, Never>] = []
            let begin = {
                tasks = (0..<40).map { number in
                    Task(executorPreference: executor) {
                        if number == 0 { executor.flush(writer) }
                        count.withLockedValue { $0.run += 1 }
                        clock.advance(by: .microseconds(10))
                    }
                }
            }
            if reading { executor.readAtOnce(isAll: true, begin) } else { begin() }
            return tasks
        }.get()
        for task in tasks { await task.value }
        return count.withLockedValue { $0.beforeWrite }
    }

    /// The loop polls its sockets when it has nothing else to do, so requested work must not pile up.
    @Test func readsThatLeaveTasksAskTheLoopOnce() async throws {
        let clock = TestClock()
        let (loop, executor) = (loop, LoopExecutor(loop) { clock.now })
        let isOver = NIOLockedValueBox(false)
        let steps = NIOLockedValueBox(0)
        let task = Task(executorPreference: executor) {
            while !isOver.withLockedValue({ $0 }) {
                clock.advance(by: .microseconds(50))
                steps.withLockedValue { $0 += 1 }
                await Task.yield()
            }
        }
        let stepsBehindReads = await withCheckedContinuation { continuation in
            loop.execute {
                for _ in 0..<20 { executor.readAtOnce(isAll: true) {} }
                let before = steps.withLockedValue { $0 }
                loop.execute { continuation.resume(returning: steps.withLockedValue { $0 } - before) }
            }
        }
        isOver.withLockedValue { $0 = true }
        await task.value
        // As many tasks as take 100 µs, and one more.
        #expect(1...3 ~= stepsBehindReads)
    }

    @Test func tasksWokenByAReadRunDuringItAndThenTheirBytesAreWritten() async throws {
        let (loop, executor) = (loop, LoopExecutor(loop))
        let steps = NIOLockedValueBox<[String]>([])
        @Sendable func note(_ step: String) { steps.withLockedValue { $0.append(step) } }
        let task = try await loop.submit {
            let writer = WritingConnection { note("written") }.bound(to: loop)
            var task: Task<Void, Never>?
            executor.readAtOnce(isAll: true) {
                executor.flush(writer)
                // A read within another one, as when NIO reads the remaining bytes after a failed write.
                executor.readAtOnce(isAll: true) {}
                task = Task(executorPreference: executor) { note("run") }
                note("received")
            }
            note("read")
            return task
        }.get()
        await task?.value
        #expect(steps.withLockedValue { $0 } == ["received", "run", "written", "read"])
    }

    /// After all tasks of a slice, and before connections write: also at its end, and before a pause.
    @Test(arguments: [0, 1, 2, 3]) func bytesOfTasksAreOfferedBeforeAConnectionWrites(slices: Int) async throws {
        let clock = TestClock()
        let (loop, executor) = (loop, LoopExecutor(loop) { clock.now })
        // The time of the first task, in µs. The last value is longer than the loop may run without a poll.
        let durations: [Int64] = [1, 30, 200, 6_000]
        let steps = NIOLockedValueBox<[String]>([])
        @Sendable func note(_ step: String) { steps.withLockedValue { $0.append(step) } }
        let writer = try await loop.submit { WritingConnection { note("written") }.bound(to: loop) }.get()
        let source = OfferingSource {
            note("offered")
            executor.flush(writer)
        }
        #expect(!executor.offerLater(source))
        let tasks = try await loop.submit {
            var tasks: [Task<Void, Never>] = []
            executor.readAtOnce(isAll: true) {
                tasks = (0..<2).map { number in
                    Task(executorPreference: executor) {
                        note("run")
                        guard number == 0 else { return }
                        #expect(executor.offerLater(source))
                        clock.advance(by: .microseconds(durations[slices]))
                    }
                }
            }
            return tasks
        }.get()
        for task in tasks { await task.value }
        // After the loop's remaining work.
        try await loop.submit {}.get()
        let all = ["run", "run", "offered", "written"]
        #expect(steps.withLockedValue { $0 } == (slices == 0 ? all : ["run", "offered", "written", "run"]))
        #expect(executor.pauseCount == (slices == 3 ? 1 : 0))
    }

    /// At the end of a slice, and before a pause: when a write fails, NIO reads the remaining bytes at once.
    @Test(arguments: [200, 6_000]) func noTaskRunsWithinAWrite(microseconds: Int64) async throws {
        let clock = TestClock()
        let (loop, executor) = (loop, LoopExecutor(loop) { clock.now })
        let steps = NIOLockedValueBox<[String]>([])
        @Sendable func note(_ step: String) { steps.withLockedValue { $0.append(step) } }
        let tasks = try await loop.submit {
            let writer = WritingConnection {
                note("write")
                executor.readAtOnce(isAll: true) { note("read") }
                note("written")
            }.bound(to: loop)
            var tasks: [Task<Void, Never>] = []
            executor.readAtOnce(isAll: true) {
                executor.flush(writer)
                tasks = (0..<2).map { _ in
                    Task(executorPreference: executor) {
                        note("run")
                        clock.advance(by: .microseconds(microseconds))
                    }
                }
            }
            return tasks
        }.get()
        for task in tasks { await task.value }
        #expect(steps.withLockedValue { $0 } == ["run", "write", "read", "written", "run"])
    }

    /// A task that waits for its offer, and then offers more, like one that pushes at most once.
    @Test func repeatedOffersAreWrittenAfterASlice() async throws {
        let clock = TestClock()
        let (loop, executor) = (loop, LoopExecutor(loop) { clock.now })
        let count = NIOLockedValueBox((offered: 0, beforeWrite: 0))
        let writer = try await loop.submit {
            WritingConnection { count.withLockedValue { $0.beforeWrite = $0.offered } }.bound(to: loop)
        }.get()
        let next = NIOLockedValueBox<CheckedContinuation<Void, Never>?>(nil)
        let source = OfferingSource {
            count.withLockedValue { $0.offered += 1 }
            executor.flush(writer)
            next.withLockedValue { $0.take() }?.resume()
        }
        executor.socketWasRead()
        await Task(executorPreference: executor) {}.value
        // Its slice is over.
        try await loop.submit {}.get()
        await Task(executorPreference: executor) {
            while count.withLockedValue({ $0.beforeWrite == 0 && $0.offered < 100 }) {
                clock.advance(by: .microseconds(10))
                await withCheckedContinuation { continuation in
                    next.withLockedValue { $0 = continuation }
                    #expect(executor.offerLater(source))
                }
            }
        }.value
        // After 100 µs.
        #expect(count.withLockedValue { $0.beforeWrite } == 11)
    }

    /// A task that a write has woken, as when a task waits for room.
    @Test func tasksWokenByAWriteRun() async throws {
        let (loop, executor) = (loop, LoopExecutor(loop))
        let task = try await loop.submit {
            let woken = NIOLockedValueBox<Task<Bool, Never>?>(nil)
            let writer = WritingConnection {
                woken.withLockedValue { $0 = Task(executorPreference: executor) { loop.inEventLoop } }
            }.bound(to: loop)
            executor.readAtOnce(isAll: true) { executor.flush(writer) }
            return woken.withLockedValue { $0 }
        }.get()
        #expect(await task?.value == true)
    }

    /// After a read that has woken no task.
    @Test func bytesSentElsewhereAreWritten() async {
        let (loop, executor) = (loop, LoopExecutor(loop))
        await withCheckedContinuation { continuation in
            loop.execute {
                let writer = WritingConnection { continuation.resume() }.bound(to: loop)
                executor.readAtOnce(isAll: true) {}
                Task.detached { executor.flush(writer) }
            }
        }
    }

    @Test(arguments: [true, false]) func oneWriteBehindAReadMayBeEarlyWhereThereWasNoMore(isAll: Bool) async throws {
        let (loop, executor) = (loop, LoopExecutor(loop))
        let early = NIOLockedValueBox<[Bool]>([])
        let task = try await loop.submit {
            var task: Task<Void, Never>?
            executor.readAtOnce(isAll: true) {}
            executor.readAtOnce(isAll: isAll) {
                task = Task(executorPreference: executor) {
                    early.withLockedValue { $0 = [executor.shouldWriteEarly(), executor.shouldWriteEarly()] }
                }
            }
            return task
        }.get()
        await task?.value
        #expect(early.withLockedValue { $0 } == [isAll, false])
    }

    /// After a read that has woken no task, or one whose tasks have all run.
    @Test(arguments: [true, false]) func noWriteIsEarlyOtherwise(wakes: Bool) async throws {
        let executor = LoopExecutor(loop)
        try await loop.submit {
            executor.readAtOnce(isAll: true) { if wakes { Task(executorPreference: executor) {} } }
        }.get()
        #expect(await Task(executorPreference: executor) { executor.shouldWriteEarly() }.value == false)
    }

    @Test func aTransportOnOneLoopRunsTasksThere() async {
        let transport = NIOTransport(group: MultiThreadedEventLoopGroup.singleton)
        #expect(transport.executor == nil)
        let pinned = transport.onOneLoop()
        let loops = MultiThreadedEventLoopGroup.singleton.makeIterator().map { $0 }
        let places = await Task(executorPreference: pinned.executor) { loops.filter(\.inEventLoop).count }.value
        #expect(places == 1)
    }
}
