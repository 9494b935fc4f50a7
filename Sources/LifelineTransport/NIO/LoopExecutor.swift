internal import NIOConcurrencyHelpers
internal import NIOCore

/// Runs tasks on an event loop, between its reads and its writes. Tasks that one read wakes run one after the other behind
/// it, and what they send goes out with one write: neither takes a switch to another thread, which costs more than most
/// messages (3 µs and more, measured).
///
/// A task that blocks its thread holds up every connection of the loop. The loop has to outlive its tasks.
final class LoopExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        /// Whether the loop is about to run them.
        var isScheduled = false
        /// Until when tasks have the loop before it looks at its sockets.
        var turnEnd = NIODeadline.uptimeNanoseconds(0)
        /// When the loop ran out of them; nil while it has some.
        var idleSince: NIODeadline? = .uptimeNanoseconds(0)
        /// How often a socket was read: until now, and until the turn began.
        var (readCount, readCountOfTurn) = (0, 0)
        var pauseCount = 0
    }

    /// How long tasks have the loop before it looks at its sockets: 5 ms, which is short beside the time in which peers are
    /// answered over most networks. The loop does not look by itself while anything is due, and tasks that wake one another,
    /// yield, or wait for a write always are.
    private static let turn = TimeAmount.milliseconds(5)
    /// How long tasks are held then, so that nothing is due: 200 µs, in which the loop also writes what they have sent.
    private static let pause = TimeAmount.microseconds(200)

    /// After which time the loop writes what tasks have sent, though others are still to run: 100 µs, some times what a write
    /// costs. The peer goes on with the first of many messages while the last are handled.
    private static let slice = TimeAmount.microseconds(100)

    private let loop: any EventLoop
    private let state = NIOLockedValueBox(State())

    init(_ loop: any EventLoop) {
        self.loop = loop
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = state.withLockedValue { state in
            state.jobs.append(job)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isFirst { loop.execute { self.run(afterPause: false) } }
    }

    /// Something was read from a socket, so that the loop has looked at all of them: tasks need not be held for it.
    func socketWasRead() {
        state.withLockedValue { $0.readCount += 1 }
    }

    /// How often a socket was read until now.
    var readCount: Int { state.withLockedValue { $0.readCount } }
    /// How often tasks were held until now.
    var pauseCount: Int { state.withLockedValue { $0.pauseCount } }

    private func run(afterPause: Bool) {
        let begin = NIODeadline.now()
        let end = state.withLockedValue { state in
            // Without tasks for as long as a pause, the loop has looked at its sockets.
            let wasIdle = state.idleSince.take().map { begin - $0 > Self.pause } ?? false
            if afterPause || wasIdle || state.readCount != state.readCountOfTurn {
                state.turnEnd = begin + Self.turn
                state.readCountOfTurn = state.readCount
            }
            return state.turnEnd
        }
        let executor = asUnownedTaskExecutor()
        while let jobs = takeJobs() {
            for (index, job) in jobs.enumerated() {
                job.runSynchronously(on: executor)
                // The clock costs as much as a small task.
                guard index % 8 == 7 || index == jobs.count - 1 else { continue }
                let now = NIODeadline.now()
                if now > end { return pause(before: jobs[(index + 1)...]) }
                if now - begin > Self.slice { return goOn(with: jobs[(index + 1)...]) }
            }
        }
    }

    /// Those that have come; nil when there are none, so that the next one has the loop run them.
    private func takeJobs() -> [UnownedJob]? {
        state.withLockedValue { state in
            state.isScheduled = !state.jobs.isEmpty
            guard state.isScheduled else {
                state.idleSince = .now()
                return nil
            }
            defer { state.jobs = [] }
            return state.jobs
        }
    }

    /// Behind what is due now, writes among it.
    private func goOn(with jobs: ArraySlice<UnownedJob>) {
        state.withLockedValue { $0.jobs.insert(contentsOf: jobs, at: 0) }
        loop.execute { self.run(afterPause: false) }
    }

    private func pause(before jobs: ArraySlice<UnownedJob>) {
        state.withLockedValue { state in
            state.jobs.insert(contentsOf: jobs, at: 0)
            state.pauseCount += 1
        }
        // Behind what the tasks have left to do, which would take the pause up.
        loop.execute { [loop] in
            loop.scheduleTask(in: Self.pause) { self.run(afterPause: true) }
        }
    }
}

/// The executors of the loops of a group.
struct LoopExecutors: Sendable {
    private let executors: [ObjectIdentifier: LoopExecutor]

    init(_ group: any EventLoopGroup) {
        executors = Dictionary(
            group.makeIterator().map { (ObjectIdentifier($0), LoopExecutor($0)) },
            uniquingKeysWith: { first, _ in first }
        )
    }

    /// That of a loop of the group's.
    subscript(loop: any EventLoop) -> LoopExecutor? { executors[ObjectIdentifier(loop)] }
}
