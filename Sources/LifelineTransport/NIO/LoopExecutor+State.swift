internal import NIOCore

extension LoopExecutor {
    struct State {
        /// The new jobs, which run after those in `begun`.
        var jobs: [UnownedJob] = []
        var begun = Jobs()
        /// Whether the loop was already asked to run them.
        var isScheduled = false
        /// The number of the last request to the loop. Earlier requests no longer count.
        var lastRequest: UInt64 = 0
        /// Whether the loop is running tasks, or reads and runs them next. Then it need not be asked to run tasks or to
        /// write.
        var isActive = false
        /// Whether it has read all bytes, so that a peer may be idle until it gets an answer.
        var isPeerIdle = false
        /// The sources with frames for their connections, to offer before the connections write.
        var sources: [any FrameSource] = []
        /// The connections that have something to write.
        var writers: [NIOLoopBound<any ConnectionControl>] = []
        /// The time until which tasks may run before the loop polls its sockets.
        var turnEnd = NIODeadline.uptimeNanoseconds(0)
        /// The time at which the loop ran out of tasks; nil while it has some.
        var idleSince: NIODeadline? = .uptimeNanoseconds(0)
        /// The last time at which the loop had certainly polled its sockets.
        var lastPoll = NIODeadline.uptimeNanoseconds(0)
        /// The number of socket reads: until now, and until the last known poll.
        var (readCount, seenReadCount) = (0, 0)
        /// The number of turns of connections at receiving read bytes.
        var turnCount = 0
        var pauseCount = 0
        /// The connections that could not receive all read bytes in their turns.
        var readers: [NIOLoopBound<any ConnectionControl>] = []
        /// Whether they are scheduled to continue after the loop has polled its sockets.
        var areReadersScheduled = false

        var hasWork: Bool { !jobs.isEmpty || begun.areLeft || !sources.isEmpty || !writers.isEmpty }

        /// Notes a request to the loop, and returns its number.
        mutating func request() -> UInt64 {
            isScheduled = true
            lastRequest += 1
            return lastRequest
        }

        /// Takes the jobs to run next: first the rest of the begun ones. Leaves room for new jobs.
        ///
        /// - Returns: whether there are any.
        mutating func takeJobs(into next: inout Jobs, leaving spare: inout Spare) -> Bool {
            if begun.areLeft {
                next = begun
                begun = Jobs()
                return true
            }
            if jobs.isEmpty {
                if spare.jobs.capacity > jobs.capacity { swap(&jobs, &spare.jobs) }
                return false
            }
            next = Jobs(jobs: jobs)
            jobs = spare.jobs
            spare.jobs = []
            return true
        }

        /// - Parameter jobs: the jobs from `takeJobs`, of which some were run.
        mutating func putBack(_ jobs: Jobs) {
            if jobs.areLeft { begun = jobs }
        }

        mutating func takeSources() -> [any FrameSource] {
            defer { sources = [] }
            return sources
        }

        mutating func takeWriters() -> [NIOLoopBound<any ConnectionControl>] {
            defer { writers = [] }
            return writers
        }

        mutating func takeWriters(leaving spare: inout Spare) -> Bool {
            if writers.isEmpty {
                if spare.writers.capacity > writers.capacity { swap(&writers, &spare.writers) }
                return false
            }
            swap(&writers, &spare.writers)
            return true
        }

        /// Notes that some waiting readers had their turns, and `rest` had none. Returns whether any wait.
        mutating func readersHadTurns(_ rest: some Collection<NIOLoopBound<any ConnectionControl>>) -> Bool {
            readers.insert(contentsOf: rest, at: 0)
            areReadersScheduled = !readers.isEmpty
            return areReadersScheduled
        }

        mutating func endActivity() {
            (isActive, isPeerIdle) = (false, false)
        }
    }

    struct Jobs {
        var jobs: [UnownedJob] = []
        /// The index of the first job that was not run.
        var next = 0

        var areLeft: Bool { next < jobs.count }

        /// Takes the memory of the jobs that were run. Nothing else may hold it.
        mutating func takeMemory() -> [UnownedJob] {
            jobs.removeAll(keepingCapacity: jobs.count <= LoopExecutor.longestSpare)
            defer { self = Jobs() }
            return jobs
        }
    }

    /// Memory for new jobs, so that it need not be allocated again.
    struct Spare {
        var jobs: [UnownedJob] = []
        var writers: [NIOLoopBound<any ConnectionControl>] = []

        mutating func flushWriters() {
            for writer in writers { writer.value.flush() }
            writers.removeAll(keepingCapacity: writers.count <= LoopExecutor.longestSpare)
        }
    }

    /// The time for tasks.
    struct Turn {
        let begin: NIODeadline
        /// The time until which tasks may run before the loop polls its sockets.
        let end: NIODeadline
        /// How long tasks run before the loop writes what they have sent.
        let slice: TimeAmount
        /// The number of tasks between two readings of the clock, and how many of them have run.
        var step = 1
        var count = 0
    }

    enum Work {
        /// The caller has jobs to run.
        case jobs
        case offers([any FrameSource])
        /// The connections in `Spare.writers` have to be flushed.
        case writes
    }

    /// The reason why running jobs stopped.
    enum Progress {
        case done
        /// The loop has to write messages that tasks have sent.
        case sliceOver
        /// The loop has to poll its sockets.
        case turnOver
    }
}
