internal import LifelineCore
package import NIOCore

/// A protocol between a connected socket and Lifeline's frames: a proxy's handshake, TLS, WebSocket.
///
/// Layers are set up one after the other, the one next to the socket first; only then is the connection's handler
/// added.
package protocol ChannelLayer: Sendable {
    /// Adds the layer to the end of the pipeline of a channel that is connected, on its loop, and shakes hands with the
    /// peer where the layer does that.
    ///
    /// - Returns: succeeds on the loop when what lies above may be added, before any of its bytes is read; fails with
    ///   the reason, a `ConnectionError` where the layer knows one.
    func add(to channel: any Channel) -> EventLoopFuture<Void>

    /// What the layer does with its peer, for an error that says what took too long: "the TLS handshake".
    var handshakeName: String { get }

    /// Whether the layer can ask the peer for a sign of life: it takes `LayerPing` as an outbound event.
    var sendsPings: Bool { get }
}

extension ChannelLayer {
    package var sendsPings: Bool { false }
}

extension Channel {
    /// Sets layers up, then calls `completion`, which adds what lies above. On the channel's loop. When that has
    /// failed, or has taken longer than until `deadline`, the channel is closed.
    ///
    /// - Parameter lingers: whether a peer that a layer refuses is given time to read why (see `SocketEnd.lingers`).
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

/// Sets layers up; lives until the last one is, or one has failed and the channel is closed.
private final class LayerSetup {
    private let channel: any Channel
    private var layers: ArraySlice<any ChannelLayer>
    private let completion: (any Channel) throws -> Void
    /// Nil once it is kept.
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
        // A peer that goes away is not every layer's to notice.
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
            // No layer refuses from here on, and a cut is a cut.
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

    /// Lets the layers say that it is the end, and does not wait for the peer to say so, too. The timer sees to it that
    /// they do not take too long over it.
    private func endOutput() {
        let ended = channel.eventLoop.makePromise(of: Void.self)
        ended.futureResult.assumeIsolated().whenComplete { _ in
            self.channel.triggerUserOutboundEvent(SocketCut(), promise: nil)
        }
        channel.close(mode: .output, promise: ended)
    }
}

/// A layer's handshake was not done in time.
struct HandshakeTimeout: Error {
    let handshakeName: String
}

/// The connection ended before a layer's handshake was done.
struct HandshakeCut: Error {
    /// What the operating system or the layer said of it; nil when the peer just went away.
    var cause: (any Error)?
}
