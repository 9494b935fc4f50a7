internal import LifelineCore
package import NIOCore

/// A protocol between a connected socket and Lifeline's frames: a proxy's handshake, TLS, WebSocket.
///
/// Layers are set up one after the other, beginning next to the socket. The connection's handler is added last.
package protocol ChannelLayer: Sendable {
    /// Adds the layer to the end of a connected channel's pipeline, on its loop, and runs the layer's handshake with
    /// the peer, if it has one.
    ///
    /// - Returns: a future that succeeds on the loop when the next layer may be added, before any of its bytes is read.
    ///   It fails with the reason, a `ConnectionError` if the layer knows one.
    func add(to channel: any Channel) -> EventLoopFuture<Void>

    /// The name of the layer's handshake, for the error when it takes too long: "the TLS handshake".
    var handshakeName: String { get }

    /// Whether the layer can ask the peer for a sign of life: then it handles the outbound event `LayerPing`.
    var sendsPings: Bool { get }
}

extension ChannelLayer {
    package var sendsPings: Bool { false }
}

extension Channel {
    /// Sets up layers, then calls `completion`, which adds the handlers above. Runs on the channel's loop. When it
    /// fails, or is not done by `deadline`, the channel is closed.
    ///
    /// - Parameter lingers: whether a refused peer gets time to read the reason (see `SocketEnd.lingers`).
    func addLayers(
        _ layers: [any ChannelLayer],
        deadline: NIODeadline,
        lingering lingers: Bool = false,
        completion: @escaping (any Channel) throws -> Void
    ) -> EventLoopFuture<Void> {
        let outcome = eventLoop.makePromise(of: Void.self)
        let setup = LayerSetup(channel: self, layers: layers, outcome: outcome, completion: completion)
        setup.run(until: deadline, lingering: lingers)
        return outcome.futureResult
    }
}

/// Sets up layers. Lives until the last one is set up, or one has failed and the channel is closed.
private final class LayerSetup {
    private let channel: any Channel
    private var layers: ArraySlice<any ChannelLayer>
    private let completion: (any Channel) throws -> Void
    /// Nil once it is completed.
    private var outcome: EventLoopPromise<Void>?
    private var timer: Scheduled<Void>?
    private let socketEnd = SocketEnd()

    init(
        channel: any Channel,
        layers: [any ChannelLayer],
        outcome: EventLoopPromise<Void>,
        completion: @escaping (any Channel) throws -> Void
    ) {
        self.channel = channel
        self.layers = layers[...]
        self.outcome = outcome
        self.completion = completion
    }

    func run(until deadline: NIODeadline, lingering lingers: Bool) {
        socketEnd.lingers = lingers
        timer = channel.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
            self.end(with: .failure(HandshakeTimeout(handshakeName: self.layers.first?.handshakeName ?? "")))
            self.socketEnd.lingers = false
            self.channel.triggerUserOutboundEvent(SocketCut(), promise: nil)
        }
        // Not every layer notices a peer that goes away.
        channel.closeFuture.assumeIsolated().whenComplete { [weak self] _ in
            self?.end(with: .failure(HandshakeCut()))
            self?.timer?.cancel()
        }
        do {
            try channel.pipeline.syncOperations.addHandler(socketEnd, position: .first)
        } catch {
            end(with: .failure(error))
        }
        addNext()
    }

    private func addNext() {
        guard outcome != nil else { return }
        guard let layer = layers.first else {
            // No layer refuses from here on, so a cut need not wait.
            socketEnd.lingers = false
            return end(with: Result { try completion(channel) })
        }
        layer.add(to: channel).assumeIsolated().whenComplete { result in
            switch result {
            case .failure(let error):
                self.end(with: .failure(error))
            case .success:
                self.layers.removeFirst()
                self.addNext()
            }
        }
    }

    private func end(with result: Result<Void, any Error>) {
        guard let outcome else { return }
        self.outcome = nil
        switch result {
        case .success: timer?.cancel()
        case .failure: endOutput()
        }
        outcome.completeWith(result)
    }

    /// Lets the layers send their ends, without waiting for those of the peer. The timer limits the time for it.
    private func endOutput() {
        let ended = channel.eventLoop.makePromise(of: Void.self)
        ended.futureResult.assumeIsolated().whenComplete { _ in
            self.channel.triggerUserOutboundEvent(SocketCut(), promise: nil)
        }
        channel.close(mode: .output, promise: ended)
    }
}

/// The error of a layer's handshake that was not done in time.
struct HandshakeTimeout: Error {
    let handshakeName: String
}

/// The error of a connection that ended before a layer's handshake was done.
struct HandshakeCut: Error {
    /// The error of the operating system or the layer; nil when the peer just went away.
    var cause: (any Error)?
}
