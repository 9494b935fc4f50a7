internal import LifelineRuntime
internal import NIOConcurrencyHelpers
internal import NIOCore

/// Runs tasks on an event loop, between its reads and its writes. Tasks that one read wakes run one after the other
/// right behind it, and what they send in 20 to 100 µs goes out with one write: neither takes a switch to another
/// thread, which costs more than most messages (3 µs and more, measured), nor a turn of the loop.
///
/// A task that blocks its thread holds up every connection of the loop. The loop has to outlive its tasks.
final class LoopExecutor: TaskExecutor {
    /// How long tasks have the loop before it looks at its sockets: 5 ms, which is short beside the time in which peers
    /// are answered over most networks. The loop does not look by itself while anything is due, and tasks that wake one
    /// another, yield, or wait for a write always are.
    private static let turn = TimeAmount.milliseconds(5)
    /// How long tasks are held then, so that nothing is due: 200 µs, in which the loop also writes what they have sent.
    private static let pause = TimeAmount.microseconds(200)
    /// How long it is believed that the loop looks whenever it has no tasks for a while, and no read shows it: 50 ms.
    /// It may have been busy with something else, such as the writes of many connections.
    private static let trust = TimeAmount.milliseconds(50)
    /// After which time the loop writes what tasks have sent, though others are still to run: 100 µs, some times what a
    /// write costs, or after one that takes longer. The peer goes on with the first of many messages while the last are
    /// handled.
    private static let slice = TimeAmount.microseconds(100)
    /// The same behind a read, when the peer may have nothing to do until it hears something: 20 µs, so that it wakes
    /// up while others are handled. With 64 requests under way on two processors, that is 5.5 µs a request in place of
    /// 9.2.
    private static let firstSlice = TimeAmount.microseconds(20)
    /// For how long connections that have read much go on, one after the other, until the loop looks at its sockets: 2
    /// ms.
    private static let readersTurn = TimeAmount.milliseconds(2)
    /// In what time they go on: 100 µs, so that nothing is due until the loop has looked. With 10 µs a debug build
    /// never did, for making the timer took longer.
    private static let readersDelay = TimeAmount.microseconds(100)
    /// How many tasks run before the clock is looked at, which costs as much as a small one: the first, then ever more.
    private static let longestStep = 8
    /// How many jobs the memory of the last ones is kept for: 64, which are half a kilobyte.
    static let longestSpare = 64

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
    ///
    /// - Returns: how many turns connections have had, this one included.
    @discardableResult func socketWasRead() -> Int {
        state.withLockedValue { state in
            state.readCount += 1
            state.turnCount += 1
            return state.turnCount
        }
    }

    /// The same, where the tasks that the read wakes run at once, with those that wait already. Call it on the loop,
    /// where nothing is in the middle of what a task may change.
    ///
    /// - Parameters:
    ///   - isAll: whether there was no more to be read; nil where nothing was read just now.
    ///   - receive: takes in what was read, or a part of it, after which tasks may run; tells whether to take in more
    ///     of it. It gets what `socketWasRead()` returns.
    func read(isAll: Bool?, _ receive: (_ turn: Int) -> Bool) {
        let (isNested, turn) = state.withLockedValue { state in
            state.turnCount += 1
            // A turn of a connection that has read before says nothing of the sockets.
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

    /// Has a connection go on with what it has read when the loop has looked at its sockets, behind others that do.
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
        // Behind what is due now, which would take the time up.
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

    /// Whether to write what there is before tasks have gone on: once behind a read, so that both sides work at the
    /// same time. Echoes of 512 bytes, 64 in flight, took 1.7 µs in place of 2.4 so; where the peer has enough to do,
    /// each write costs.
    func shouldWriteEarly() -> Bool {
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
                // Tasks that wait for what was offered would put the writes off for as long as they offer more.
                if hasJobs, now() - turn.begin > turn.slice { return resumeLater(with: Jobs()) }
            case .writes:
                spare.flushWriters()
            }
        }
    }

    /// Runs tasks while more of what was read is to be taken in, for a slice at most. What they send is written with
    /// what the next ones do, unless it took them a slice.
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

    /// Returns the turn: a new one, if the loop has looked at its sockets.
    private func beginTurn(afterPause: Bool = false) -> Turn {
        let time = now()
        return state.withLockedValue { state in
            let isBehindRead = state.readCount != state.seenReadCount
            if afterPause || isBehindRead {
                state.lastPoll = time
                state.seenReadCount = state.readCount
                state.turnEnd = time + Self.turn
            } else if let idleSince = state.idleSince, time - idleSince > Self.pause,
                // Else the loop may have been busy with what connections had read.
                time - state.lastPoll < Self.trust, !state.areReadersScheduled
            {
                state.turnEnd = time + Self.turn
            }
            state.idleSince = nil
            state.isActive = true
            return Turn(begin: time, end: state.turnEnd, slice: isBehindRead ? Self.firstSlice : Self.slice)
        }
    }

    /// What is to do next: tasks first, then what they have for their connections, then what was sent. Nil when there
    /// is nothing, so that what comes next asks the loop for it.
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

    /// Behind what is due now.
    private func resumeLater(with jobs: Jobs) {
        let request = endSlice(leaving: jobs)
        loop.execute { self.run(request) }
    }

    private func pause(before jobs: Jobs) {
        let request = endSlice(leaving: jobs) { $0.pauseCount += 1 }
        // Behind what the tasks have left to do, which would take the pause up.
        loop.execute { [loop] in
            loop.scheduleTask(in: Self.pause) { self.run(request, afterPause: true) }
        }
    }

    /// Returns which time the loop is to be asked for.
    private func endSlice(leaving jobs: Jobs, _ change: (inout State) -> Void = { _ in }) -> UInt64 {
        writeAll { state in
            state.putBack(jobs)
            state.endActivity()
            change(&state)
            return state.request()
        }
    }

    /// Has everything offered and written that there is. Whether that makes tasks go on, or has sockets read, is left
    /// for later.
    ///
    /// - Parameter change: what to do when there is nothing left, before there can be more.
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
