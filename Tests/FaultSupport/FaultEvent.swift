internal import Foundation
package import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import Synchronization

/// An event of a program under test: one line of JSON on its standard output.
package struct FaultEvent: Codable, Sendable, Hashable {
    package enum Kind: String, Codable, Sendable {
        /// The server listens: `endpoint`.
        case listening
        /// The server has a new client.
        case accepted
        /// The server has read messages with the ids `first` to `last`, without gaps: `count`.
        case received
        /// A connection of the server has ended: `reason`.
        case ended
        /// The server has stopped reading, or reads again.
        case paused, resumed
        /// The client's connection has gone `from` a state `to` another: `reason`, `attempt`, `nextAttempt`.
        case transition
        /// The client's `send` has accepted messages with the ids `first` to `last`: `count`.
        case sent
        /// The client has carried out its `attempt`th command to send, with the ids `first` to `last`: `count` were
        /// accepted.
        case done
        /// The client's `send` has refused the message with the id `first`: `reason`.
        case refused
        /// The client reports the number of messages that a connection's peer has not acknowledged: `count`.
        case lost
        /// The client's session continues over a new connection, or, with a `reason`, a new session has begun.
        case opened
        /// The client's session was lost, or has ended, with `count` messages in doubt: `reason`.
        case forgotten
        /// The relay has cut a connection after `count` bytes, in the way of `reason`.
        case cut
    }

    /// The time, in nanoseconds of `CLOCK_BOOTTIME`.
    package var t: Int64
    package var event: Kind
    package var endpoint: String?
    package var from: String?
    package var to: String?
    package var reason: String?
    package var attempt: Int?
    package var nextAttempt: Int64?
    package var count: Int?
    package var first: UInt64?
    package var last: UInt64?

    package init(_ event: Kind, at time: MonotonicTime = .now()) {
        self.t = time.nanoseconds
        self.event = event
    }

    package var time: MonotonicTime { MonotonicTime(nanoseconds: t) }

    /// The line, without its end.
    package var line: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Numbers and strings can always be encoded.
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Writes the line to standard output, whole, whichever thread calls.
    package func print() {
        let bytes = Data("\(line)\n".utf8)
        FaultEvent.output.withLock { $0.write(bytes) }
    }

    private static let output = Mutex(FileHandle.standardOutput)
}

extension FaultEvent {
    package static func listening(on endpoint: String) -> FaultEvent {
        var event = FaultEvent(.listening)
        event.endpoint = endpoint
        return event
    }

    package static func transition(from: String, to: String, reason: String, at time: MonotonicTime = .now())
        -> FaultEvent
    {
        var event = FaultEvent(.transition, at: time)
        (event.from, event.to, event.reason) = (from, to, reason)
        return event
    }

    package static func messages(_ kind: Kind, _ ids: ClosedRange<UInt64>) -> FaultEvent {
        var event = FaultEvent(kind)
        (event.first, event.last, event.count) = (ids.lowerBound, ids.upperBound, ids.count)
        return event
    }

    package static func opened(_ reason: String? = nil) -> FaultEvent {
        var event = FaultEvent(.opened)
        event.reason = reason
        return event
    }

    package static func forgotten(_ reason: String, inDoubt count: Int) -> FaultEvent {
        var event = FaultEvent(.forgotten)
        (event.reason, event.count) = (reason, count)
        return event
    }

    package static func cut(_ reason: String, after count: Int) -> FaultEvent {
        var event = FaultEvent(.cut)
        (event.reason, event.count) = (reason, count)
        return event
    }

    package static func ended(_ reason: String) -> FaultEvent {
        var event = FaultEvent(.ended)
        event.reason = reason
        return event
    }

    package static func refused(_ id: UInt64, _ reason: String) -> FaultEvent {
        var event = FaultEvent(.refused)
        (event.first, event.reason) = (id, reason)
        return event
    }

    package static func lost(_ count: Int) -> FaultEvent {
        var event = FaultEvent(.lost)
        event.count = count
        return event
    }
}
