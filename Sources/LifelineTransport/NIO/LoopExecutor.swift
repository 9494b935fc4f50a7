internal import LifelineRuntime
internal import NIOConcurrencyHelpers
internal import NIOCore

/// Runs tasks on an event loop, between its reads and its writes. Tasks that one read wakes run one after the other
/// right after it, and the messages that they send within 20 to 100 µs go out with one write. Neither needs a switch to
/// another thread, which costs more than most messages (3 µs and more, measured), nor another turn of the loop.
///
/// A task that blocks its thread delays every connection of the loop. The loop has to outlive its tasks.
final class LoopExecutor: TaskExecutor {
    /// How long tasks may run before the loop polls its sockets: 5 ms, which is short compared to the response times
    /// over most networks. The loop does not poll while any task is due, and tasks that wake one another, yield, or
    /// wait for a write are always due.
    private static let turn = TimeAmount.milliseconds(5)
    /// How long tasks are then paused, so that none is due: 200 µs, in which the loop also writes the messages that
    /// they have sent.
    private static let pause = TimeAmount.microseconds(200)
    /// How long the loop is assumed to poll whenever it has no tasks for a while, if no read shows it: 50 ms. The loop
    /// may have been busy with other work, such as the writes of many connections.
    private static let trust = TimeAmount.milliseconds(50)
    /// The time after which the loop writes messages of tasks, even if other tasks still have to run: 100 µs, some
    /// times the cost of a write, or later when a task takes longer. So the peer can continue with the first of many
    /// messages while the last are handled.
    private static let slice = TimeAmount.microseconds(100)
    /// The same time after a read, when the peer may be idle until it gets an answer: 20 µs, so that it wakes up while
    /// other messages are handled. With 64 requests under way on two processors, a request then takes 5.5 µs instead of
    /// 9.2.
    private static let firstSlice = TimeAmount.microseconds(20)
    /// How long connections that have read many bytes continue, one after the other, until the loop polls its sockets:
    /// 2 ms.
    private static let readersTurn = TimeAmount.milliseconds(2)
    /// The delay before they continue: 100 µs, so that nothing is due until the loop has polled. With 10 µs a debug
    /// build never polled, because making the timer took longer.
    private static let readersDelay = TimeAmount.microseconds(100)
    /// The most tasks between two readings of the clock, which costs as much as a small task: at first one, then more
    /// and more.
    private static let longestStep = 8
    /// The number of jobs that spare memory is kept for: 64, which take half a kilobyte.
    static let longestSpare = 64

    private let loop: any EventLoop
    private let now: @Sendable () -> NIODeadline
    private let state = NIOLockedValueBox(State())

    /// - Parameter now: reads the clock for pauses and turns.
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

    /// Makes a connection flush on the loop, together with others if the loop is running tasks.
    func flush(_ connection: NIOLoopBound<any ConnectionControl>) {
        let isActive = state.withLockedValue { state in
            if state.isActive { state.writers.append(connection) }
            return state.isActive
        }
        if !isActive { loop.execute { connection.value.flush() } }
    }

    /// Makes a source offer its frames once the tasks of a slice have run; returns false if none are running.
    func offerLater(_ source: any FrameSource) -> Bool {
        state.withLockedValue { state in
            if state.isActive { state.sources.append(source) }
            return state.isActive
        }
    }

    /// Notes that a socket was read, so the loop has polled all of them: tasks need not be paused for it.
    ///
    /// - Returns: the number of turns that connections have had, including this one.
    @discardableResult func socketWasRead() -> Int {
        state.withLockedValue { state in
            state.readCount += 1
            state.turnCount += 1
            return state.turnCount
        }
    }

    /// Does the same, and runs the tasks that the read wakes at once, with those that already wait. Call it on the
    /// loop, and not in the middle of a change that a task may see.
    ///
    /// - Parameters:
    ///   - isAll: whether nothing more was left to read; nil if nothing was read just now.
    ///   - receive: receives the read bytes, or a part of them, after which tasks may run; returns whether to receive
    ///     more. Its argument is the result of `socketWasRead()`.
    func read(isAll: Bool?, _ receive: (_ turn: Int) -> Bool) {
        let (isNested, turn) = state.withLockedValue { state in
            state.turnCount += 1
            // A turn of a connection that has read before does not show that the sockets were polled.
            if isAll != nil { state.readCount += 1 }
            state.isPeerIdle = isAll ?? false
            defer { state.isActive = true }
            return (state.isActive, state.turnCount)
        }
        var ranTasks = false
        while receive(turn) {
            if isNested { continue }
            runBetweenParts()
            ranTasks = true
        }
        if isNested { return }
        let goesOn = state.withLockedValue { state in
            if !state.hasWork, !ranTasks { state.endActivity() }
            return state.isActive
        }
        if goesOn { run() }
    }

    /// Lets a connection continue with its read bytes after the loop has polled its sockets, after others that wait.
    /// Call it on the loop.
    func readLater(_ connection: any ConnectionControl) {
        let areScheduled = state.withLockedValue { state in
            state.readers.append(NIOLoopBound(connection, eventLoop: loop))
            defer { state.areReadersScheduled = true }
            return state.areReadersScheduled
        }
        if !areScheduled { scheduleReaders() }
    }

    private func scheduleReaders() {
        // After the work that is due now, which would use up the time.
        loop.execute { [loop] in
            loop.scheduleTask(in: Self.readersDelay) { self.continueReaders() }
        }
    }

    private func continueReaders() {
        let begin = now()
        var readers = state.withLockedValue { state in
            defer { state.readers = [] }
            return state.readers
        }[...]
        repeat {
            readers.popFirst()?.value.continueReading()
        } while !readers.isEmpty && now() - begin < Self.readersTurn
        if state.withLockedValue({ $0.readersHadTurns(readers) }) { scheduleReaders() }
    }

    /// Returns whether to write before tasks go on: once after a read, so that both sides work at the same time. Echoes
    /// of 512 bytes, 64 in flight, took 1.7 µs instead of 2.4 with it. When the peer has enough to do, each write only
    /// costs time.
    func shouldWriteEarly() -> Bool {
        state.withLockedValue { state in
            defer { state.isPeerIdle = false }
            return state.isActive && state.isPeerIdle
        }
    }

    /// The number of socket reads until now, for tests.
    var readCount: Int { state.withLockedValue { $0.readCount } }
    /// The number of pauses of tasks until now, for tests.
    var pauseCount: Int { state.withLockedValue { $0.pauseCount } }

    /// Runs tasks for a request to the loop, unless there was a later request, or they have run after a read.
    private func run(_ request: UInt64, afterPause: Bool = false) {
        let isDue = state.withLockedValue { $0.isScheduled && $0.lastRequest == request }
        if isDue { run(afterPause: afterPause) }
    }

    private func run(afterPause: Bool = false) {
        var turn = beginTurn(afterPause: afterPause)
        var (jobs, spare) = (Jobs(), Spare())
        while let work = takeWork(into: &jobs, leaving: &spare) {
            switch work {
            case .jobs:
                switch run(&jobs, in: &turn) {
                case .done: spare.jobs = jobs.takeMemory()
                case .sliceOver: return resumeLater(with: jobs)
                case .turnOver: return pause(before: jobs)
                }
            case .offers(let sources):
                for source in sources { source.offer() }
                // Tasks that wait for their offers would delay the writes for as long as they offer more.
                if hasJobs, now() - turn.begin > turn.slice { return resumeLater(with: Jobs()) }
            case .writes:
                spare.flushWriters()
            }
        }
    }

    /// Runs tasks for at most a slice, while more read bytes are still to be received. Their messages are written
    /// together with those of the next tasks, unless they took a whole slice.
    private func runBetweenParts() {
        var turn = beginTurn()
        var (jobs, spare) = (Jobs(), Spare())
        while state.withLockedValue({ $0.takeJobs(into: &jobs, leaving: &spare) }) {
            guard run(&jobs, in: &turn) == .done else {
                state.withLockedValue { $0.putBack(jobs) }
                break
            }
            spare.jobs = jobs.takeMemory()
        }
        if now() - turn.begin > turn.slice { writeAll { _ in } }
    }

    private func run(_ jobs: inout Jobs, in turn: inout Turn) -> Progress {
        let executor = asUnownedTaskExecutor()
        while jobs.areLeft {
            jobs.jobs[jobs.next].runSynchronously(on: executor)
            jobs.next += 1
            turn.count += 1
            guard turn.count == turn.step || !jobs.areLeft else { continue }
            (turn.step, turn.count) = (min(2 * turn.step, Self.longestStep), 0)
            let time = now()
            if time > turn.end { return .turnOver }
            if time - turn.begin > turn.slice, jobs.areLeft || hasJobs { return .sliceOver }
        }
        return .done
    }

    /// Returns the turn: a new one if the loop has polled its sockets.
    private func beginTurn(afterPause: Bool = false) -> Turn {
        let time = now()
        return state.withLockedValue { state in
            let isBehindRead = state.readCount != state.seenReadCount
            if afterPause || isBehindRead {
                state.lastPoll = time
                state.seenReadCount = state.readCount
                state.turnEnd = time + Self.turn
            } else if let idleSince = state.idleSince, time - idleSince > Self.pause,
                // Otherwise the loop may have been busy with bytes that connections had read.
                time - state.lastPoll < Self.trust, !state.areReadersScheduled
            {
                state.turnEnd = time + Self.turn
            }
            state.idleSince = nil
            state.isActive = true
            return Turn(begin: time, end: state.turnEnd, slice: isBehindRead ? Self.firstSlice : Self.slice)
        }
    }

    /// Returns the next work: tasks first, then offers of sources, then writes. Returns nil when there is none, so that
    /// the next task asks the loop.
    private func takeWork(into jobs: inout Jobs, leaving spare: inout Spare) -> Work? {
        state.withLockedValue { state in
            if state.takeJobs(into: &jobs, leaving: &spare) { return .jobs }
            if !state.sources.isEmpty { return .offers(state.takeSources()) }
            if state.takeWriters(leaving: &spare) { return .writes }
            state.isScheduled = false
            state.endActivity()
            state.idleSince = now()
            return nil
        }
    }

    private var hasJobs: Bool { state.withLockedValue { !$0.jobs.isEmpty } }

    /// Continues after the work that is due now.
    private func resumeLater(with jobs: Jobs) {
        let request = endSlice(leaving: jobs)
        loop.execute { self.run(request) }
    }

    private func pause(before jobs: Jobs) {
        let request = endSlice(leaving: jobs) { $0.pauseCount += 1 }
        // After the work that the tasks have left, which would use up the pause.
        loop.execute { [loop] in
            loop.scheduleTask(in: Self.pause) { self.run(request, afterPause: true) }
        }
    }

    /// Returns the number of the next request to the loop.
    private func endSlice(leaving jobs: Jobs, _ change: (inout State) -> Void = { _ in }) -> UInt64 {
        writeAll { state in
            state.putBack(jobs)
            state.endActivity()
            change(&state)
            return state.request()
        }
    }

    /// Offers and writes everything. Tasks that this wakes, and sockets that it makes readable, wait until later.
    ///
    /// - Parameter change: called when nothing is left, before there can be more.
    private func writeAll<Result>(then change: (inout State) -> Result) -> Result {
        while true {
            let (sources, writers, result) = state.withLockedValue { state in
                let (sources, writers) = (state.takeSources(), state.takeWriters())
                return (sources, writers, sources.isEmpty && writers.isEmpty ? change(&state) : nil)
            }
            if let result { return result }
            for source in sources { source.offer() }
            for writer in writers { writer.value.flush() }
        }
    }
}
