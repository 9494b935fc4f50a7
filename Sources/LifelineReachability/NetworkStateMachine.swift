package import LifelineCore

/// Decides when the kernel is asked what the network is like, and when its answer is news.
///
/// Events are signs that something changed and nothing more: some changes have none (the routes that go with a link),
/// and events get lost when they come too fast. So every change leads to a dump of everything, once nothing has
/// happened for the quiet period, at the latest after three of them. A flap shorter than the quiet period is thereby
/// one change, or none when everything is as before; going down and coming up are treated alike. A poll finds what no
/// event told, every few seconds, and much oftener while the kernel may be holding an event back.
///
/// It does no I/O and reads no clock. `now` must not go back; if it does, the latest one that was seen counts.
package struct NetworkStateMachine: Sendable {
    private enum State {
        /// Nothing was started. Can go to: opening.
        case stopped
        /// The socket is being opened. Can go to: dumping, resting.
        case opening
        /// There is no socket until then. Can go to: opening.
        case resting(until: MonotonicTime)
        /// All is known. Can go to: gathering, dumping, resting.
        case settled(pollAt: MonotonicTime)
        /// Something happened, and more may. Can go to: dumping, resting.
        case gathering(Burst)
        /// The kernel is being asked. Can go to: settled, gathering, resting.
        case dumping(Dump)
    }

    /// Events that belong together.
    private struct Burst {
        var first: MonotonicTime
        var last: MonotonicTime
        /// How many dumps in a row were inconsistent.
        var interruptions = 0
    }

    private struct Dump {
        let occasion: Occasion
        let begun: MonotonicTime
        /// What happened after it was begun.
        var burst: Burst?
    }

    private enum Occasion {
        /// The socket is new: whatever is found is news.
        case opening
        case poll
        case burst(Burst, isOverdue: Bool)

        var isOpening: Bool {
            if case .opening = self { true } else { false }
        }

        var earlier: Burst? {
            if case .burst(let burst, _) = self { burst } else { nil }
        }
    }

    private let configuration: NetworkMonitorConfiguration
    private var state = State.stopped
    private var latest = MonotonicTime(nanoseconds: .min)
    /// Until when the kernel may tell late that a carrier was lost.
    private var carrierIsUncertainUntil = MonotonicTime(nanoseconds: .min)
    /// No dump begins before, so that dumps of large tables leave time for other things.
    private var dumpsRestUntil = MonotonicTime(nanoseconds: .min)
    /// How many sockets in a row did not last for one dump.
    private var failedSocketCount = 0
    /// What was published last.
    package private(set) var path: NetworkPath?

    package init(configuration: NetworkMonitorConfiguration) {
        self.configuration = configuration
    }

    /// What to do.
    package enum Action: Hashable, Sendable {
        /// Close the socket, if there is one, and open a new one; then call `opened`, or `openingFailed`.
        case open
        /// Begin a dump on the socket; then call `dumpEnded`, or `socketFailed`.
        case dump
        /// Tell that the path is this now.
        case publish(NetworkPath)
    }

    /// Monitoring shall begin.
    package mutating func started(now: MonotonicTime) -> [Action] {
        advance(to: now)
        guard case .stopped = state else { return [] }
        state = .opening
        return [.open]
    }

    /// There is a socket, which receives events from now on.
    package mutating func opened(now: MonotonicTime) -> [Action] {
        advance(to: now)
        guard case .opening = state else { return [] }
        return dump(.opening)
    }

    /// There can be no socket now: the system refuses.
    package mutating func openingFailed(now: MonotonicTime) -> [Action] {
        advance(to: now)
        guard case .opening = state else { return [] }
        state = .resting(until: latest + configuration.pollInterval)
        return publish(.unknown)
    }

    /// The socket failed, because events came faster than they were read or for another reason, or what came over it
    /// makes no sense. Events were lost.
    package mutating func socketFailed(now: MonotonicTime) -> [Action] {
        advance(to: now)
        switch state {
        case .dumping(let dump) where dump.occasion.isOpening:
            failedSocketCount += 1
            let isHopeless = failedSocketCount >= Self.maximumFailedSocketCount
            state = .resting(until: latest + (isHopeless ? configuration.pollInterval : configuration.quietPeriod))
            // What is known stays the best guess for a while: events may be coming too fast for one dump.
            return isHopeless || path == nil ? publish(.unknown) : []
        case .dumping, .settled, .gathering:
            // What was too much for the socket may be going on.
            state = .resting(until: latest + configuration.quietPeriod)
            return []
        case .stopped, .opening, .resting:
            return []
        }
    }

    /// What an event is about.
    package enum Subject: Hashable, Sendable, CaseIterable {
        case link
        /// An address or a route.
        case other
    }

    /// Something changed.
    package mutating func receivedEvent(about subject: Subject, now: MonotonicTime) {
        advance(to: now)
        if subject == .link { carrierIsUncertainUntil = latest + Self.longestCarrierDelay }
        switch state {
        case .settled:
            state = .gathering(Burst(first: latest, last: latest))
        case .gathering(var burst):
            burst.last = latest
            state = .gathering(burst)
        case .dumping(var dump):
            dump.burst = Burst(first: dump.burst?.first ?? latest, last: latest)
            state = .dumping(dump)
        case .stopped, .opening, .resting:
            break
        }
    }

    /// The dump ended with `found`, which is consistent unless something changed meanwhile.
    package mutating func dumpEnded(_ found: NetworkPath, isConsistent: Bool, now: MonotonicTime) -> [Action] {
        advance(to: now)
        guard case .dumping(let dump) = state else { return [] }
        failedSocketCount = 0
        dumpsRestUntil = latest + min((latest - dump.begun) * Self.restAfterDumps, Self.longestRestAfterDumps)
        if !isConsistent {
            let interruptions = (dump.occasion.earlier?.interruptions ?? 0) + 1
            // Where changes never end, something that may be half wrong is better than nothing. The poll mends it.
            if interruptions < Self.maximumInterruptions {
                let first = dump.occasion.earlier?.first ?? latest
                state = .gathering(Burst(first: first, last: latest, interruptions: interruptions))
                return []
            }
        } else if found != path {
            switch dump.occasion {
            case .opening:
                break
            case .poll:
                // It may be in the middle of a flap: it gets the time that an event gets.
                state = .gathering(Burst(first: dump.burst?.first ?? latest, last: latest))
                return []
            case .burst(let earlier, let isOverdue):
                if let burst = dump.burst, !isOverdue {
                    state = .gathering(Burst(first: earlier.first, last: burst.last))
                    return []
                }
            }
        }
        if let burst = dump.burst {
            state = .gathering(burst)
        } else {
            state = .settled(pollAt: nextPoll)
        }
        return publish(found)
    }

    /// The time is `nextDeadline`, or about that.
    package mutating func timerFired(now: MonotonicTime) -> [Action] {
        advance(to: now)
        guard let deadline = nextDeadline, latest >= deadline else { return [] }
        switch state {
        case .resting:
            state = .opening
            return [.open]
        case .settled:
            return dump(.poll)
        case .gathering(let burst):
            return dump(.burst(burst, isOverdue: latestReport(of: burst) <= latest))
        case .dumping:
            return socketFailed(now: latest)
        case .stopped, .opening:
            return []
        }
    }

    /// When to call `timerFired` next.
    package var nextDeadline: MonotonicTime? {
        switch state {
        case .stopped, .opening: nil
        case .resting(let time): time
        case .settled(let time): max(time, dumpsRestUntil)
        case .gathering(let burst): max(deadline(of: burst), dumpsRestUntil)
        case .dumping(let dump): dump.begun + Self.dumpTimeout
        }
    }

    private func deadline(of burst: Burst) -> MonotonicTime {
        min(burst.last + configuration.quietPeriod, latestReport(of: burst))
    }

    /// From then on it is reported whatever goes on.
    private func latestReport(of burst: Burst) -> MonotonicTime {
        burst.first + configuration.quietPeriod * 3
    }

    private var nextPoll: MonotonicTime {
        guard latest < carrierIsUncertainUntil else { return latest + configuration.pollInterval }
        let interval = max(configuration.quietPeriod / 4, Self.shortestPollInterval)
        return latest + min(interval, configuration.pollInterval)
    }

    private mutating func dump(_ occasion: Occasion) -> [Action] {
        state = .dumping(Dump(occasion: occasion, begun: latest))
        return [.dump]
    }

    private mutating func publish(_ found: NetworkPath) -> [Action] {
        guard found != path else { return [] }
        path = found
        return [.publish(found)]
    }

    private mutating func advance(to now: MonotonicTime) {
        latest = max(latest, now)
    }

    /// The kernel answers in milliseconds; a table of a million routes takes it about a second.
    package static let dumpTimeout = Duration.seconds(5)
    /// A dump is inconsistent when a change falls within its millisecond, so that several in a row are rare.
    package static let maximumInterruptions = 5
    /// One may be overrun in a burst of events; several mean that the kernel does not answer as it should.
    package static let maximumFailedSocketCount = 3
    /// The kernel tells of lost carriers once a second (net/core/link_watch.c), so that the next event may be so late.
    /// A dump shows at once what is.
    package static let longestCarrierDelay = Duration.seconds(1)
    /// However short the quiet period is.
    package static let shortestPollInterval = Duration.milliseconds(20)
    /// Dumps rest for this many times as long as one took: at most a fifth of a core goes into a stream of events.
    package static let restAfterDumps = 4
    /// For a dump that was long because the process stood still.
    package static let longestRestAfterDumps = Duration.seconds(2)
}
