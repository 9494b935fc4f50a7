package import LifelineCore

/// Decides when the kernel is asked what the network is like, and when its answer is news.
///
/// Events are signs that something changed and nothing more: some changes have none (the routes that go with a link), and
/// events get lost when they come too fast. So every change leads to a dump of everything, once nothing has happened for
/// the quiet period, at the latest after three of them. A flap shorter than the quiet period is thereby one change, or
/// none when everything is as before; going down and coming up are treated alike. A poll finds what no event told.
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
        let deadline: MonotonicTime
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

    /// The socket failed, because events came faster than they were read or for another reason, or what came over it makes
    /// no sense. Events were lost.
    package mutating func socketFailed(now: MonotonicTime) -> [Action] {
        advance(to: now)
        switch state {
        case .dumping(let dump) where dump.occasion.isOpening:
            // A new socket that does not last for one dump: no need to hurry with the next.
            state = .resting(until: latest + configuration.pollInterval)
            return publish(.unknown)
        case .dumping, .settled, .gathering:
            // What was too much for the socket may be going on.
            state = .resting(until: latest + configuration.quietPeriod)
            return []
        case .stopped, .opening, .resting:
            return []
        }
    }

    /// Something changed: a link, an address or a route.
    package mutating func receivedEvent(now: MonotonicTime) {
        advance(to: now)
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
            state = .settled(pollAt: latest + configuration.pollInterval)
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
            return dump(.burst(burst, isOverdue: burst.last + configuration.quietPeriod > latest))
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
        case .resting(let time), .settled(let time): time
        case .gathering(let burst): deadline(of: burst)
        case .dumping(let dump): dump.deadline
        }
    }

    private func deadline(of burst: Burst) -> MonotonicTime {
        min(burst.last + configuration.quietPeriod, burst.first + configuration.quietPeriod * 3)
    }

    private mutating func dump(_ occasion: Occasion) -> [Action] {
        state = .dumping(Dump(occasion: occasion, deadline: latest + Self.dumpTimeout))
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
}
