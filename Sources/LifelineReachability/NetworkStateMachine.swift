package import LifelineCore

/// Decides when to ask the kernel for the state of the network, and when its answer is reported.
///
/// An event is only a sign that something changed: some changes have no events (the routes that go with a link), and
/// events get lost when they come too fast. So every change leads to a dump of everything, once there were no events
/// for the quiet period, at the latest after three of them. A flap shorter than the quiet period is one change, or none
/// when everything is as before; going down and coming up are treated alike. A poll finds changes without events, every
/// few seconds, and much more often while the kernel may be holding back an event.
///
/// It does no I/O and reads no clock. `now` must not go back; if it does, the latest one that was seen counts.
package struct NetworkStateMachine: Sendable {
    private enum State {
        /// Not started. Can go to: opening.
        case stopped
        /// The socket is being opened. Can go to: dumping, resting.
        case opening
        /// There is no socket until this time. Can go to: opening.
        case resting(until: MonotonicTime)
        /// The path is known. Can go to: gathering, dumping, resting.
        case settled(pollAt: MonotonicTime)
        /// Something happened, and more may. Can go to: dumping, resting.
        case gathering(Burst)
        /// The kernel is being asked. Can go to: settled, gathering, resting.
        case dumping(Dump)
    }

    /// A group of events that belong together.
    private struct Burst {
        var first: MonotonicTime
        var last: MonotonicTime
        /// The number of inconsistent dumps in a row.
        var interruptions = 0
    }

    private struct Dump {
        let occasion: Occasion
        let begun: MonotonicTime
        /// The events after it began.
        var burst: Burst?
    }

    private enum Occasion {
        /// The socket is new: any result is reported.
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
    /// The time until which the kernel may report a lost carrier late.
    private var carrierIsUncertainUntil = MonotonicTime(nanoseconds: .min)
    /// The time before which no dump begins, so that dumps of large tables leave time for other work.
    private var dumpsRestUntil = MonotonicTime(nanoseconds: .min)
    /// The number of sockets in a row that did not last for one dump.
    private var failedSocketCount = 0
    /// The path that was published last.
    package private(set) var path: NetworkPath?

    package init(configuration: NetworkMonitorConfiguration) {
        self.configuration = configuration
    }

    /// A step for the driver.
    package enum Action: Hashable, Sendable {
        /// Close the socket, if there is one, and open a new one; then call `opened`, or `openingFailed`.
        case open
        /// Begin a dump on the socket; then call `dumpEnded`, or `socketFailed`.
        case dump
        /// Report that this is the path now.
        case publish(NetworkPath)
    }

    /// Begins monitoring.
    package mutating func started(now: MonotonicTime) -> [Action] {
        advance(to: now)
        guard case .stopped = state else { return [] }
        state = .opening
        return [.open]
    }

    /// Notes that there is a socket, which receives events from now on.
    package mutating func opened(now: MonotonicTime) -> [Action] {
        advance(to: now)
        guard case .opening = state else { return [] }
        return dump(.opening)
    }

    /// Notes that the system refuses a socket.
    package mutating func openingFailed(now: MonotonicTime) -> [Action] {
        advance(to: now)
        guard case .opening = state else { return [] }
        state = .resting(until: latest + configuration.pollInterval)
        return publish(.unknown)
    }

    /// Notes that the socket failed, because events came faster than they were read, because a message was malformed,
    /// or for another reason. Events were lost.
    package mutating func socketFailed(now: MonotonicTime) -> [Action] {
        advance(to: now)
        switch state {
        case .dumping(let dump) where dump.occasion.isOpening:
            failedSocketCount += 1
            let isHopeless = failedSocketCount >= Self.maximumFailedSocketCount
            state = .resting(until: latest + (isHopeless ? configuration.pollInterval : configuration.quietPeriod))
            // The known path stays the best guess for a while, because events may be coming too fast for one dump.
            return isHopeless || path == nil ? publish(.unknown) : []
        case .dumping, .settled, .gathering:
            // The flood of events may be going on.
            state = .resting(until: latest + configuration.quietPeriod)
            return []
        case .stopped, .opening, .resting:
            return []
        }
    }

    /// The subject of an event.
    package enum Subject: Hashable, Sendable, CaseIterable {
        case link
        /// An address or a route.
        case other
    }

    /// Receives an event: something changed.
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

    /// Receives the result of a dump, which is consistent unless something changed meanwhile.
    package mutating func dumpEnded(_ found: NetworkPath, isConsistent: Bool, now: MonotonicTime) -> [Action] {
        advance(to: now)
        guard case .dumping(let dump) = state else { return [] }
        failedSocketCount = 0
        dumpsRestUntil = latest + min((latest - dump.begun) * Self.restAfterDumps, Self.longestRestAfterDumps)
        if !isConsistent {
            let interruptions = (dump.occasion.earlier?.interruptions ?? 0) + 1
            // If changes never end, a possibly wrong result is better than none. The poll corrects it.
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
                // The result may be from the middle of a flap, so it gets the time of an event.
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

    /// Handles the timer, at about `nextDeadline`.
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

    /// The time at which to call `timerFired` next.
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

    /// Returns the time from which on a burst is reported in any case.
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

    /// The time limit of a dump. The kernel answers in milliseconds; a table of a million routes takes about a second.
    package static let dumpTimeout = Duration.seconds(5)
    /// The most inconsistent dumps in a row. A dump is inconsistent when a change falls within its millisecond, so
    /// several in a row are rare.
    package static let maximumInterruptions = 5
    /// The most failed sockets in a row. One may be overrun in a burst of events; several mean that the kernel does not
    /// answer correctly.
    package static let maximumFailedSocketCount = 3
    /// The kernel reports lost carriers once a second (net/core/link_watch.c), so the next event may be this late. A
    /// dump shows the state at once.
    package static let longestCarrierDelay = Duration.seconds(1)
    /// The shortest time between polls, for any quiet period.
    package static let shortestPollInterval = Duration.milliseconds(20)
    /// Dumps pause for this many times the duration of one, so that a stream of events takes at most a fifth of a core.
    package static let restAfterDumps = 4
    /// The longest pause, for a dump that was long because the process was suspended.
    package static let longestRestAfterDumps = Duration.seconds(2)
}
