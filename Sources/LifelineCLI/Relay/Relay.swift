internal import Lifeline
internal import LifelineCore

/// Passes the messages of connections on, to and from a server.
struct Relay<Request: CarriedContent, Reply: CarriedContent>: Sendable {
    /// How one direction of a connection has ended.
    private enum End {
        /// By its sender, and its receiver was told.
        case inOrder
        /// The receiver takes nothing any more. What it has sent still goes the other way.
        case receiverFailed
        /// The sender's connection failed, or what it has sent cannot be passed on. The receiver has what came before.
        case senderFailed
        /// The other direction has failed.
        case stopped
    }

    private let endpoint: Endpoint
    private let configuration: ConnectionConfiguration
    private let traffic: Traffic
    private let isVerbose: Bool
    private let tell: @Sendable (String) -> Void

    /// - Parameters:
    ///   - endpoint: the server.
    ///   - tell: gets a line for each step of a connection.
    init(
        to endpoint: Endpoint,
        configuration: ConnectionConfiguration,
        traffic: Traffic,
        isVerbose: Bool,
        tell: @escaping @Sendable (String) -> Void
    ) {
        self.endpoint = endpoint
        self.configuration = configuration
        self.traffic = traffic
        self.isVerbose = isVerbose
        self.tell = tell
    }

    /// Passes messages between a client and a connection to the server, until both have ended.
    ///
    /// - Throws: `ConnectionProblem` when the server cannot be reached; what showing messages fails with.
    func carry(_ client: Connection<Request, Reply>) async throws {
        let number = await traffic.nextConnection()
        tell("connection \(number) is that of \(client.remoteEndpoint.name)")
        // Whether the error is that of connecting.
        var isConnected = false
        do {
            try await withConnection(
                to: endpoint,
                configuration: configuration,
                receiving: Reply.self,
                sending: Request.self
            ) { server in
                isConnected = true
                try await pass(client, server, number)
            }
        } catch let error as ConnectionError {
            // That a connection broke was told.
            if isConnected { return }
            throw ConnectionProblem(description: words(of: error, by: endpoint.name))
        }
    }

    private func pass(
        _ client: Connection<Request, Reply>,
        _ server: Connection<Reply, Request>,
        _ number: Int
    ) async throws {
        try await withThrowingTaskGroup(of: End.self) { group in
            group.addTask { try await pass(from: client, to: server, .toServer, number) }
            group.addTask { try await pass(from: server, to: client, .toClient, number) }
            for try await end in group where end == .senderFailed { group.cancelAll() }
        }
        try Task.checkCancellation()
        tell("connection \(number) is over")
    }

    private func pass<Message: CarriedContent, Back>(
        from sender: Connection<Message, Back>,
        to receiver: Connection<Back, Message>,
        _ direction: TrafficDirection,
        _ number: Int
    ) async throws -> End {
        let (senderName, receiverName) =
            direction == .toServer ? ("the client", "the server") : ("the server", "the client")
        do {
            for try await batch in sender.messages.batches {
                try await traffic.pass(batch, direction, of: number)
                do throws(PartialSendError) {
                    try await receiver.send(contentsOf: batch)
                } catch {
                    guard let cause = error.cause as? ConnectionError else { throw error.cause }
                    let isRefused = cause.code == .messageRefused
                    let words = words(of: cause, by: receiverName)
                    tell("connection \(number): \(isRefused ? "a message cannot be passed on: " : "")\(words)")
                    return isRefused ? .senderFailed : .receiverFailed
                }
            }
            tell("connection \(number): \(senderName) has ended its side")
            do {
                try await receiver.finishSending()
            } catch is ConnectionError {
                return .receiverFailed
            }
            return .inOrder
        } catch let error as ConnectionError {
            tell("connection \(number): \(words(of: error, by: senderName))")
            return .senderFailed
        } catch is CancellationError {
            return .stopped
        }
    }

    private func words(of error: ConnectionError, by peer: String) -> String {
        StepWords(peer: peer, isVerbose: isVerbose).problem(of: error)
    }
}
