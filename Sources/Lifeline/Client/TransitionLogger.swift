internal import LifelineCore
internal import Logging

/// Writes a client's steps to its log, in order, as a subscriber like any other.
struct TransitionLogger {
    private let logger: Logger
    private var events: ClientEvents.AsyncIterator
    private var connectionCount = 0

    init(events: ClientEvents, logger: Logger) {
        self.events = events.makeAsyncIterator(from: 1)
        self.logger = logger
    }

    /// Logs each step until the client is closed. Cancelling the client's task closes it.
    mutating func run() async {
        while let event = await events.nextUninterrupted() { log(event) }
    }

    private mutating func log(_ event: ClientEvent) {
        let transition = event.transition
        if transition.to == .ready { connectionCount += 1 }
        logger.log(
            level: level(of: transition),
            "\(message(for: transition.to))",
            metadata: metadata(for: event)
        )
    }

    /// A client without trouble logs nothing at `notice` and above.
    private func level(of transition: ConnectionTransition) -> Logger.Level {
        switch transition.to {
        case .gaveUp: .error
        case .backingOff, .waitingForNetwork: transition.from == .idle ? .debug : .notice
        case .ready: connectionCount > 1 || transition.attempt > 1 ? .notice : .debug
        case .connecting: transition.from == .ready && transition.reason.code != .reconnectRequested ? .notice : .debug
        case .idle, .draining, .closed: .debug
        }
    }

    private func message(for state: ConnectionState) -> String {
        switch state {
        case .idle: "The client was made"
        case .waitingForNetwork: "Waiting for the network"
        case .connecting: "Connecting"
        case .ready: "Connected"
        case .backingOff: "Not connected; the next attempt is due later"
        case .draining: "Closing"
        case .gaveUp: "Gave up connecting until the network changes or reconnect() is called"
        case .closed: "Closed"
        }
    }

    private func metadata(for event: ClientEvent) -> Logger.Metadata {
        let transition = event.transition
        var metadata: Logger.Metadata = [
            "connection": "\(connectionCount)",
            "state": "\(transition.to)",
            "reason": "\(transition.reason)",
        ]
        if transition.attempt > 0 { metadata["attempt"] = "\(transition.attempt)" }
        if let next = transition.nextAttempt { metadata["next-attempt-in"] = "\(next - transition.time)" }
        if let count = event.undeliveredMessageCount { metadata["undelivered-messages"] = "\(count)" }
        return metadata
    }
}
