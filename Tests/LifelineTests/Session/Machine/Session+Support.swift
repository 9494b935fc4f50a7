import Lifeline

typealias TestMachine = SessionMachine<TestContent, Int>
typealias TestSequence = OutboundSequence<TestContent>
typealias TestFrame = SessionFrame<TestContent>
typealias MachineMessage = SessionMessage<TestContent>

extension MonotonicTime {
    /// So many milliseconds after the beginning.
    static func ms(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }
}

extension SessionCredentials {
    static func test(_ number: UInt64) -> SessionCredentials {
        SessionCredentials(id: SessionID(number, 1), token: SessionToken(number, 2))
    }
}

extension SessionHello {
    static func test(
        _ session: SessionCredentials? = nil,
        attempt: UInt64 = 1,
        progress: SessionProgress = SessionProgress(processed: SessionAcknowledgement(), received: 0),
        window: SessionWindow = SessionWindow(frameCount: 100, byteCount: 1000),
        frameLimit: Int = 1000,
        requestLimit: Int = 10
    ) -> SessionHello {
        SessionHello(
            session: session,
            attempt: attempt,
            progress: progress,
            window: window,
            maximumRequestCount: requestLimit,
            maximumFrameLength: frameLimit
        )
    }
}

extension SessionWelcome {
    static func test(
        _ session: SessionCredentials = .test(1),
        isResumed: Bool = false,
        progress: SessionProgress = SessionProgress(processed: SessionAcknowledgement(), received: 0),
        window: SessionWindow = SessionWindow(frameCount: 100, byteCount: 1000),
        frameLimit: Int = 1000,
        requestLimit: Int = 10
    ) -> SessionWelcome {
        SessionWelcome(
            version: 1,
            session: session,
            isResumed: isResumed,
            progress: progress,
            window: window,
            maximumRequestCount: requestLimit,
            maximumFrameLength: frameLimit
        )
    }
}

extension SessionFrame<TestContent> {
    /// A message with a place in the ordinary lane.
    static func ordinary(_ sequence: UInt64, _ message: MachineMessage, acknowledging: (UInt64, UInt64) = (0, 0))
        -> Self
    {
        .message(
            SessionPlace(.ordinary, sequence),
            SessionAcknowledgement(ordinary: acknowledging.0, urgent: acknowledging.1),
            message
        )
    }

    /// A message with a place in the urgent lane.
    static func urgent(_ sequence: UInt64, _ message: MachineMessage) -> Self {
        .message(SessionPlace(.urgent, sequence), SessionAcknowledgement(), message)
    }

    /// An acknowledgement alone.
    static func acknowledgement(_ ordinary: UInt64, _ urgent: UInt64 = 0) -> Self {
        .message(nil, SessionAcknowledgement(ordinary: ordinary, urgent: urgent), .blank)
    }
}

extension MachineMessage {
    static func push(_ number: Int) -> MachineMessage { .push(serial: 0, TestContent(number: number)) }
    static func part(_ number: Int, of serial: UInt32) -> MachineMessage {
        .push(serial: serial, TestContent(number: number))
    }
    static func request(_ number: Int, serial: UInt32) -> MachineMessage {
        .request(serial: serial, deadline: nil, TestContent(number: number))
    }
    static func response(_ number: Int, serial: UInt32) -> MachineMessage {
        .response(serial: serial, endsPushes: false, TestContent(number: number))
    }
}

/// Actions as a line that fits a table.
func line(_ actions: [TestMachine.Action]) -> String {
    actions.map { action in
        switch action {
        case .opened(let session, let isResumed):
            "opened \(session == .test(1) ? 1 : 2)\(isResumed ? " again" : "")"
        case .sessionLost(.violated): "sessionLost"
        case .sessionLost(.accused): "sessionLost accused"
        case .sessionLost(.forgotten): "sessionLost forgotten"
        case .messageEnded(let number, let outcome): "#\(number) \(outcome)"
        case .admitted(let numbers): "admitted \(numbers.map { "#\($0)" }.joined(separator: " "))"
        case .complete(let waiter, let content): "complete \(waiter) \(content.number)"
        case .fail(let waiter, let code): "fail \(waiter) \(code)"
        case .deliverPush(let serial, let content, _): "push \(content.number)\(serial == 0 ? "" : " of \(serial)")"
        case .beginRequest(let request, _, let content): "begin \(request.serial) \(content.number)"
        case .refuseRequest(let request, let content, let refusal):
            "refuse \(request.serial) \(content.number)\(refusal == .tooManyRunning ? "" : " \(refusal)")"
        case .cancelRequest(let request): "cancel \(request.serial)"
        case .peerLeaving(let pause): "leaving for \(pause)"
        case .accused(let goodbye): "accused \(goodbye.code.map { "\($0)" } ?? "?")"
        case .notWelcomed: "not welcomed"
        case .violated(let violation): "violated \("\(violation)".prefix { $0 != "(" })"
        case .sayGoodbye(let id, let goodbye): "say \(goodbye.code.map { "\($0)" } ?? "?") on \(id)"
        case .closeConnection(let id, let closing): "close \(id) \("\(closing)".prefix { $0 != "(" })"
        case .ended(.saidByPeer(let goodbye)): "ended \(goodbye.code.map { "\($0)" } ?? "?") by peer"
        case .ended(let end): "ended \("\(end)".prefix { $0 != "(" })"
        }
    }.joined(separator: ", ")
}

func line(_ frame: TestFrame) -> String {
    switch frame {
    case .hello(let hello): "hello\(hello.session == nil ? "" : " again")"
    case .welcome(let welcome): "welcome\(welcome.isResumed ? " again" : "")"
    case .goodbye(let goodbye):
        "goodbye \(goodbye.code.map { "\($0)" } ?? "?")" + (goodbye.pause == .zero ? "" : " for \(goodbye.pause)")
    case .message(let place, let acknowledgement, let message):
        (place.map { "\($0.lane == .ordinary ? "o" : "u")\($0.sequence) " } ?? "") + line(message)
            + (acknowledgement == SessionAcknowledgement()
                ? "" : " ack \(acknowledgement.ordinary)/\(acknowledgement.urgent)")
    }
}

func line(_ message: MachineMessage) -> String {
    let content = message.content.map { " \($0.number)" } ?? ""
    return switch message.kind {
    case .request(let serial, _): "request \(serial)\(content)"
    case .response(let serial, _): "response \(serial)\(content)"
    case .push(let serial): "push\(content)\(serial == 0 ? "" : " of \(serial)")"
    case .cancel(let serial): "cancel \(serial)\(content)"
    case .blank: "blank\(content)"
    }
}

/// Events of the present connection, or of one that is newer than all before.
extension SessionMachine {
    mutating func connected(now: MonotonicTime) -> [Action] { connected(over: life.connectionID + 1, now: now) }

    mutating func opened(
        by hello: SessionHello,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        now: MonotonicTime
    ) -> [Action] {
        let (refusal, actions) = opened(
            by: hello,
            credentials,
            isResumed: isResumed,
            over: life.connectionID + 1,
            now: now
        )
        return refusal == nil ? actions : []
    }

    mutating func disconnected(now: MonotonicTime) -> [Action] { disconnected(life.connectionID, now: now) }

    mutating func received(_ frame: SessionFrame<Content>, now: MonotonicTime) -> [Action] {
        received(frame, over: life.connectionID, now: now)
    }

    mutating func receivedViolation(_ violation: SessionViolation, now: MonotonicTime) -> [Action] {
        receivedViolation(violation, over: life.connectionID, now: now)
    }

    mutating func nextFrame(now: MonotonicTime) -> (SessionFrame<Content>, [Action])? {
        nextFrame(hasRoom: true, now: now)
    }
}

extension TestMachine {
    /// Takes out everything that can be sent.
    mutating func frames(now: MonotonicTime) -> String {
        var lines: [String] = []
        while let (frame, actions) = nextFrame(now: now) {
            lines.append(line(frame) + (actions.isEmpty ? "" : " (\(line(actions)))"))
        }
        return lines.joined(separator: ", ")
    }

    /// A client whose session 1 is open, and that has sent what it has to.
    static func openClient(_ options: SessionOptions = SessionOptions(), welcome: SessionWelcome = .test())
        -> TestMachine
    {
        var machine = TestMachine(role: .client, options: options)
        _ = machine.connected(now: .ms(0))
        _ = machine.frames(now: .ms(0))
        _ = machine.received(.welcome(welcome), now: .ms(0))
        return machine
    }

    /// A server whose session 1 is open, and that has sent what it has to.
    static func openServer(_ options: SessionOptions = SessionOptions(), hello: SessionHello = .test()) -> TestMachine {
        var machine = TestMachine(role: .server, options: options)
        _ = machine.opened(by: hello, .test(1), isResumed: false, now: .ms(0))
        _ = machine.frames(now: .ms(0))
        return machine
    }
}
