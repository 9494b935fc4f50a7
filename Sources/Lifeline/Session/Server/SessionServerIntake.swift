internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// Receives the frames of one of a server's connections: the hello, and then the frames of the connection's session.
final class SessionServerIntake: Sendable {
    /// A goodbye is kept in its encoded form.
    fileprivate typealias Admission = SessionAdmission<[UInt8], (engine: SessionEngine, id: UInt64)>

    /// The largest frame in bytes before the client is let in: several times the size of a hello.
    static let openingFrameLimit = 64 << 10

    /// Opens with the hello, or with the reason why there is none.
    let hello = Latch<Result<ClientOpening, SessionHelloFailure>>()
    /// Opens when the client has ended its sending side, or the connection has failed.
    let inputOver = Latch<Void>()
    private let state = NIOLockedValueBox(State())

    private struct State {
        var admission = Admission()
        /// The connection to close when the client has ended its side; nil before `closeWhenInputIsOver`.
        var connection: (any TransportConnection)?
    }

    /// Passes all later frames to a session. Returns the earlier frames that count; nil if the connection is over.
    func attach(to engine: SessionEngine, as id: UInt64) -> [[UInt8]]? {
        let frames = state.withLockedValue { $0.admission.attach(to: (engine, id)) }
        // A goodbye is the last frame.
        if frames?.isEmpty == false { inputOver.open(with: ()) }
        return frames
    }

    /// Closes the connection when the client has ended its side, because neither side sends anything then.
    func closeWhenInputIsOver(_ connection: any TransportConnection) {
        state.withLockedValue { $0.connection = connection }
        if inputOver.value != nil { connection.close() }
    }

    /// Drops all later frames.
    func end() {
        state.withLockedValue { state in
            state.admission.end()
            state.connection = nil
        }
        hello.open(with: .failure(.ended))
    }

    private func refuse(_ message: String) {
        state.withLockedValue { $0.admission.end() }
        hello.open(with: .failure(.violation(message)))
    }

    private var session: (engine: SessionEngine, id: UInt64)? { state.withLockedValue { $0.admission.session } }
}

// Calls on the connection's loop.
extension SessionServerIntake: SessionFrameSink {
    func receive(_ frames: inout FrameRun.Iterator) -> Bool {
        if let session { return session.engine.receive(&frames, over: session.id) }
        while let frame = frames.next() {
            switch receive(frame) {
            case .nothing: break
            case .drop: return false
            case .decide, .leave, .refuse: break
            case .handOver(let session): return session.engine.receive(&frames, behind: frame, over: session.id)
            }
        }
        return true
    }

    /// Receives a frame of a connection that had no session when it arrived.
    private func receive(_ frame: UnsafeRawBufferPointer) -> Admission.Step {
        var opening: Result<ClientOpening, SessionViolation>?
        let kind: Admission.Kind
        do throws(SessionViolation) {
            let inner = try InboundFrame(parsing: frame)
            switch inner.kind {
            case .hello?:
                let result = Result { () throws(SessionViolation) in try ClientOpening(parsing: inner.body) }
                opening = result
                kind = .hello(isResume: (try? result.get())?.credentials != nil)
            case .goodbye?: kind = .goodbye
            case .ping?, .pong?, nil: kind = .heartbeat
            default: kind = .other
            }
        } catch {
            kind = .other
            opening = .failure(error)
        }
        let step = state.withLockedValue { $0.admission.received([UInt8](frame), kind) }
        switch step {
        case .decide:
            switch opening {
            case .success(let hello)?: self.hello.open(with: .success(hello))
            case .failure(let violation)?: refuse(violation.message)
            case nil: break
            }
        case .refuse:
            if case .failure(let violation)? = opening {
                refuse(violation.message)
            } else {
                refuse(SessionViolation.notOpened.message)
            }
        case .leave: inputOver.open(with: ())
        case .nothing, .drop, .handOver: break
        }
        return step
    }

    func batchEnded() { session?.engine.batchEnded() }

    func finish(throwing error: ConnectionError?) {
        switch state.withLockedValue({ $0.admission.inputEnded() }) {
        case .nothing: return
        case .handOver(let session): session.engine.inputEnded(error, on: session.id)
        case .drop, .decide, .refuse, .leave: break
        }
        inputOver.open(with: ())
        hello.open(with: .failure(.ended))
        state.withLockedValue { $0.connection }?.close()
    }
}
