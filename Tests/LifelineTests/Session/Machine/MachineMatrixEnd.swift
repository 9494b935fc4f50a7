import LifelineCore

@testable import Lifeline

/// A machine for the tables of states and events, and the state that the tables show.
final class MachineMatrixEnd {
    /// The state in few words. A table lists its changes.
    struct State: Equatable {
        var stage = ""
        var connection = ""
        var drain = ""
        /// The time of the next timer, and that of the connections and the end alone.
        var deadline: Int64?
        var ownDeadline: Int64?
        var keptByteCount = 0

        func changes(since before: State) -> String {
            func text(_ deadline: Int64?) -> String { deadline.map { "\($0)" } ?? "never" }
            var changes: [String] = []
            if stage != before.stage { changes.append(stage) }
            if connection != before.connection { changes.append(connection) }
            if drain != before.drain { changes.append("drain \(drain)") }
            if deadline != before.deadline { changes.append("until \(text(deadline))") }
            if ownDeadline != before.ownDeadline, ownDeadline != deadline {
                changes.append("own until \(text(ownDeadline))")
            }
            let kept = keptByteCount - before.keptByteCount
            if kept != 0 { changes.append("keeps \(kept > 0 ? "+" : "")\(kept)") }
            return changes.joined(separator: " ")
        }
    }

    static let window = SessionWindow(frameCount: 4, byteCount: 8_192)
    static let terms = SessionTerms(
        window: window,
        credit: 64 << 10,
        maximumRequestCount: 10,
        maximumFrameLength: 5_000
    )

    let role: SessionRole
    var machine: SessionMachine
    var actions: [SessionMachine.Action] = []
    var calls: [SessionMachine.RequestID] = []
    /// The peer's requests that have begun, by their serials.
    var running: [UInt32: IncomingRequest] = [:]
    var receipts: [SessionMachine.Receipt] = []
    /// The number of a message that may be withdrawn.
    var waiting: UInt64 = 3
    /// The peer's progress with this side's frames.
    var progress = OpeningProgress()

    init(_ role: SessionRole, _ options: SessionOptions = SessionOptions()) {
        self.role = role
        machine = SessionMachine(role: role, options: options)
    }

    // MARK: Fixtures

    func open(_ terms: SessionTerms = MachineMatrixEnd.terms) {
        let now = MonotonicTime.ms(-100)
        switch role {
        case .client:
            connect(now: now)
            forget(now: now)
            welcome(.test(1), isResumed: false, terms: terms, now: now)
        case .server:
            _ = machine.opened(by: .test(terms: terms), .test(1), isResumed: false, over: 1, now: now, into: &actions)
        }
        receive(HostileFrame.method(1, "p"), now: now)
        _ = machine.push("m", content(0), now: now, into: &actions)
        forget(now: now)
        receive(HostileFrame.acknowledgement(2), now: now)
        machine.timerFired(now: .ms(-50), into: &actions)
        forget(now: .ms(-50))
        progress = OpeningProgress(processed: 2, received: 2, urgent: 0)
    }

    /// See `MachineMatrixSituation`.
    func beBusy(_ terms: SessionTerms = MachineMatrixEnd.terms) {
        open(terms)
        let now = MonotonicTime.ms(-50)
        request(10, now: now)
        forget(now: now)
        receive(HostileFrame.acknowledgement(3), now: now)
        request(20, hasParts: true, now: now)
        _ = machine.sendPart(of: calls[1], content(40), now: now, into: &actions)
        for number in [50, 51, 52] {
            _ = machine.push("m", content(UInt8(number)), isObserved: true, now: now, into: &actions)
        }
        request(30, deadline: .ms(500), now: now)
        receive(HostileFrame.request(7), now: now)
        receive(HostileFrame.request(8, hasParts: true), now: now)
        receive(HostileFrame.push(size: 1), now: now)
        // Requests count as processed when they have begun.
        machine.timerFired(now: .ms(-20), into: &actions)
        // The window has room for r2, its part, #1 and #2; the others wait.
        forget(now: .ms(-20))
        progress = OpeningProgress(processed: 4, received: 7, urgent: 0)
    }

    /// Another connection takes over the session.
    func replace(now: MonotonicTime) {
        _ = machine.opened(
            by: .test(.test(1), attempt: 2, progress: progress, terms: Self.terms),
            .test(1),
            isResumed: true,
            over: machine.connectionID + 1,
            now: now,
            into: &actions
        )
        forget(now: now)
    }

    /// Offers everything, and discards it.
    func forget(now: MonotonicTime) {
        note()
        _ = settle(now: now)
        note()
    }

    // MARK: Events

    /// The bytes that contents and actions borrow.
    private var copies: [UnsafeMutableRawBufferPointer] = []

    deinit { for copy in copies { copy.deallocate() } }

    private func copy(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        copies.append(copy)
        copy.copyBytes(from: bytes)
        return UnsafeRawBufferPointer(copy)
    }

    /// A content that begins with its number.
    func content(_ number: UInt8, size: Int = 1) -> SessionMachine.Content {
        SessionMachine.Content(payload: copy([number] + [UInt8](repeating: 0, count: size - 1)))
    }

    @discardableResult
    func request(
        _ number: UInt8,
        hasParts: Bool = false,
        deadline: MonotonicTime? = nil,
        now: MonotonicTime
    ) -> String {
        let none = SessionMachine.Content(payload: UnsafeRawBufferPointer(start: nil, count: 0))
        do {
            let content = hasParts ? none : content(number)
            let id = try machine.request("m", content, hasParts: hasParts, deadline: deadline, now: now)
            calls.append(id)
            return "r\(calls.count)"
        } catch {
            return "\(error.code)"
        }
    }

    /// Sends an observed push. Returns its outcome, and outcomes of others.
    func push(
        _ number: UInt8,
        size: Int = 1,
        _ delivery: SessionDelivery = .reliable,
        method: String = "m",
        now: MonotonicTime
    ) -> String {
        let content = content(number, size: size)
        let offer = machine.push(method, content, delivery, isObserved: true, now: now, into: &actions)
        return line(with: line(offer))
    }

    func sendAnswerPart(
        _ number: UInt8,
        to serial: UInt32,
        _ delivery: SessionDelivery = .reliable,
        now: MonotonicTime
    ) -> String {
        guard let request = running[serial] else { return "" }
        let offer = machine.sendPart(ofResponseTo: request, content(number), delivery, now: now, into: &actions)
        return line(with: line(offer))
    }

    func respond(to serial: UInt32, _ number: UInt8, size: Int = 1, now: MonotonicTime) -> String {
        guard let request = running[serial] else { return "" }
        let offer = machine.respond(to: request, content(number, size: size), now: now, into: &actions)
        return line(with: "\(offer)".replacing("Lifeline.RequestRefusal.", with: ""))
    }

    /// Receives a request, and answers it with its serial.
    func answer(_ serial: UInt32, now: MonotonicTime) -> String {
        receive(HostileFrame.request(UInt64(serial)), now: now)
        _ = takeLine()
        return respond(to: serial, UInt8(serial), now: now)
    }

    private func line(with result: String) -> String {
        let line = takeLine()
        return [result, line].filter { !$0.isEmpty }.joined(separator: "; ")
    }

    func connect(now: MonotonicTime) {
        machine.connected(over: machine.connectionID + 1, now: now, into: &actions)
    }

    func welcome(
        _ credentials: SessionCredentials,
        isResumed: Bool,
        version: UInt32 = 1,
        progress: OpeningProgress = OpeningProgress(),
        terms: SessionTerms = MachineMatrixEnd.terms,
        now: MonotonicTime
    ) {
        let opening = ServerOpening(
            version: version,
            credentials: credentials,
            isResumed: isResumed,
            progress: progress,
            terms: terms
        )
        receive(HostileFrame.withoutLength { opening.write(to: &$0) }, now: now)
    }

    func receive(_ frame: [UInt8], over id: UInt64? = nil, now: MonotonicTime) {
        let arrival = machine.receive(copy(frame), over: id ?? machine.connectionID, now: now, into: &actions)
        if let arrival { actions.append(.arrived(arrival)) }
    }

    /// Returns the actions since the last call, as a line.
    func takeLine() -> String {
        note()
        defer { actions = [] }
        return actions.map(line).joined(separator: ", ")
    }

    /// Records the requests that have begun, and the received messages that are not finished.
    func note() {
        for action in actions {
            switch action {
            case .arrived(.push(_, let receipt)), .arrived(.requestPart(_, _, let receipt)),
                .arrived(.responsePart(_, _, let receipt, _)):
                if !receipts.contains(receipt) { receipts.append(receipt) }
            case .arrived(.request(let request, _, _)): running[request.serial] = request
            default: break
            }
        }
    }

    /// Takes out everything that can be sent, and reports the offer. Returns the frames, and the changes of
    /// connections.
    func settle(hasRoom: Bool = true, now: MonotonicTime) -> String {
        actions = []
        var lines: [String] = []
        while true {
            var bytes: [UInt8] = []
            // Frames have no places on the wire.
            var places = (ordinary: machine.ordinary.nextToSend, urgent: machine.urgent.nextToSend)
            let isMore = machine.offer(hasRoom: hasRoom, atMost: 1 << 20, now: now, into: &actions) {
                bytes.append(contentsOf: $0)
            }
            var offset = 0
            while offset < bytes.count {
                guard case .value(let length, let prefix) = bytes.withUnsafeBytes({ Varint.decode($0, at: offset) })
                else { break }
                let frame = Array(bytes[(offset + prefix)..<(offset + prefix + Int(length))])
                lines.append(Self.line(frame, &places))
                offset += prefix + Int(length)
            }
            if !isMore { break }
        }
        let sent = takeLine()
        machine.offered(hasRoom: hasRoom, now: now, into: &actions)
        let closing = takeLine()
        let frames = lines.isEmpty ? "" : "[\(lines.joined(separator: ", "))]"
        return [frames, sent.isEmpty ? "" : "(\(sent))", closing].filter { !$0.isEmpty }.joined(separator: " ")
    }

    var state: State {
        func milliseconds(_ time: MonotonicTime?) -> Int64? { time.map { $0.nanoseconds / 1_000_000 } }
        let life = machine.life
        var state = State()
        state.stage =
            switch life.stage {
            case .active: "active"
            case .moving: "moving"
            case .closing: "closing"
            case .ended: "over"
            }
        state.drain =
            switch life.drain {
            case .none: "none"
            case .waiting: "waiting"
            case .said: "said"
            }
        // When the session ends, its connection closes.
        state.connection = String("\(life.connection)".prefix { $0 != "(" }).replacing("closing", with: "closing it")
        state.deadline = milliseconds(machine.nextDeadline)
        state.ownDeadline = milliseconds(life.nextDeadline)
        state.keptByteCount = machine.keptByteCount
        return state
    }
}

// MARK: - Lines

extension MachineMatrixEnd {
    func line(_ offer: SessionMachine.Offer) -> String {
        switch offer {
        case .accepted(number: 0): "accepted"
        case .accepted(let number): "accepted #\(number)"
        case .waits(let number): "waits #\(number)"
        case .tooLong(let limit): "too long for \(limit)"
        default: "\(offer)"
        }
    }

    private func name(_ id: SessionMachine.RequestID) -> String {
        calls.firstIndex(of: id).map { "r\($0 + 1)" } ?? "r?"
    }

    private static func number(_ payload: UnsafeRawBufferPointer) -> String { payload.first.map { " \($0)" } ?? "" }

    private func line(_ action: SessionMachine.Action) -> String {
        func number(_ message: InboundMessage) -> String { Self.number(message.payload) }
        return switch action {
        case .arrived(.push(let message, _)): "push" + number(message)
        case .arrived(.request(let request, let message, _)):
            "begin \(request.serial)\(message.hasParts ? " with parts" : "")"
        case .arrived(.response(let id, let message, _)): "complete \(name(id))" + number(message)
        case .arrived(.requestPart(let request, let message, _)): "part\(number(message)) of \(request.serial)"
        case .arrived(.responsePart(let id, let message, _, _)): "answer\(number(message)) to \(name(id))"
        case .arrived(.reply(let message, _, _)): "reply to \(message.replyNumber)"
        case .requestEnded(let request): "end of \(request.serial)"
        case .accepted(let number): "accepted #\(number)"
        case .messageEnded(let number, let outcome): "#\(number) \(outcome)"
        case .leftOver(let message, _): "left over \(message.payload.first ?? 0) \(message.outcome)"
        case .durableCallEnded(_, let outcome): "durable call \(outcome.map { "\($0)" } ?? "timed out")"
        case .failed(let id, let code, _): "fail \(name(id)) \(code)"
        case .refuse(let request, _, let refusal): "refuse \(request.serial) \(refusal)"
        case .cancelRequest(let request): "cancel \(request.serial)"
        case .method(let number, let name): "method \(number) \(name)"
        case .opened(let credentials, let isResumed):
            "opened \(credentials == .test(1) ? 1 : 2)\(isResumed ? " again" : "")"
        case .sessionLost(.violated): "sessionLost"
        case .sessionLost(.accused): "sessionLost accused"
        case .sessionLost(.forgotten): "sessionLost forgotten"
        case .peerLeaving(let pause): "leaving for \(pause)"
        case .accused(let goodbye): "accused \(goodbye.code.map { "\($0)" } ?? "?")"
        case .notWelcomed: "not welcomed"
        case .violated(let violation): "violated \("\(violation)".prefix { $0 != "(" })"
        case .sayGoodbye(let id, let goodbye): "say \(goodbye.code.map { "\($0)" } ?? "?") on \(id)"
        case .closeConnection(let id, let closing): "close \(id) \("\(closing)".prefix { $0 != "(" })"
        case .ended(.saidByPeer(let goodbye)): "ended \(goodbye.code.map { "\($0)" } ?? "?") by peer"
        case .ended(let end): "ended \("\(end)".prefix { $0 != "(" })"
        }
    }

    private static func line(_ frame: [UInt8], _ places: inout (ordinary: UInt64, urgent: UInt64)) -> String {
        frame.withUnsafeBytes { bytes in
            guard let inner = try? InboundFrame(parsing: bytes), let kind = inner.kind else { return "?" }
            switch kind.lane {
            case .ordinary?:
                defer { places.ordinary += 1 }
                return "o\(places.ordinary) " + message(kind, inner.body)
            case .urgent?:
                defer { places.urgent += 1 }
                return "u\(places.urgent) " + message(kind, inner.body)
            case nil: return (try? unplaced(kind, inner.body)) ?? "?"
            }
        }
    }

    private static func message(_ kind: FrameKind, _ body: UnsafeRawBufferPointer) -> String {
        if kind == .method {
            return (try? MethodName(parsing: body)).map { "method \($0.number) \($0.name)" } ?? "?"
        }
        guard let message = try? InboundMessage(kind, body) else { return "?" }
        let number = number(message.payload)
        switch kind {
        case .push, .unplacedPush: return "push" + number
        case .request: return "request \(message.serial)" + (message.hasParts ? " with parts" : number)
        case .requestPart, .unplacedRequestPart: return "part\(number) of \(message.serial)"
        case .requestEnd: return "end of \(message.serial)"
        case .responsePart, .unplacedResponsePart: return "answer\(number) to \(message.serial)"
        case .response, .urgentResponse: return "response \(message.serial)" + number
        case .cancel: return "cancel \(message.serial)"
        case .blank: return "blank"
        default: return "?"
        }
    }

    private static func unplaced(_ kind: FrameKind, _ body: UnsafeRawBufferPointer) throws -> String {
        func text(_ progress: OpeningProgress) -> String {
            progress == OpeningProgress() ? "" : " at \(progress.processed)/\(progress.received)/\(progress.urgent)"
        }
        switch kind {
        case .hello:
            let hello = try ClientOpening(parsing: body)
            return "hello\(hello.credentials == nil ? "" : " again")\(text(hello.progress))"
        case .welcome:
            let welcome = try ServerOpening(parsing: body)
            return "welcome\(welcome.isResumed ? " again" : "")\(text(welcome.progress))"
        case .goodbye:
            let goodbye = try SessionGoodbye(parsing: body)
            let pause = goodbye.pause == .zero ? "" : " for \(goodbye.pause)"
            return "goodbye \(goodbye.code.map { "\($0)" } ?? "?")\(pause)"
        case .acknowledgement:
            let told = try Acknowledgement(parsing: body)
            let ranges = told.ranges.map { " \($0.lowerBound)-\($0.upperBound)" }.joined()
            return "ack \(told.ordinary)/\(told.urgent)\(ranges)"
        case .credit:
            let grant = try CreditGrant(parsing: body)
            return "credit \(grant.bytes) for \("\(grant.target)".replacing("Lifeline.", with: ""))"
        default: return message(kind, body)
        }
    }
}
