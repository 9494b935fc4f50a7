internal import LifelineCore
internal import LifelineProtos

extension SessionFrame<SessionPayload> {
    /// What a frame says. Pings and pongs, and kinds of later versions, say nothing: their numbers count all the same.
    ///
    /// - Parameter byteCount: how long it was on the wire.
    init(_ frame: Lifeline_Session_V1_Frame, byteCount: Int, now: MonotonicTime) throws(SessionViolation) {
        let place = try SessionPlace.read(sequence: frame.sequence, urgentSequence: frame.urgentSequence)
        let kind = frame.kind
        switch kind {
        case .hello?, .welcome?, .goodbye?, .ping?, .pong?: if place != nil { throw .wrongPlace }
        case .request?, .response?, .push?, .cancel?, nil: break
        }
        switch kind {
        case .hello(let hello)?: self = .hello(try SessionHello(hello))
        case .welcome(let welcome)?: self = .welcome(try SessionWelcome(welcome))
        case .goodbye(let goodbye)?: self = .goodbye(SessionGoodbye(goodbye))
        case .request(let request)?:
            let timeout = request.timeoutMilliseconds
            let deadline = timeout == 0 ? nil : now + Duration(milliseconds: timeout)
            self.init(frame, place, .request(serial: request.serial, deadline: deadline, .request(request)))
        case .response(let response)?:
            // Only the sender knows whether there were pushes; its lane says it.
            self.init(frame, place, .response(serial: response.serial, endsPushes: false, .response(response)))
        case .push(let push)?: self.init(frame, place, .push(serial: push.serial, .push(push)))
        case .cancel(let cancel)?: self.init(frame, place, .cancel(serial: cancel.serial))
        case .ping?, .pong?, nil: self.init(frame, place, .blank)
        }
        // Only what carries content is kept. The rest of a frame is kept with it, and must not be more than it counts for.
        if byteCount > Self.usualOverhead, case .message(_, _, let message) = self, message.content != nil {
            let overhead = byteCount - (message.byteCount - SessionPayload.messageOverhead)
            guard overhead > Self.usualOverhead else { return }
            // Fields that come again and again take far more memory than bytes.
            guard overhead <= Self.maximumOverhead, frame.memoryByteCount <= message.byteCount * 3 / 2 else {
                throw .padded(byteCount: overhead)
            }
        }
    }

    private init(
        _ frame: Lifeline_Session_V1_Frame,
        _ place: SessionPlace?,
        _ message: SessionMessage<SessionPayload>
    ) {
        let acknowledgement = SessionAcknowledgement(
            ordinary: frame.acknowledgement,
            urgent: frame.urgentAcknowledgement
        )
        self = .message(place, acknowledgement, message)
    }
}

extension SessionHello {
    init(_ hello: Lifeline_Session_V1_Hello) throws(SessionViolation) {
        self.init(
            minimumVersion: hello.minimumVersion,
            maximumVersion: hello.maximumVersion,
            // Other lengths name no session.
            session: try? SessionCredentials(hello.sessionID, hello.token),
            attempt: hello.attempt,
            progress: SessionProgress(
                processed: SessionAcknowledgement(ordinary: hello.processed, urgent: hello.urgentProcessed),
                received: hello.received
            ),
            window: try SessionWindow(hello.window),
            maximumRequestCount: Int(hello.maximumRequests),
            maximumFrameLength: frameLimit(hello.maximumFrame)
        )
    }
}

extension SessionWelcome {
    init(_ welcome: Lifeline_Session_V1_Welcome) throws(SessionViolation) {
        self.init(
            version: welcome.version,
            session: try SessionCredentials(welcome.sessionID, welcome.token),
            isResumed: welcome.resumed,
            progress: SessionProgress(
                processed: SessionAcknowledgement(ordinary: welcome.processed, urgent: welcome.urgentProcessed),
                received: welcome.received
            ),
            window: try SessionWindow(welcome.window),
            maximumRequestCount: Int(welcome.maximumRequests),
            maximumFrameLength: frameLimit(welcome.maximumFrame)
        )
    }
}

extension SessionGoodbye {
    fileprivate init(_ goodbye: Lifeline_Session_V1_Goodbye) {
        self.init(
            UInt32(exactly: goodbye.code.rawValue).flatMap(Code.init),
            goodbye.message,
            pause: Duration(milliseconds: goodbye.pauseMilliseconds)
        )
    }
}

extension SessionCredentials {
    fileprivate init(_ id: [UInt8], _ token: [UInt8]) throws(SessionViolation) {
        guard let sessionID = SessionID(id) else { throw .malformedCredentials(byteCount: id.count) }
        guard let sessionToken = SessionToken(token) else { throw .malformedCredentials(byteCount: token.count) }
        self.init(id: sessionID, token: sessionToken)
    }
}

extension SessionWindow {
    fileprivate init(_ window: Lifeline_Session_V1_Window) throws(SessionViolation) {
        guard window.frames > 0, window.bytes >= UInt64(SessionWindow.smallestByteCount) else { throw .emptyWindow }
        self.init(frameCount: Int(window.frames), byteCount: Int(clamping: window.bytes))
    }
}

/// What a peer says of the frames that it takes: 0 stands for 4 MiB.
private func frameLimit(_ maximumFrame: UInt32) -> Int {
    maximumFrame == 0 ? 4 << 20 : Int(maximumFrame)
}
