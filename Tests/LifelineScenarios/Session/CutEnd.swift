internal import Lifeline
internal import LifelineCore

/// One end of a session of `SessionCutRun`: the machine, over connections of bytes. Worlds run the engine that drives
/// it in programs. This drives it directly, because a script that is cut at every pair of bytes runs a million times.
///
/// It runs the actions that are about connections, and tells `onActions` of all of them, in order.
final class CutEnd {
    /// The content of a message: encoded fields of its kind, such as metadata, and the encoded message.
    struct Content {
        var fields: [UInt8] = []
        var payload: [UInt8] = []

        func borrowed<Result>(_ body: (SessionMachine.Content) -> Result) -> Result {
            fields.withUnsafeBytes { fields in
                payload.withUnsafeBytes { body(SessionMachine.Content(fields: fields, payload: $0)) }
            }
        }
    }

    private let side: CutLink.Side
    private(set) var machine: SessionMachine
    /// The present connection.
    private(set) var link: CutLink?
    /// Older connections that are not gone yet.
    private var otherLinks: [UInt64: CutLink] = [:]
    /// Receives the decisions of the machine at one time. Messages in them are valid during the call.
    var onActions: ([SessionMachine.Action]) -> Void = { _ in }
    private var batches: [[SessionMachine.Action]] = []
    private var runsBatches = false

    init(_ side: CutLink.Side, _ options: SessionOptions) {
        self.side = side
        machine = SessionMachine(role: side == .client ? .client : .server, options: options)
    }

    // MARK: Connections

    /// A client has a connection, in place of the one that it had.
    func connected(over link: CutLink, now: MonotonicTime) {
        var actions: [SessionMachine.Action] = []
        machine.connected(over: link.id, now: now, into: &actions)
        replaceLink(link)
        perform(actions, now: now)
    }

    /// A client has opened a connection to this server's end.
    func opened(
        by hello: ClientOpening,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        over link: CutLink,
        now: MonotonicTime
    ) -> SessionGoodbye? {
        var actions: [SessionMachine.Action] = []
        let refusal = machine.opened(
            by: hello,
            credentials,
            isResumed: isResumed,
            over: link.id,
            now: now,
            into: &actions
        )
        if refusal == nil { replaceLink(link) }
        perform(actions, now: now)
        return refusal
    }

    private func replaceLink(_ link: CutLink) {
        if let older = self.link { otherLinks[older.id] = older }
        self.link = link
    }

    /// A connection is gone.
    func disconnected(_ link: CutLink, now: MonotonicTime) {
        otherLinks[link.id] = nil
        if self.link === link { self.link = nil }
        perform(now: now) { machine.disconnected(link.id, now: now, into: &$0) }
    }

    /// Takes frames that came over a connection.
    func received(_ frames: [[UInt8]], over link: CutLink, now: MonotonicTime) {
        for frame in frames {
            frame.withUnsafeBytes { bytes in
                var actions: [SessionMachine.Action] = []
                if let arrival = machine.receive(bytes, over: link.id, now: now, into: &actions) {
                    actions.append(.arrived(arrival))
                }
                enqueue(actions)
                runBatches()
            }
        }
        pump(now: now)
    }

    func timerFired(now: MonotonicTime) { perform(now: now) { machine.timerFired(now: now, into: &$0) } }

    // MARK: Users

    /// Runs a call of a user, which may add actions, and writes what follows from it.
    func perform(now: MonotonicTime, _ body: (inout [SessionMachine.Action]) -> Void) {
        var actions: [SessionMachine.Action] = []
        body(&actions)
        perform(actions, now: now)
    }

    /// Sends a message, and tells `offered` the result before anything that follows from it.
    func send(
        _ content: Content,
        now: MonotonicTime,
        offered: (SessionMachine.Offer) -> Void,
        _ body: (inout SessionMachine, SessionMachine.Content, inout [SessionMachine.Action]) -> SessionMachine.Offer
    ) {
        perform(now: now) { actions in offered(content.borrowed { body(&machine, $0, &actions) }) }
    }

    func request(
        _ kind: SessionCallKind,
        _ content: Content,
        deadline: MonotonicTime?,
        now: MonotonicTime,
        asked: (SessionMachine.RequestID) -> Void
    ) throws(RequestError) {
        let result = content.borrowed { content in
            Result { () throws(RequestError) in
                try machine.request(
                    kind.method,
                    content,
                    hasParts: kind.hasRequestParts,
                    deadline: deadline,
                    now: now
                )
            }
        }
        asked(try result.get())
        pump(now: now)
    }

    func respond(
        to request: IncomingRequest,
        _ content: Content,
        now: MonotonicTime,
        offered: (SessionMachine.ResponseOffer) -> Void
    ) {
        perform(now: now) { actions in
            offered(content.borrowed { machine.respond(to: request, $0, now: now, into: &actions) })
        }
    }

    func cancelRequest(_ id: SessionMachine.RequestID, now: MonotonicTime, cancelled: (Bool) -> Void) {
        perform(now: now) { cancelled(machine.cancelRequest(id, now: now, into: &$0)) }
    }

    func endParts(of request: SessionMachine.RequestID, now: MonotonicTime, ended: (Bool) -> Void) {
        perform(now: now) { ended(machine.endParts(of: request, now: now, into: &$0)) }
    }

    /// A push or a part that came in was processed.
    func finish(_ receipt: SessionMachine.Receipt, now: MonotonicTime) {
        machine.finish(receipt, now: now)
        pump(now: now)
    }

    // MARK: The driver

    /// Writes everything that there is to write.
    func pump(now: MonotonicTime) {
        while let link, link.mayWrite(from: side) {
            var (bytes, actions) = ([UInt8](), [SessionMachine.Action]())
            let isMore = machine.offer(hasRoom: true, atMost: 1 << 10, now: now, into: &actions) {
                bytes.append(contentsOf: $0)
            }
            if !bytes.isEmpty {
                link.write(bytes, from: side)
                machine.written()
            }
            enqueue(actions)
            if !isMore { break }
        }
        var actions: [SessionMachine.Action] = []
        machine.offered(hasRoom: true, now: now, into: &actions)
        enqueue(actions)
        runBatches()
    }

    private func perform(_ actions: [SessionMachine.Action], now: MonotonicTime) {
        enqueue(actions)
        pump(now: now)
    }

    private func enqueue(_ actions: [SessionMachine.Action]) {
        if actions.isEmpty { return }
        for action in actions {
            switch action {
            case .sayGoodbye(let id, let goodbye):
                var bytes: [UInt8] = []
                goodbye.write(to: &bytes)
                connection(id)?.write(bytes, from: side)
            case .closeConnection(let id, _): connection(id)?.end(from: side)
            default: break
            }
        }
        batches.append(actions)
    }

    private func connection(_ id: UInt64) -> CutLink? { link?.id == id ? link : otherLinks[id] }

    /// Actions that follow from these come behind them, as in the real driver.
    private func runBatches() {
        if runsBatches { return }
        runsBatches = true
        defer { runsBatches = false }
        while !batches.isEmpty { onActions(batches.removeFirst()) }
    }
}
