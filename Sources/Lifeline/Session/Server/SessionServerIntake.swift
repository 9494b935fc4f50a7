internal import LifelineCore
internal import LifelineMessages
internal import LifelineProtos
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// Takes the frames of one of a server's connections: the hello, then those of the session that the connection belongs
/// to.
final class SessionServerIntake: Sendable {
    typealias Frame = Lifeline_Session_V1_Frame

    /// What a client says first.
    struct Hello: Sendable {
        let hello: SessionHello
        let name: String
        let metadata: SessionMetadata
    }

    private enum State {
        /// Can go to: deciding, over.
        case waiting
        /// The server decides whether to let the client in, which has nothing to say meanwhile but goodbye. Can go to:
        /// attached, over.
        ///
        /// A goodbye to a session that is known is kept for that session, as it ends it: the client is let in first,
        /// even if it has left meanwhile.
        indirect case deciding(resumes: Bool, goodbye: (Frame, byteCount: Int)?)
        /// Frames are the session's. Can go to: over.
        case attached(SessionEngine, id: UInt64)
        case over
    }

    /// The most bytes of a frame before the client is let in: several times a hello's.
    static let openingFrameLimit = 64 << 10

    /// Opens with the hello, or with what came instead.
    let hello = Latch<Result<Hello, SessionHelloFailure>>()
    /// Opens when the client has ended its side, or the connection has failed.
    let inputOver = Latch<Void>()
    private let state = NIOLockedValueBox(State.waiting)

    /// Frames are a session's from now on. Returns those that came before, as far as they count; nil when the
    /// connection is over.
    func attach(to engine: SessionEngine, as id: UInt64) -> [(Frame, byteCount: Int)]? {
        let frames = state.withLockedValue { state -> [(Frame, byteCount: Int)]? in
            guard case .deciding(_, let goodbye) = state else { return nil }
            state = .attached(engine, id: id)
            return goodbye.map { [$0] } ?? []
        }
        // A goodbye is the last thing that is said.
        if frames?.isEmpty == false { inputOver.open(with: ()) }
        return frames
    }

    /// What comes is dropped.
    func end() {
        state.withLockedValue { $0 = .over }
        hello.open(with: .failure(.ended))
    }

    private func begin(_ frame: Frame) {
        guard case .hello(let message)? = frame.kind else { return fail("A frame came before the session was opened.") }
        do {
            let decoded = try SessionHello(message)
            guard message.metadata.count <= SessionPayload.maximumEntryCount else {
                return fail("A hello has \(SessionPayload.maximumEntryCount) entries of metadata at most.")
            }
            let length = message.withNameUTF8Span { $0.span.count } + message.metadata.contentLength
            guard length <= SessionLimits.maximumHelloLength else {
                return fail(
                    "The name and the metadata of a hello take \(SessionLimits.maximumHelloLength) bytes at most."
                )
            }
            state.withLockedValue { $0 = .deciding(resumes: decoded.session != nil, goodbye: nil) }
            let metadata = message.metadata.asMetadata
            hello.open(with: .success(Hello(hello: decoded, name: message.name, metadata: metadata)))
        } catch {
            fail(error.message)
        }
    }

    private func fail(_ message: String) {
        state.withLockedValue { $0 = .over }
        hello.open(with: .failure(.violation(message)))
    }
}

// On the connection's loop.
extension SessionServerIntake: MessageIntake {
    /// Frames of heartbeats carry acknowledgements.
    var seesHeartbeats: Bool { true }

    func consume(_ frame: Frame, byteCount: Int) -> Bool {
        let state = state.withLockedValue { state in
            if case .deciding(let resumes, nil) = state, case .goodbye? = frame.kind {
                state = .deciding(resumes: resumes, goodbye: (frame, byteCount))
            }
            return state
        }
        switch state {
        case .waiting:
            if frame.isHeartbeat { return false }
            begin(frame)
        case .attached(let engine, let id):
            // A goodbye is the last thing that is said.
            return !engine.received(frame, byteCount: byteCount, on: id) || !frame.isHeartbeat
        case .deciding(let resumes, _):
            // What cannot wait for the welcome is dropped; the welcome tells it how far this side is.
            if case .goodbye? = frame.kind, !resumes { inputOver.open(with: ()) }
            return !frame.isHeartbeat
        case .over:
            break
        }
        return true
    }

    func batchEnded() {
        if case .attached(let engine, _) = state.withLockedValue({ $0 }) { engine.batchEnded() }
    }
}

extension SessionServerIntake: MessageSink {
    var intake: (any MessageIntake<Frame>)? { self }

    /// All frames were taken before.
    func receive(_ frames: [Frame], cost: Int) -> ReadDemand { .more }

    func finish(throwing error: ConnectionError?) {
        switch state.withLockedValue({ $0 }) {
        case .attached(let engine, let id): engine.inputEnded(error, on: id)
        // The session hears of the goodbye first.
        case .deciding(resumes: true, goodbye: _?): return
        case .waiting, .deciding, .over: break
        }
        inputOver.open(with: ())
        hello.open(with: .failure(.ended))
    }
}

extension ConnectionConfiguration {
    /// The same for what decodes the frames of a session. Beyond three times its length a frame takes up 64 KiB at
    /// most: with as many entries and details as it may have, some 32.
    var forSessionFrames: ConnectionConfiguration {
        var configuration = self
        configuration.decodingOptions.memoryLimit = min(decodingOptions.memoryLimit, 64 << 10)
        return configuration
    }
}

/// Takes the frames of one of a server's connections to its intake.
typealias SessionReceiver = MessageReceiver<SessionServerIntake>

extension SessionReceiver {
    init(configuration: ConnectionConfiguration) {
        self.init(configuration: configuration.forSessionFrames, heartbeat: .session, sink: SessionServerIntake())
    }
}
