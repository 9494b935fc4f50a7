import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

@testable import LifelineTransport

/// Reads that are processed part by part.
@Suite(.timeLimit(.minutes(1))) struct LoopExecutorPartsTests {
    private let loop = MultiThreadedEventLoopGroup.singleton.next()
    private let clock = TestClock()
    private let executor: LoopExecutor
    private let steps = NIOLockedValueBox<[String]>([])

    init() {
        let clock = clock
        executor = LoopExecutor(loop) { clock.now }
    }

    @Test func tasksWokenByAPartRunBeforeTheNextAndAreWrittenWithIt() async throws {
        try await read(parts: 3, duration: .microseconds(1))
        #expect(taken == ["part 1", "run 1", "part 2", "run 2", "part 3", "run 3", "offered", "written"])
    }

    /// 20 µs after the first part, 100 µs after others.
    @Test func bytesOfLongTasksAreWrittenBeforeTheNextPart() async throws {
        try await read(parts: 3, duration: .microseconds(50))
        let first = ["part 1", "run 1", "offered", "written", "part 2", "run 2"]
        #expect(taken == first + ["part 3", "run 3", "offered", "written"])
    }

    /// A remaining task continues with those of the next part.
    @Test func remainingTasksOfAPartRunAfterTheNext() async throws {
        try await read(parts: 2, tasksPerPart: 2, duration: .microseconds(50))
        let first = ["part 1", "run 1", "offered", "written", "part 2", "run 1", "run 2"]
        #expect(taken == first + ["run 2", "offered", "written"])
    }

    @Test func aReadWithinAnotherIsTakenInWithoutTasks() async throws {
        let (executor, steps) = (executor, steps)
        let task = try await loop.submit {
            var (task, part): (Task<Void, Never>?, Int) = (nil, 0)
            executor.readAtOnce(isAll: true) {
                task = Task(executorPreference: executor) { steps.withLockedValue { $0.append("run") } }
                executor.read(isAll: true) { _ in
                    part += 1
                    steps.withLockedValue { $0.append("part \(part)") }
                    return part < 3
                }
            }
            return task
        }.get()
        await task?.value
        #expect(taken == ["part 1", "part 2", "part 3", "run"])
    }

    /// The loop has polled its sockets when it returns to tasks, so there is no need to hold them.
    @Test func tasksThatComeAfterAReadInPartsAreNotHeld() async throws {
        try await read(parts: 2, duration: .microseconds(1), leavesWork: false)
        clock.advance(by: .milliseconds(10))
        let clock = clock
        await Task(executorPreference: executor) { clock.advance(by: .microseconds(10)) }.value
        try await loop.submit {}.get()
        #expect(executor.pauseCount == 0)
    }

    /// From other threads, at any time, even between the parts of a read.
    @Test func nothingThatComesMeanwhileIsLost() async throws {
        let (loop, executor) = (loop, LoopExecutor(loop))
        let isOver = NIOLockedValueBox(false)
        @Sendable func readInParts() {
            var part = 0
            executor.read(isAll: true) { _ in
                part += 1
                for _ in 0..<8 { Task(executorPreference: executor) {} }
                return part < 100
            }
            if !isOver.withLockedValue({ $0 }) { loop.execute(readInParts) }
        }
        loop.execute(readInParts)
        let count = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var count = 0
                    for _ in 0..<2_000 { count += await Task(executorPreference: executor) { 1 }.value }
                    return count
                }
            }
            return await group.reduce(0, +)
        }
        isOver.withLockedValue { $0 = true }
        #expect(count == 8_000)
    }

    private var taken: [String] { steps.withLockedValue { $0 } }

    /// Each part wakes tasks that take a given time, and that have bytes to offer and to write.
    ///
    /// - Parameter leavesWork: false if they have none, and the last part wakes no task.
    private func read(
        parts: Int,
        tasksPerPart: Int = 1,
        duration: TimeAmount,
        leavesWork: Bool = true
    ) async throws {
        let (loop, executor, steps, clock) = (loop, executor, steps, clock)
        @Sendable func note(_ step: String) { steps.withLockedValue { $0.append(step) } }
        let writer = try await loop.submit { WritingConnection { note("written") }.bound(to: loop) }.get()
        let isRegistered = NIOLockedValueBox(false)
        let source = OfferingSource {
            isRegistered.withLockedValue { $0 = false }
            note("offered")
            executor.flush(writer)
        }
        let tasks = try await loop.submit {
            var (tasks, part): ([Task<Void, Never>], Int) = ([], 0)
            executor.read(isAll: true) { _ in
                part += 1
                note("part \(part)")
                if part == parts, !leavesWork { return false }
                for _ in 0..<tasksPerPart {
                    let task = Task(executorPreference: executor) { [part] in
                        note("run \(part)")
                        clock.advance(by: duration)
                        if !leavesWork { return }
                        // Like a session, once for each time that it is asked.
                        let wasRegistered = isRegistered.withLockedValue { isRegistered in
                            defer { isRegistered = true }
                            return isRegistered
                        }
                        if !wasRegistered { #expect(executor.offerLater(source)) }
                    }
                    tasks.append(task)
                }
                return part < parts
            }
            return tasks
        }.get()
        for task in tasks { await task.value }
        try await loop.submit {}.get()
    }
}
