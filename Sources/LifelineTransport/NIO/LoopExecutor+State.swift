internal import NIOCore

extension LoopExecutor {
    struct State {
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
        var lastPoll = NIODeadline.uptimeNanoseconds(0)
        /// How often a socket was read: until now, and until the last look that is known of.
        var (readCount, seenReadCount) = (0, 0)
        /// How often a connection has had a turn at receiving what it had read.
        var turnCount = 0
        var pauseCount = 0
        /// The connections that have read more than they could receive in their turns.
        var readers: [NIOLoopBound<any ConnectionControl>] = []
        /// Whether these go on when the loop has looked at its sockets.
        var areReadersScheduled = false

        var hasWork: Bool { !jobs.isEmpty || begun.areLeft || !sources.isEmpty || !writers.isEmpty }

        /// Returns which time the loop is asked for.
        mutating func request() -> UInt64 {
            isScheduled = true
            lastRequest += 1
            return lastRequest
        }

        /// What is to be run next: what is left of those that were begun comes first. Leaves room for those that come
        /// meanwhile.
        ///
        /// - Returns: whether there is anything.
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

        /// - Parameter jobs: those that `takeJobs` gave, of which some were run.
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

        /// Some of those that waited had their turns, and `rest` had none. Returns whether any wait.
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
        /// Those before this index were run.
        var next = 0

        var areLeft: Bool { next < jobs.count }

        /// Takes the memory of those that were run. Nobody else may hold it.
        mutating func takeMemory() -> [UnownedJob] {
            jobs.removeAll(keepingCapacity: jobs.count <= LoopExecutor.longestSpare)
            defer { self = Jobs() }
            return jobs
        }
    }

    /// Memory for what comes, so that it need not be allocated anew.
    struct Spare {
        var jobs: [UnownedJob] = []
        var writers: [NIOLoopBound<any ConnectionControl>] = []

        mutating func flushWriters() {
            for writer in writers { writer.value.flush() }
            writers.removeAll(keepingCapacity: writers.count <= LoopExecutor.longestSpare)
        }
    }

    /// The time that tasks have.
    struct Turn {
        let begin: NIODeadline
        /// Until when tasks have the loop before it looks at its sockets.
        let end: NIODeadline
        /// How long tasks run before the loop writes what they have sent.
        let slice: TimeAmount
        /// How many tasks run until the clock is looked at, and how many of them have.
        var step = 1
        var count = 0
    }

    enum Work {
        /// They are the caller's now.
        case jobs
        case offers([any FrameSource])
        /// The connections in `Spare.writers` are to be flushed.
        case writes
    }

    /// How far jobs were run.
    enum Progress {
        case done
        /// The loop has to write what tasks have sent.
        case sliceOver
        /// The loop has to look at its sockets.
        case turnOver
    }
}
