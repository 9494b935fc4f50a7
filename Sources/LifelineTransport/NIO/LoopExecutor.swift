internal import NIOConcurrencyHelpers
internal import NIOCore

/// Runs tasks on an event loop, between its reads and its writes. Tasks that one read wakes run one after the other behind
/// it, and what they send goes out with one write: neither takes a switch to another thread, which costs more than most
/// messages (3 µs and more, measured).
///
/// A task that blocks its thread holds up every connection of the loop.
final class LoopExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        /// Whether the loop is about to run them.
        var isScheduled = false
    }

    /// How long tasks go on that wake one another, or yield, before the loop looks at its sockets again: 1 ms, which is short
    /// beside the time in which a peer is answered over most networks.
    private static let turn = TimeAmount.milliseconds(1)
    /// How long they wait then: 5 µs. The loop runs whatever is due before it looks at its sockets, so that this must not be.
    private static let pause = TimeAmount.microseconds(5)

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
        if isFirst { loop.execute { self.run() } }
    }

    private func run() {
        let end = NIODeadline.now() + Self.turn
        let executor = asUnownedTaskExecutor()
        while let jobs = takeJobs() {
            for job in jobs { job.runSynchronously(on: executor) }
            if NIODeadline.now() > end {
                loop.scheduleTask(in: Self.pause) { self.run() }
                return
            }
        }
    }

    /// Those that have come; nil when there are none, so that the next one has the loop run them.
    private func takeJobs() -> [UnownedJob]? {
        state.withLockedValue { state in
            state.isScheduled = !state.jobs.isEmpty
            defer { state.jobs = [] }
            return state.isScheduled ? state.jobs : nil
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
