internal import Lifeline
internal import LifelineCore

/// How long a peer may take no bytes before it counts as not reading. A system takes no bytes until much of its buffer
/// was read: with a program that reads 20 KB a second it took none for a minute.
let slowReaderPatience = Duration.seconds(180)

extension KeepaliveConfiguration {
    /// For connections whose peers may read slowly. By default the kernel would cut one that takes no bytes for a
    /// minute.
    static var ofSlowReaders: KeepaliveConfiguration {
        var keepalive = KeepaliveConfiguration()
        keepalive.unacknowledgedTimeout = nil
        return keepalive
    }
}

/// Passes on the messages of connections, to and from a server.
struct Relay<Request: CarriedContent, Reply: CarriedContent>: Sendable {
    /// The end of one direction of a connection.
    private enum End {
        /// The sender has ended it, and the receiver was told.
        case inOrder
        /// The receiver takes no more messages. Its own messages still go the other way.
        case receiverFailed
        /// The sender's connection failed, or its message cannot be passed on. The receiver has the messages before.
        case senderFailed
        /// The other direction has failed, or the relay ends.
        case stopped
    }

    private let endpoint: Endpoint
    private let configuration: ConnectionConfiguration
    private let traffic: Traffic
    private let isVerbose: Bool
    private let tell: @Sendable (String) -> Void

    /// - Parameters:
    ///   - endpoint: the server.
    ///   - tell: receives a line for each step of a connection.
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
    /// - Throws: `ConnectionProblem`, so that the client's connection is cut, when it and the server's have not both ended
    ///   in order.
    func carry(_ client: Connection<Request, Reply>) async throws {
        // Whether the error is that of connecting.
        var (number, isConnected) = (0, false)
        do {
            number = try await traffic.nextConnection()
            tell("connection \(number) is that of \(client.remoteEndpoint.name)")
            try await withConnection(
                to: endpoint,
                configuration: configuration,
                receiving: Reply.self,
                sending: Request.self
            ) { server in
                isConnected = true
                try await pass(client, server, number)
            }
        } catch let error as ConnectionError where !isConnected {
            throw ConnectionProblem(description: words(of: error, by: endpoint.name))
        } catch let error as ConnectionError {
            // Both sides had ended, but the server has not taken everything.
            tell("connection \(number): \(words(of: error, by: "the server"))")
            throw ConnectionProblem.told
        } catch {
            // The end of the command reports it.
            throw ConnectionProblem.told
        }
    }

    private func pass(
        _ client: Connection<Request, Reply>,
        _ server: Connection<Reply, Request>,
        _ number: Int
    ) async throws {
        let haveEndedInOrder = try await withThrowingTaskGroup(of: End.self) { group in
            group.addTask { try await pass(from: client, to: server, .toServer, number) }
            group.addTask { try await pass(from: server, to: client, .toClient, number) }
            var haveEndedInOrder = true
            for try await end in group where end != .inOrder {
                haveEndedInOrder = false
                if end == .senderFailed { group.cancelAll() }
            }
            return haveEndedInOrder
        }
        try Task.checkCancellation()
        tell("connection \(number) is over")
        if haveEndedInOrder { return }
        // Neither side may mistake the end for a regular one. So both are cut, which loses bytes on their way.
        async let clientLacks = client.waitForDelivery(patience: slowReaderPatience)
        let serverLacks = try await server.waitForDelivery(patience: slowReaderPatience)
        for (name, count) in [("the client", try await clientLacks), ("the server", serverLacks)] where count > 0 {
            tell("connection \(number): \(name) did not read the last \(count) bytes")
        }
        throw ConnectionProblem.told
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
                try await traffic.show(batch, direction, of: number)
                do throws(PartialSendError) {
                    try await receiver.send(contentsOf: batch)
                } catch {
                    guard let cause = error.cause as? ConnectionError, !Task.isCancelled else { return .stopped }
                    let isRefused = cause.code == .messageRefused
                    let words = words(of: cause, by: receiverName)
                    tell("connection \(number): \(isRefused ? "a message cannot be passed on: " : "")\(words)")
                    return isRefused ? .senderFailed : .receiverFailed
                }
            }
            if Task.isCancelled { return .stopped }
            tell("connection \(number): \(senderName) has ended its side")
            do {
                try await receiver.finishSending()
            } catch is ConnectionError {
                return .receiverFailed
            }
            return .inOrder
        } catch let error as ConnectionError {
            if Task.isCancelled { return .stopped }
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
