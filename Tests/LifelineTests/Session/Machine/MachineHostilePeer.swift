import Lifeline
import LifelineCore

/// One end of a session whose peer is the test, which opens it, feeds it hand-written frames, and reads the frames that
/// it offers.
/// It does only what a driver has to do: it runs actions in order, and answers refused requests.
final class MachineHostilePeer {
    /// An action without its borrowed content.
    enum Event: Equatable {
        case push(method: UInt32), begun(serial: UInt32), completed(status: UInt32), failed(RequestError.Code)
        case requestPart(serial: UInt32), responsePart, requestEnded(serial: UInt32)
        case reply(to: UInt64), durableCallEnded(SessionDeliveryOutcome?)
        case accepted, messageEnded(SessionDeliveryOutcome), leftOver(SessionDeliveryOutcome)
        case refused(RequestRefusal), cancelled(serial: UInt32), method(number: UInt32, name: String)
        case opened(isResumed: Bool), sessionLost, peerLeaving(pause: Duration), accused, notWelcomed
        case violated(SessionViolation), saidGoodbye(SessionGoodbye.Code?), closed(SessionClosing), ended
    }

    /// A frame that the machine has offered.
    struct Offered {
        let kind: FrameKind
        let body: [UInt8]
    }

    static let credentials = SessionCredentials(id: SessionID(1, 2), token: SessionToken(3, 4))

    let role: SessionRole
    var machine: SessionMachine
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private(set) var connection: UInt64 = 0
    private(set) var events: [Event] = []
    /// Set when the machine does something that it must not.
    private(set) var failure: String?
    private(set) var isOver = false

    /// The received messages that are not finished, in order.
    var receipts: [SessionMachine.Receipt] = []
    /// The peer's requests without a response.
    var running: [IncomingRequest] = []
    /// This side's requests that have not ended.
    var calls: [SessionMachine.RequestID] = []
    /// The places that were offered, so that acknowledgements can be plausible.
    private(set) var ordinaryPlaces: UInt64 = 0
    private(set) var urgentPlaces: UInt64 = 0
    /// Whether events are kept. Long floods would only fill memory with them.
    var keepsEvents = true
    private var actions: [SessionMachine.Action] = []

    init(_ role: SessionRole, _ options: SessionOptions = SessionOptions()) {
        self.role = role
        machine = SessionMachine(role: role, options: options)
    }

    /// Makes an open end.
    static func opened(
        _ role: SessionRole,
        _ options: SessionOptions = SessionOptions(),
        terms: SessionTerms = HostileFrame.terms
    ) -> MachineHostilePeer {
        let peer = MachineHostilePeer(role, options)
        peer.open(terms: terms)
        return peer
    }

    // MARK: Connections

    /// Opens a connection: the test sends a hello to a server, or a welcome to a client.
    func open(
        isResumed: Bool = false,
        progress: OpeningProgress = OpeningProgress(),
        terms: SessionTerms = HostileFrame.terms
    ) {
        switch role {
        case .client:
            connect()
            welcome(isResumed: isResumed, progress: progress, terms: terms)
        case .server:
            let named = isResumed ? Self.credentials : nil
            say(ClientOpening(credentials: named, attempt: connection + 1, progress: progress, terms: terms))
        }
    }

    /// Connects a client, and discards its hello.
    func connect() {
        connection += 1
        machine.connected(over: connection, now: now, into: &actions)
        run()
        _ = offered()
    }

    func welcome(
        isResumed: Bool,
        version: UInt32 = 1,
        credentials: SessionCredentials = MachineHostilePeer.credentials,
        progress: OpeningProgress = OpeningProgress(),
        terms: SessionTerms = HostileFrame.terms
    ) {
        let opening = ServerOpening(
            version: version,
            credentials: credentials,
            isResumed: isResumed,
            progress: progress,
            terms: terms
        )
        feed(HostileFrame.withoutLength { opening.write(to: &$0) })
    }

    /// Sends a hello to a server. Returns its goodbye if it does not admit the client.
    @discardableResult
    func say(_ hello: ClientOpening) -> SessionGoodbye? {
        connection += 1
        defer { run() }
        return machine.opened(
            by: hello,
            Self.credentials,
            isResumed: hello.credentials == Self.credentials,
            over: connection,
            now: now,
            into: &actions
        )
    }

    func cut() {
        machine.disconnected(connection, now: now, into: &actions)
        run()
    }

    // MARK: Frames

    /// Feeds a frame, without its length in front.
    func feed(_ frame: [UInt8]) {
        // Actions may use the frame.
        frame.withUnsafeBytes {
            let arrival = machine.receive($0, over: connection, now: now, into: &actions)
            if let arrival { actions.append(.arrived(arrival)) }
            run()
        }
    }

    /// Reports bytes that are not a frame, as the reader of a connection does.
    func receivedViolation(_ violation: SessionViolation) {
        machine.receivedViolation(violation, over: connection, now: now, into: &actions)
        run()
    }

    func feed(_ frames: [[UInt8]]) { for frame in frames { feed(frame) } }

    /// Takes everything that the machine offers.
    func offered() -> [Offered] {
        var bytes: [UInt8] = []
        while machine.offer(
            hasRoom: true,
            atMost: 1 << 20,
            now: now,
            into: &actions,
            to: { bytes.append(contentsOf: $0) }
        ) {}
        machine.offered(hasRoom: true, now: now, into: &actions)
        run()
        return parse(bytes)
    }

    private func parse(_ bytes: [UInt8]) -> [Offered] {
        bytes.withUnsafeBytes { bytes in
            var frames: [Offered] = []
            var offset = 0
            while offset < bytes.count {
                guard case .value(let length, let prefix) = Varint.decode(bytes, at: offset),
                    bytes.count - offset - prefix >= Int(length)
                else {
                    fail("a frame was offered that is cut off")
                    break
                }
                let start = offset + prefix
                offset = start + Int(length)
                let frame = UnsafeRawBufferPointer(rebasing: bytes[start..<offset])
                guard let inner = try? InboundFrame(parsing: frame), let kind = inner.kind else {
                    fail("a frame was offered that has no kind")
                    break
                }
                if kind.lane == .ordinary { ordinaryPlaces += 1 }
                if kind.lane == .urgent { urgentPlaces += 1 }
                frames.append(Offered(kind: kind, body: [UInt8](inner.body)))
            }
            return frames
        }
    }

    /// The codes of the goodbyes that the machine offers.
    func goodbyes() -> [SessionGoodbye.Code?] {
        offered().filter { $0.kind == .goodbye }.map { frame in
            frame.body.withUnsafeBytes { try? SessionGoodbye(parsing: $0).code }
        }
    }

    /// The last acknowledgement that the machine offers, if one is due.
    func acknowledgement() -> Acknowledgement? {
        pass(.milliseconds(20))
        return offered().last { $0.kind == .acknowledgement }.flatMap { frame in
            frame.body.withUnsafeBytes { try? Acknowledgement(parsing: $0) }
        }
    }

    // MARK: Actions of the user

    func push(
        _ method: String,
        size: Int = 10,
        _ delivery: SessionDelivery = .reliable,
        isObserved: Bool = false
    ) -> SessionMachine.Offer {
        defer { run() }
        return withContent(size) {
            machine.push(method, $0, delivery, isObserved: isObserved, now: now, into: &actions)
        }
    }

    @discardableResult
    func request(
        _ method: String,
        size: Int = 10,
        hasParts: Bool = false,
        timeout: Duration? = nil
    ) -> SessionMachine.RequestID? {
        let id = try? withContent(hasParts ? 0 : size) {
            try machine.request(method, $0, hasParts: hasParts, deadline: timeout.map { now + $0 }, now: now)
        }
        if let id { calls.append(id) }
        run()
        return id
    }

    /// The serial of a call on the wire.
    static func serial(of call: SessionMachine.RequestID) -> UInt32 {
        RequestTable<SessionMachine.OwnRequest>.serial(of: call)
    }

    func sendPart(of call: SessionMachine.RequestID, size: Int, _ delivery: SessionDelivery = .reliable) {
        _ = withContent(size) { machine.sendPart(of: call, $0, delivery, now: now, into: &actions) }
        run()
    }

    func endParts(of call: SessionMachine.RequestID) {
        _ = machine.endParts(of: call, now: now, into: &actions)
        run()
    }

    func cancel(_ call: SessionMachine.RequestID) {
        if machine.cancelRequest(call, now: now, into: &actions) { calls.removeAll { $0 == call } }
        run()
    }

    func sendPart(ofResponseTo request: IncomingRequest, size: Int, _ delivery: SessionDelivery = .reliable) {
        _ = withContent(size) {
            machine.sendPart(ofResponseTo: request, $0, delivery, now: now, into: &actions)
        }
        run()
    }

    /// Responds, with an empty response if a longer one cannot be sent.
    func respond(to request: IncomingRequest, size: Int = 0) {
        running.removeAll { $0 == request }
        let offer = withContent(size) { machine.respond(to: request, $0, now: now, into: &actions) }
        if case .refused = offer {
            let again = withContent(0) { machine.respond(to: request, $0, now: now, into: &actions) }
            if case .refused = again { fail("an empty response was refused") }
        }
        run()
    }

    /// Finishes one of the received messages.
    func finish(_ index: Int) {
        machine.finish(receipts.remove(at: index), now: now)
    }

    func finishAll() {
        for receipt in receipts { machine.finish(receipt, now: now) }
        receipts = []
    }

    func close(by deadline: MonotonicTime? = nil) {
        machine.close(by: deadline, now: now, into: &actions)
        run()
    }

    func end(_ reason: SessionEndReason) {
        machine.end(reason, now: now, into: &actions)
        run()
    }

    func withdraw(_ number: UInt64) {
        _ = machine.withdraw(number, now: now, into: &actions)
        run()
    }

    func pass(_ duration: Duration) {
        now = now + duration
        machine.timerFired(now: now, into: &actions)
        run()
    }

    private func withContent<Result, Failure: Error>(
        _ size: Int,
        _ body: (SessionMachine.Content) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 1)
        defer { bytes.deallocate() }
        _ = bytes.initializeMemory(as: UInt8.self, repeating: 7)
        return try body(SessionMachine.Content(payload: UnsafeRawBufferPointer(bytes)))
    }

    // MARK: Actions of the machine

    /// The rule that the peer has broken; nil: none.
    var violation: SessionViolation? {
        for case .violated(let violation) in events { return violation }
        return nil
    }

    func forgetEvents() { events = [] }

    private func fail(_ text: String) { if failure == nil { failure = text } }

    private func run() {
        while !actions.isEmpty {
            let pending = actions
            actions = []
            for action in pending { run(action) }
        }
    }

    private func run(_ action: SessionMachine.Action) {
        if isOver {
            guard case .closeConnection = action else { return fail("\(event(of: action)) came after the end") }
        }
        let event = event(of: action)
        if keepsEvents { events.append(event) }
        switch action {
        case .arrived(.push(_, let receipt)), .arrived(.requestPart(_, _, let receipt)),
            .arrived(.responsePart(_, _, let receipt, _)):
            receipts.append(receipt)
        case .arrived(.request(let request, _, _)): running.append(request)
        case .refuse(let request, _, _): respond(to: request)
        case .arrived(.response(let id, _, _)), .failed(let id, _, _):
            guard let index = calls.firstIndex(of: id) else { return fail("a call ended twice") }
            calls.remove(at: index)
        case .opened(_, let isResumed):
            if !isResumed { (ordinaryPlaces, urgentPlaces) = (0, 0) }
        case .ended: isOver = true
        default: break
        }
    }

    private func event(of action: SessionMachine.Action) -> Event {
        switch action {
        case .arrived(.push(let message, _)): .push(method: message.method)
        case .arrived(.request(let request, _, _)): .begun(serial: request.serial)
        case .arrived(.response(_, let message, _)): .completed(status: message.status)
        case .arrived(.requestPart(let request, _, _)): .requestPart(serial: request.serial)
        case .arrived(.responsePart): .responsePart
        case .arrived(.reply(let message, _, _)): .reply(to: message.replyNumber)
        case .requestEnded(let request): .requestEnded(serial: request.serial)
        case .accepted: .accepted
        case .messageEnded(_, let outcome): .messageEnded(outcome)
        case .leftOver(let message, _): .leftOver(message.outcome)
        case .durableCallEnded(_, let outcome): .durableCallEnded(outcome)
        case .failed(_, let code, _): .failed(code)
        case .refuse(_, _, let refusal): .refused(refusal)
        case .cancelRequest(let request): .cancelled(serial: request.serial)
        case .method(let number, let name): .method(number: number, name: name)
        case .opened(_, let isResumed): .opened(isResumed: isResumed)
        case .sessionLost: .sessionLost
        case .peerLeaving(let pause): .peerLeaving(pause: pause)
        case .accused: .accused
        case .notWelcomed: .notWelcomed
        case .violated(let violation): .violated(violation)
        case .sayGoodbye(_, let goodbye): .saidGoodbye(goodbye.code)
        case .closeConnection(_, let closing): .closed(closing)
        case .ended: .ended
        }
    }
}

/// Writes frames field by field, so that they can break any rule. The frames have no length prefix.
enum HostileFrame {
    static let terms = SessionTerms(
        window: SessionWindow(frameCount: 65_536, byteCount: 8 << 20),
        credit: 256 << 10,
        maximumRequestCount: 1_024,
        maximumFrameLength: 4 << 20
    )

    static func of(_ kind: FrameKind, _ fields: [UInt8]...) -> [UInt8] {
        bytes(kind.rawValue, fields.flatMap { $0 })
    }

    /// A number field, even if the number is 0.
    static func number(_ field: UInt32, _ value: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        FieldWriter.appendTag(.varint(field), to: &bytes)
        FieldWriter.appendVarint(value, to: &bytes)
        return bytes
    }

    static func bytes(_ field: UInt32, _ value: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        FieldWriter.appendField(field, value, to: &bytes)
        return bytes
    }

    static func method(_ number: UInt64, _ name: String) -> [UInt8] {
        of(.method, self.number(1, number), bytes(2, [UInt8](name.utf8)))
    }

    static func push(_ method: UInt64 = 1, size: Int = 0, _ fields: [UInt8] = [], kind: FrameKind = .push) -> [UInt8] {
        of(kind, number(1, method), fields, bytes(3, [UInt8](repeating: 7, count: size)))
    }

    static func request(
        _ serial: UInt64 = 1,
        method: UInt64 = 1,
        hasParts: Bool = false,
        size: Int = 0,
        _ fields: [UInt8] = []
    ) -> [UInt8] {
        let payload = bytes(6, [UInt8](repeating: 7, count: size))
        return of(.request, number(2, serial), number(3, method), number(4, hasParts ? 1 : 0), fields, payload)
    }

    /// A part in either direction.
    static func part(_ kind: FrameKind, _ serial: UInt64 = 1, size: Int = 0) -> [UInt8] {
        of(kind, number(1, serial), bytes(2, [UInt8](repeating: 7, count: size)))
    }

    /// A request's end, or a cancel.
    static func ending(_ kind: FrameKind, _ serial: UInt64 = 1) -> [UInt8] { of(kind, number(1, serial)) }

    static func response(_ kind: FrameKind, _ serial: UInt64 = 1, _ fields: [UInt8] = []) -> [UInt8] {
        of(kind, number(1, serial), fields)
    }

    static func acknowledgement(_ ordinary: UInt64 = 0, urgent: UInt64 = 0, _ ranges: [UInt64] = []) -> [UInt8] {
        var packed: [UInt8] = []
        for number in ranges { FieldWriter.appendVarint(number, to: &packed) }
        return of(.acknowledgement, number(1, ordinary), number(2, urgent), bytes(3, packed))
    }

    /// - Parameter target: 1: a method; 2: the parts of a request; 3: the parts of a response
    static func credit(_ target: UInt32, _ of: UInt64, _ bytes: UInt64) -> [UInt8] {
        self.of(.credit, number(target, of), number(4, bytes))
    }

    static func goodbye(_ code: UInt64, pause: UInt64 = 0) -> [UInt8] {
        of(.goodbye, number(1, code), number(3, pause))
    }

    static func metadata(_ field: UInt32, count: Int, valueSize: Int = 0) -> [UInt8] {
        let value = [UInt8](repeating: 0x61, count: valueSize)
        return (0..<count).flatMap { bytes(field, bytes(1, [UInt8]("\($0)".utf8)) + bytes(2, value)) }
    }

    /// Drops the length prefix of a writer.
    static func withoutLength(_ write: (inout [UInt8]) -> Void) -> [UInt8] {
        var bytes: [UInt8] = []
        write(&bytes)
        let prefix = bytes.withUnsafeBytes { bytes in
            if case .value(_, let prefix) = Varint.decode(bytes) { prefix } else { 0 }
        }
        return Array(bytes.dropFirst(prefix))
    }
}
