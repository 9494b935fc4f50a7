internal import NIOConcurrencyHelpers
internal import NIOCore

/// Runs tasks on an event loop, between its reads and its writes. Tasks that one read wakes run one after the other right
/// behind it, and what they send in 20 to 100 µs goes out with one write: neither takes a switch to another thread, which
/// costs more than most messages (3 µs and more, measured), nor a turn of the loop.
///
/// A task that blocks its thread holds up every connection of the loop. The loop has to outlive its tasks.
final class LoopExecutor: TaskExecutor {
    private struct State {
        /// Those that have come, behind those of which some were run.
        var jobs: [UnownedJob] = []
        var begun = Jobs()
        /// Whether the loop has been asked to run them, and need not be again.
        var isScheduled = false
        /// Which time it was asked for last: earlier ones count no more.
        var lastRequest: UInt64 = 0
        /// Whether the loop is at it, or reads and does so next. Then nobody need ask it, to run tasks or to write.
        var isActive = false
        /// Whether it has read all that there was, so that a peer may have nothing to do until it hears something.
        var isPeerIdle = false
        /// Those that have something to offer to their connections, before these write.
        var sources: [any FrameSource] = []
        /// The connections that have something to write.
        var writers: [NIOLoopBound<any ConnectionControl>] = []
        /// Until when tasks have the loop before it looks at its sockets.
        var turnEnd = NIODeadline.uptimeNanoseconds(0)
        /// When the loop ran out of them; nil while it has some.
        var idleSince: NIODeadline? = .uptimeNanoseconds(0)
        /// When the loop had certainly looked at its sockets.
        var lastLook = NIODeadline.uptimeNanoseconds(0)
        /// How often a socket was read: until now, and until the last look that is known of.
        var (readCount, seenReadCount) = (0, 0)
        var pauseCount = 0

        var hasWork: Bool { !jobs.isEmpty || begun.areLeft || !sources.isEmpty || !writers.isEmpty }

        /// Returns which time the loop is asked for.
        mutating func request() -> UInt64 {
            isScheduled = true
            lastRequest += 1
            return lastRequest
        }

        /// Returns who has something to write.
        mutating func endActivity() -> [NIOLoopBound<any ConnectionControl>] {
            (isActive, isPeerIdle) = (false, false)
            defer { writers = [] }
            return writers
        }
    }

    private struct Turn {
        /// Until when tasks have the loop before it looks at its sockets.
        let end: NIODeadline
        /// How long tasks run before the loop writes what they have sent.
        let slice: TimeAmount
    }

    private struct Jobs {
        var jobs: [UnownedJob] = []
        /// Those before this index were run.
        var next = 0

        var areLeft: Bool { next < jobs.count }
    }

    private enum Work {
        case jobs(Jobs)
        case offers([any FrameSource])
        /// The connections in `Spare.writers` are to be flushed.
        case writes
    }

    /// Memory for what comes, so that it need not be allocated anew.
    private struct Spare {
        var jobs: [UnownedJob] = []
        var writers: [NIOLoopBound<any ConnectionControl>] = []

        mutating func flushWriters() {
            for writer in writers { writer.value.flush() }
            writers.removeAll(keepingCapacity: writers.count <= LoopExecutor.longestSpare)
        }
    }

    /// How long tasks have the loop before it looks at its sockets: 5 ms, which is short beside the time in which peers are
    /// answered over most networks. The loop does not look by itself while anything is due, and tasks that wake one another,
    /// yield, or wait for a write always are.
    private static let turn = TimeAmount.milliseconds(5)
    /// How long tasks are held then, so that nothing is due: 200 µs, in which the loop also writes what they have sent.
    private static let pause = TimeAmount.microseconds(200)
    /// How long it is believed that the loop looks whenever it has no tasks for a while, and no read shows it: 50 ms. It may
    /// have been busy with something else, such as the writes of many connections.
    private static let trust = TimeAmount.milliseconds(50)
    /// After which time the loop writes what tasks have sent, though others are still to run: 100 µs, some times what a write
    /// costs, or after one that takes longer. The peer goes on with the first of many messages while the last are handled.
    private static let slice = TimeAmount.microseconds(100)
    /// The same behind a read, when the peer may have nothing to do until it hears something: 20 µs, so that it wakes up while
    /// others are handled. With 64 requests under way on two processors, that is 5.5 µs a request in place of 9.2.
    private static let firstSlice = TimeAmount.microseconds(20)
    /// How many tasks run before the clock is looked at, which costs as much as a small one: the first, then ever more.
    private static let longestStep = 8
    /// How many jobs the memory of the last ones is kept for: 64, which are half a kilobyte.
    private static let longestSpare = 64

    private let loop: any EventLoop
    private let now: @Sendable () -> NIODeadline
    private let state = NIOLockedValueBox(State())

    /// - Parameter now: reads the clock by which tasks are held.
    init(_ loop: any EventLoop, now: @escaping @Sendable () -> NIODeadline = { .now() }) {
        self.loop = loop
        self.now = now
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let request: UInt64? = state.withLockedValue { state in
            state.jobs.append(job)
            return state.isScheduled || state.isActive ? nil : state.request()
        }
        if let request { loop.execute { self.run(request) } }
    }

    /// Has a connection flush on the loop, together with others where the loop is at its tasks.
    func flush(_ connection: NIOLoopBound<any ConnectionControl>) {
        let isActive = state.withLockedValue { state in
            if state.isActive { state.writers.append(connection) }
            return state.isActive
        }
        if !isActive { loop.execute { connection.value.flush() } }
    }

    /// Has a source offer what it has once the tasks of a slice have run; false where none are running.
    func offerLater(_ source: any FrameSource) -> Bool {
        state.withLockedValue { state in
            if state.isActive { state.sources.append(source) }
            return state.isActive
        }
    }

    /// Something was read from a socket, so that the loop has looked at all of them: tasks need not be held for it.
    func socketWasRead() {
        state.withLockedValue { $0.readCount += 1 }
    }

    /// The same, where the tasks that the read wakes run at once, with those that wait already. Call it on the loop, where
    /// nothing is in the middle of what a task may change.
    ///
    /// - Parameters:
    ///   - isAll: whether there was no more to be read.
    ///   - receive: takes in what was read.
    func read(isAll: Bool, _ receive: () -> Void) {
        let isNested = state.withLockedValue { state in
            state.readCount += 1
            state.isPeerIdle = isAll
            defer { state.isActive = true }
            return state.isActive
        }
        receive()
        if isNested { return }
        let hasWork = state.withLockedValue { state in
            if !state.hasWork { (state.isActive, state.isPeerIdle) = (false, false) }
            return state.isActive
        }
        if hasWork { run() }
    }

    /// Whether to write what there is before tasks have gone on: once behind a read, so that both sides work at the same time.
    /// Echoes of 512 bytes, 64 in flight, took 1.7 µs in place of 2.4 so; where the peer has enough to do, each write costs.
    func takesEarlyWrite() -> Bool {
        state.withLockedValue { state in
            defer { state.isPeerIdle = false }
            return state.isActive && state.isPeerIdle
        }
    }

    /// How often a socket was read until now: what tests look at.
    var readCount: Int { state.withLockedValue { $0.readCount } }
    /// How often tasks were held until now: what tests look at.
    var pauseCount: Int { state.withLockedValue { $0.pauseCount } }

    /// Runs tasks as the loop was asked to, unless it was asked again, or they have run behind a read.
    private func run(_ request: UInt64, afterPause: Bool = false) {
        let isDue = state.withLockedValue { $0.isScheduled && $0.lastRequest == request }
        if isDue { run(afterPause: afterPause) }
    }

    private func run(afterPause: Bool = false) {
        let begin = now()
        let turn = beginTurn(at: begin, afterPause: afterPause)
        let executor = asUnownedTaskExecutor()
        var (step, count) = (1, 0)
        var spare = Spare()
        while let work = takeWork(leaving: &spare) {
            var jobs: Jobs
            switch work {
            case .jobs(let some): jobs = some
            case .offers(let sources):
                for source in sources { source.offer() }
                continue
            case .writes:
                spare.flushWriters()
                continue
            }
            while jobs.areLeft {
                jobs.jobs[jobs.next].runSynchronously(on: executor)
                jobs.next += 1
                count += 1
                guard count == step || !jobs.areLeft else { continue }
                (step, count) = (min(2 * step, Self.longestStep), 0)
                let time = now()
                if time > turn.end { return pause(before: jobs) }
                if time - begin > turn.slice, jobs.areLeft || hasJobs { return goOn(with: jobs) }
            }
            jobs.jobs.removeAll(keepingCapacity: jobs.jobs.count <= Self.longestSpare)
            spare.jobs = jobs.jobs
        }
    }

    /// Returns the turn: a new one, if the loop has looked at its sockets.
    private func beginTurn(at time: NIODeadline, afterPause: Bool) -> Turn {
        state.withLockedValue { state in
            let isBehindRead = state.readCount != state.seenReadCount
            if afterPause || isBehindRead {
                state.lastLook = time
                state.seenReadCount = state.readCount
                state.turnEnd = time + Self.turn
            } else if let idleSince = state.idleSince, time - idleSince > Self.pause,
                time - state.lastLook < Self.trust
            {
                state.turnEnd = time + Self.turn
            }
            state.idleSince = nil
            state.isActive = true
            return Turn(end: state.turnEnd, slice: isBehindRead ? Self.firstSlice : Self.slice)
        }
    }

    /// What is to do next: tasks first, then what they have for their connections, then what was sent. Nil when there is
    /// nothing, so that what comes next asks the loop for it.
    private func takeWork(leaving spare: inout Spare) -> Work? {
        state.withLockedValue { state in
            if state.begun.areLeft {
                defer { state.begun = Jobs() }
                return .jobs(state.begun)
            }
            if !state.jobs.isEmpty {
                defer { spare.jobs = [] }
                swap(&state.jobs, &spare.jobs)
                return .jobs(Jobs(jobs: spare.jobs))
            }
            if !state.sources.isEmpty {
                defer { state.sources = [] }
                return .offers(state.sources)
            }
            if !state.writers.isEmpty {
                swap(&state.writers, &spare.writers)
                return .writes
            }
            if spare.jobs.capacity > state.jobs.capacity { swap(&state.jobs, &spare.jobs) }
            if spare.writers.capacity > state.writers.capacity { swap(&state.writers, &spare.writers) }
            state.isScheduled = false
            (state.isActive, state.isPeerIdle) = (false, false)
            state.idleSince = now()
            return nil
        }
    }

    private var hasJobs: Bool { state.withLockedValue { !$0.jobs.isEmpty } }

    /// Before the loop's activity ends, as connections are flushed with it then. What has something to offer from here on is
    /// asked when the loop comes back to the tasks.
    private func offerAll() {
        let sources = state.withLockedValue { state in
            defer { state.sources = [] }
            return state.sources
        }
        for source in sources { source.offer() }
    }

    /// Behind what is due now.
    private func goOn(with jobs: Jobs) {
        offerAll()
        let (request, writers) = state.withLockedValue { state in
            state.begun = jobs.areLeft ? jobs : Jobs()
            return (state.request(), state.endActivity())
        }
        for writer in writers { writer.value.flush() }
        loop.execute { self.run(request) }
    }

    private func pause(before jobs: Jobs) {
        offerAll()
        let (request, writers) = state.withLockedValue { state in
            state.begun = jobs.areLeft ? jobs : Jobs()
            state.pauseCount += 1
            return (state.request(), state.endActivity())
        }
        for writer in writers { writer.value.flush() }
        // Behind what the tasks have left to do, which would take the pause up.
        loop.execute { [loop] in
            loop.scheduleTask(in: Self.pause) { self.run(request, afterPause: true) }
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
