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

    fileprivate typealias Admission = SessionAdmission<(Frame, byteCount: Int), (engine: SessionEngine, id: UInt64)>

    /// The most bytes of a frame before the client is let in: several times a hello's.
    static let openingFrameLimit = 64 << 10

    /// Opens with the hello, or with what came instead.
    let hello = Latch<Result<Hello, SessionHelloFailure>>()
    /// Opens when the client has ended its side, or the connection has failed.
    let inputOver = Latch<Void>()
    private let admission = NIOLockedValueBox(Admission())

    /// Frames are a session's from now on. Returns those that came before, as far as they count; nil when the
    /// connection is over.
    func attach(to engine: SessionEngine, as id: UInt64) -> [(Frame, byteCount: Int)]? {
        let frames = admission.withLockedValue { $0.attach(to: (engine, id)) }
        // A goodbye is the last thing that is said.
        if frames?.isEmpty == false { inputOver.open(with: ()) }
        return frames
    }

    /// What comes is dropped.
    func end() {
        admission.withLockedValue { $0.end() }
        hello.open(with: .failure(.ended))
    }

    private func take(_ frame: Frame) {
        guard case .hello(let message)? = frame.kind else { return }
        do {
            let decoded = try SessionHello(message)
            guard message.metadata.count <= SessionPayload.maximumEntryCount else {
                return refuse("A hello has \(SessionPayload.maximumEntryCount) entries of metadata at most.")
            }
            let length = message.withNameUTF8Span { $0.span.count } + message.metadata.contentLength
            guard length <= SessionLimits.maximumHelloLength else {
                return refuse(
                    "The name and the metadata of a hello take \(SessionLimits.maximumHelloLength) bytes at most."
                )
            }
            let metadata = message.metadata.asMetadata
            hello.open(with: .success(Hello(hello: decoded, name: message.name, metadata: metadata)))
        } catch {
            refuse(error.message)
        }
    }

    private func refuse(_ message: String) {
        admission.withLockedValue { $0.end() }
        hello.open(with: .failure(.violation(message)))
    }
}

// On the connection's loop.
extension SessionServerIntake: MessageIntake {
    /// Frames of heartbeats carry acknowledgements.
    var seesHeartbeats: Bool { true }

    func consume(_ frame: Frame, byteCount: Int) -> Bool {
        switch admission.withLockedValue({ $0.received((frame, byteCount), frame.admissionKind) }) {
        case .nothing: break
        case .drop: return true
        case .decide: take(frame)
        case .refuse: refuse("A frame came before the session was opened.")
        case .leave: inputOver.open(with: ())
        case .handOver(let session):
            // A goodbye is the last thing that is said.
            return !session.engine.received(frame, byteCount: byteCount, on: session.id) || !frame.isHeartbeat
        }
        return !frame.isHeartbeat
    }

    func batchEnded() {
        admission.withLockedValue { $0.session }?.engine.batchEnded()
    }
}

extension SessionServerIntake: MessageSink {
    var intake: (any MessageIntake<Frame>)? { self }

    /// All frames were taken before.
    func receive(_ frames: [Frame], cost: Int) -> ReadDemand { .more }

    func finish(throwing error: ConnectionError?) {
        switch admission.withLockedValue({ $0.inputEnded() }) {
        case .nothing: return
        case .handOver(let session): session.engine.inputEnded(error, on: session.id)
        case .drop, .decide, .refuse, .leave: break
        }
        inputOver.open(with: ())
        hello.open(with: .failure(.ended))
    }
}

extension Lifeline_Session_V1_Frame {
    fileprivate var admissionKind: SessionServerIntake.Admission.Kind {
        switch kind {
        case .hello(let hello): .hello(isResume: !hello.sessionID.isEmpty)
        case .goodbye: .goodbye
        default: isHeartbeat ? .heartbeat : .other
        }
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
