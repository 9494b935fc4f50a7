internal import Glibc
internal import Lifeline
internal import LifelineCore

/// The steps of a client's connection, and its errors, in words for the user of a command.
struct StepWords: Sendable {
    /// The other end of the socket, in words.
    private let peer: String
    private let maximumAttempts: Int
    /// Whether the library's own names and reasons are printed instead.
    let isVerbose: Bool
    /// Whether the command has the option --framing.
    private let hasFramings: Bool

    /// Makes words for the errors of a server's connection, of a connection that is made once, or of listening.
    init(peer: String, isVerbose: Bool, hasFramings: Bool = true) {
        self.peer = peer
        self.isVerbose = isVerbose
        self.hasFramings = hasFramings
        maximumAttempts = 1
    }

    init(for endpoint: Endpoint, _ configuration: ClientConfiguration, isVerbose: Bool) {
        peer = configuration.connection.proxyAddress(for: endpoint).map { "the proxy \($0)" } ?? endpoint.name
        maximumAttempts = configuration.backoff.maximumAttempts ?? .max
        self.isVerbose = isVerbose
        hasFramings = true
    }

    // MARK: Steps

    /// Returns a step as a line for standard error; nil for one that is not reported.
    func line(for event: ClientEvent) -> String? {
        if isVerbose { return "\(event)" }
        guard var text = text(of: event.transition) else { return nil }
        if let count = event.undeliveredMessageCount, count > 0 {
            text += count == 1 ? "; 1 message did not arrive" : "; \(count) messages did not arrive"
        }
        if event.missedCount > 0 { text += "; \(event.missedCount) steps before were too fast to be followed" }
        return text
    }

    private func text(of transition: ConnectionTransition) -> String? {
        switch transition.to {
        case .idle, .draining, .closed, .gaveUp: nil
        case .ready: "connected to \(peer)"
        case .waitingForNetwork: "there is no network that leads to \(peer); waiting for one"
        case .backingOff: "\(problem(of: transition)); \(nextTry(after: transition))"
        case .connecting:
            switch transition.from {
            case .waitingForNetwork: "the network is back; connecting to \(peer)"
            case .ready: "\(problem(of: transition)); connecting again"
            // The end of the attempt is reported.
            default: nil
            }
        }
    }

    private func problem(of transition: ConnectionTransition) -> String {
        if let error = transition.reason.error {
            let problem = problem(of: error)
            return transition.from == .ready ? "lost the connection: \(problem)" : problem
        }
        return transition.reason.code == .closedByPeer
            ? "\(peer) ended the connection" : "lost the connection: \(sentence(transition.reason.asError.message))"
    }

    private func nextTry(after transition: ConnectionTransition) -> String {
        let delay = (transition.nextAttempt ?? transition.time) - transition.time
        return "next try in \(delay.inTenths) s, \(transition.attempt + 1) of \(maximumAttempts)"
    }

    // MARK: Errors

    /// Returns the failure in words, without a period.
    func problem(of error: ConnectionError) -> String {
        if isVerbose { return "\(error)" }
        if let framing = error.cause as? FramingError {
            return error.code == .messageRefused
                ? "a message to \(peer) is longer than --limit allows" : "\(peer) \(offense(of: framing))"
        }
        guard let number = error.systemErrorNumber else { return sentence(error.message) }
        return switch (error.code, number) {
        case (.connectFailed, ECONNREFUSED): "\(peer) refused the connection"
        case (.connectFailed, ENOENT): "there is no socket \(peer)"
        case (.connectFailed, EHOSTUNREACH), (.connectFailed, ENETUNREACH): "there is no way to \(peer)"
        case (.connectFailed, _): "cannot connect to \(peer): \(String(cString: strerror(number)))"
        case (.closedByPeer, _): "\(peer) reset the connection"
        case (.addressInUse, _): sentence(error.message)
        default: "\(sentence(error.message)) (\(String(cString: strerror(number))))"
        }
    }

    /// Returns the peer's mistake, in words.
    private func offense(of error: FramingError) -> String {
        switch error.code {
        case .frameTooLarge: "sent a message that is longer than --limit allows"
        case .truncatedFrame: "ended the connection inside a message"
        default: "sent a message with an invalid length" + (hasFramings ? "; is --framing right?" : "")
        }
    }

    private func sentence(_ message: String) -> String {
        message.hasSuffix(".") ? String(message.dropLast()) : message
    }

    /// Returns the failure of a command, with advice for its user.
    func failure(for error: ConnectionError, status: CommandFailure.Status? = nil) -> CommandFailure {
        let status = status ?? CommandFailure.status(of: error)
        if isVerbose { return CommandFailure(status: status, message: "\(error)") }
        let problem = problem(of: error)
        let isUnreachable = error.code == .connectFailed && error.systemErrorNumber != nil
        let advice = isUnreachable ? " Check that a program listens there." : ""
        let sentence = problem.prefix(1).uppercased() + problem.dropFirst() + (problem.hasSuffix("?") ? "" : ".")
        return CommandFailure(status: status, message: sentence + advice)
    }

    /// Returns the failure of a client that has given up.
    func failure(forGivingUp reason: TransitionReason) -> CommandFailure {
        let failure = failure(for: reason.asError, status: reason.isMisuse ? .badData : .unavailable)
        if isVerbose || reason.code != .attemptsUsedUp || maximumAttempts == 1 { return failure }
        return CommandFailure(
            status: failure.status,
            message: "\(failure.message) Gave up after \(maximumAttempts) attempts."
        )
    }
}

extension TransitionReason {
    fileprivate var isMisuse: Bool { error?.code == .invalidConfiguration }
}

extension Endpoint {
    /// Host and port, or the path of a Unix socket.
    var name: String { address.authority.escaped() }
}

extension ConnectionConfiguration {
    /// Returns host and port of the proxy for connections to an endpoint.
    fileprivate func proxyAddress(for endpoint: Endpoint) -> String? {
        var environment: [String: String] = [:]
        for name in ProxyConfiguration.environmentVariables {
            environment[name] = getenv(name).map { String(cString: $0) }
        }
        // An invalid environment fails the connection later.
        let server = try? proxy?.server(for: endpoint, environment: environment)
        return server.map { "\($0.host):\($0.port)" }
    }
}
