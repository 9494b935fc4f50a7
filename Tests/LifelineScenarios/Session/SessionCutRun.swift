internal import Lifeline
internal import LifelineCore

/// One script of mixed frames in both directions, over a connection that dies at a byte of each direction, and another
/// one on which the session goes on. Wherever it dies, users have to see the same.
package final class SessionCutRun {
    /// How the connection dies.
    package enum Death: Sendable, CaseIterable {
        /// Both sides see it at once.
        case seen
        /// The server goes on writing to it until the client's next one comes.
        case seenByClient
        /// The client goes on writing to it, and sees it later.
        case seenByServer
        /// Bytes that were under way come to the server behind the next connection's hello.
        case late
    }

    /// How many bytes come in each direction before it dies.
    package struct Place: Sendable, Hashable {
        package var toClient: Int
        package var toServer: Int

        package init(toClient: Int, toServer: Int) {
            (self.toClient, self.toServer) = (toClient, toServer)
        }

        /// It does not die.
        package static let never = Place(toClient: .max, toServer: .max)
    }

    /// The view of the users: those of the client, and those of the client's session at the server. Each entry has
    /// both, in this order.
    package struct Seen: Equatable, Sendable {
        package var delivered: [[Int]] = [[], []]
        package var begun: [[Int]] = [[], []]
        package var cancelled: [[Int]] = [[], []]
        /// The number that the response says, or why there is none.
        package var results: [[Int: String]] = [[:], [:]]
        /// Parts of the peer's requests, the end as 0.
        package var requestParts: [[Int: [Int]]] = [[:], [:]]
        /// Parts of responses, each before its response.
        package var responseParts: [[Int: [Int]]] = [[:], [:]]
        package var outcomes: [[Int: String]] = [[:], [:]]
    }

    /// A handler's request.
    private struct Task {
        let number: Int
        let kind: SessionCallKind
        var partCount = 0
    }

    /// The messages and calls of an end, by the numbers that the machine gives.
    private struct Book {
        var numberByRequest: [SessionMachine.RequestID: Int] = [:]
        var requests: [Int: SessionMachine.RequestID] = [:]
        var numbers: [UInt64: Int] = [:]
        var tasks: [IncomingRequest: Task] = [:]
        var methods: [UInt32: String] = [:]
    }

    /// The view of the client, and of each session at the server.
    private var seenByEach = [Seen()]
    private var books = [Book()]
    private var sessions: [CutEnd] = []
    /// The first thing that does not hold, whatever users see.
    package private(set) var failure: String?
    private let client: CutEnd
    private let server: CutServer
    /// The client's, as far as the server knows: the latest, but for those that a late hello begins.
    private var session: CutEnd? { sessions.first { $0.link === client.link } ?? sessions.last }
    private var now = MonotonicTime(nanoseconds: 0)
    private var linkCount: UInt64 = 0

    package init() {
        var options = SessionOptions()
        options.acknowledgementBatchSize = 2
        client = CutEnd(.client, options)
        options.acknowledgementBatchSize = 3
        server = CutServer(options)
        client.onActions = { [unowned self] in acted($0, 0) }
        server.onSession = { [unowned self] in began($0) }
    }

    deinit { for end in sessions { end.onActions = { _ in } } }

    /// The view of the users.
    package var seen: Seen {
        var seen = seenByEach[0]
        for (end, part) in zip(sessions, seenByEach.dropFirst()) where end === session {
            seen.delivered[1] = part.delivered[1]
            seen.begun[1] = part.begun[1]
            seen.cancelled[1] = part.cancelled[1]
            seen.results[1] = part.results[1]
            seen.requestParts[1] = part.requestParts[1]
            seen.responseParts[1] = part.responseParts[1]
            seen.outcomes[1] = part.outcomes[1]
        }
        return seen
    }

    /// Runs it. Once.
    ///
    /// - Parameter piece: how many bytes come at a time.
    /// - Returns: how many bytes came over the first connection.
    @discardableResult
    package func run(cutAt place: Place, _ death: Death, piece: Int = .max) -> Place {
        push(1)
        push(2, .expiring(after: .seconds(1_000)))
        ask(3, .unary)
        push(4, .replaceable(key: "a"))
        push(5, .replaceable(key: "a"))
        // It is cancelled when the server says that it has begun.
        ask(6, .unary)
        ask(7, .serverStream, deadline: now + .seconds(1_000))
        push(8)
        ask(9, .clientStream)
        sendPart(31, of: 9)
        sendPart(32, of: 9, .replaceable(key: "a"))
        sendPart(33, of: 9, .replaceable(key: "a"))
        endParts(of: 9)
        ask(10, .bothWays)
        for part in [34, 35] { sendPart(part, of: 10) }
        endParts(of: 10)
        // It is cancelled when the server says that a part has come.
        ask(11, .clientStream)
        sendPart(36, of: 11)
        // It is answered before its parts have come.
        ask(12, .bothWays)
        sendPart(37, of: 12)
        let link = connect()
        exchange(over: link, upTo: place, piece: piece)
        let came = Place(
            toClient: link.deliveredByteCount(to: .client),
            toServer: link.deliveredByteCount(to: .server)
        )
        guard place != .never else { return came }
        die(link, death)
        let next = connect()
        if death == .late {
            server.receive(over: next, now: now)
            server.receive(over: link, now: now)
            server.disconnected(link, now: now)
        }
        exchange(over: next, upTo: .never, piece: .max)
        // The server has closed it for the next one.
        if death == .seenByClient { server.disconnected(link, now: now) }
        return came
    }

    /// Whether nothing is left anywhere.
    package var isAtRest: Bool {
        [client, session].allSatisfy { end in
            end.map { $0.machine.keptSize == SessionSize() && $0.machine.nextDeadline == nil } ?? false
        }
    }

    private func connect() -> CutLink {
        linkCount += 1
        let link = CutLink(id: linkCount)
        server.accept(link)
        client.connected(over: link, now: now)
        return link
    }

    /// Everything comes, up to a byte of each direction, in turns.
    private func exchange(over link: CutLink, upTo place: Place, piece: Int) {
        // Three times, so that what waits for a while to be acknowledged is.
        for _ in 0..<3 {
            var isIdle = false
            while !isIdle {
                let before = (link.deliveredByteCount(to: .client), link.deliveredByteCount(to: .server))
                let toServer = min(piece, place.toServer - before.1)
                if toServer > 0 { server.receive(over: link, atMost: toServer, now: now) }
                let toClient = min(piece, place.toClient - before.0)
                if toClient > 0 {
                    client.received(link.deliver(to: .client, atMost: toClient), over: link, now: now)
                }
                isIdle = before == (link.deliveredByteCount(to: .client), link.deliveredByteCount(to: .server))
            }
            now = now + .milliseconds(20)
            client.timerFired(now: now)
            session?.timerFired(now: now)
        }
    }

    private func die(_ link: CutLink, _ death: Death) {
        switch death {
        case .seen, .seenByClient, .seenByServer:
            link.lose(to: .client)
            link.lose(to: .server)
        case .late: link.lose(to: .client)
        }
        switch death {
        case .seen:
            server.disconnected(link, now: now)
            client.disconnected(link, now: now)
        case .seenByClient, .late:
            client.disconnected(link, now: now)
        case .seenByServer:
            server.disconnected(link, now: now)
            client.pump(now: now)
            client.disconnected(link, now: now)
        }
    }

    // MARK: The script

    /// - Parameter who: the client (0), or which of the server's sessions.
    private func end(_ who: Int) -> CutEnd { who == 0 ? client : sessions[who - 1] }

    private func push(_ number: Int, _ delivery: SessionDelivery = .reliable, from who: Int = 0) {
        send(number, from: who) {
            $0.push("m", $1, delivery, isObserved: true, now: now, into: &$2)
        }
    }

    private func sendPart(_ part: Int, of number: Int, _ delivery: SessionDelivery = .reliable, from who: Int = 0) {
        guard let request = books[who].requests[number] else { return }
        send(part, from: who) {
            $0.sendPart(of: request, $1, delivery, isObserved: true, now: now, into: &$2)
        }
    }

    private func sendPart(_ part: Int, ofResponseTo request: IncomingRequest, from who: Int) {
        send(part, from: who) {
            $0.sendPart(ofResponseTo: request, $1, .reliable, isObserved: true, now: now, into: &$2)
        }
    }

    private func send(
        _ number: Int,
        from who: Int,
        _ body: (inout SessionMachine, SessionMachine.Content, inout [SessionMachine.Action]) -> SessionMachine.Offer
    ) {
        let content = CutEnd.Content(payload: SessionNote(number).payload)
        end(who).send(content, now: now, offered: { offered(number, $0, who) }, body)
    }

    private func offered(_ number: Int, _ offer: SessionMachine.Offer, _ who: Int) {
        guard case .accepted(let id) = offer else { return failure = "message \(number): \(offer)" }
        books[who].numbers[id] = number
    }

    private func endParts(of number: Int, from who: Int = 0) {
        guard let request = books[who].requests[number] else { return }
        end(who).endParts(of: request, now: now) { if !$0 { failure = "the parts of \(number) cannot end" } }
    }

    private func ask(_ number: Int, _ kind: SessionCallKind, deadline: MonotonicTime? = nil, from who: Int = 0) {
        do {
            try end(who).request(kind, kind.request(number), deadline: deadline, now: now) { id in
                books[who].numberByRequest[id] = number
                books[who].requests[number] = id
            }
        } catch {
            failure = "\(error)"
        }
    }

    private func cancel(_ number: Int) {
        guard let request = books[0].requests[number] else { return }
        client.cancelRequest(request, now: now) { if $0 { ended(number, "cancelled", 0) } }
    }

    private func respond(to request: IncomingRequest, _ number: Int, from who: Int) {
        let content = CutEnd.Content(payload: SessionNote(100 + number).payload)
        end(who).respond(to: request, content, now: now) { offer in
            if case .refused(let refusal) = offer { failure = "a response is refused: \(refusal)" }
        }
    }

    /// Of a session that the client never heard of, nothing comes.
    private func began(_ end: CutEnd) {
        sessions.append(end)
        seenByEach.append(Seen())
        books.append(Book())
        let who = sessions.count
        end.onActions = { [unowned self] in acted($0, who) }
        for number in [21, 22] { push(number, from: who) }
        ask(23, .unary, from: who)
        push(24, .replaceable(key: "a"), from: who)
        push(25, .replaceable(key: "a"), from: who)
        ask(26, .serverStream, from: who)
        push(27, from: who)
        ask(28, .clientStream, from: who)
        for part in [41, 42] { sendPart(part, of: 28, from: who) }
        endParts(of: 28, from: who)
        ask(29, .bothWays, from: who)
        sendPart(43, of: 29, from: who)
        endParts(of: 29, from: who)
    }

    private func acted(_ actions: [SessionMachine.Action], _ who: Int) {
        for action in actions { acted(action, who, min(who, 1)) }
    }

    private func acted(_ action: SessionMachine.Action, _ who: Int, _ side: Int) {
        switch action {
        case .opened, .sayGoodbye, .closeConnection: break
        case .messageEnded(let id, let outcome):
            guard let number = books[who].numbers[id] else { return failure = "message \(id) ended, and is none" }
            if seenByEach[who].outcomes[side].updateValue("\(outcome)", forKey: number) != nil {
                failure = "\(number) ended twice"
            }
        case .arrived(.response(let id, let message, _)):
            ended(books[who].numberByRequest[id] ?? 0, "\(Self.number(message))", who)
        case .failed(let id, let code, _): ended(books[who].numberByRequest[id] ?? 0, "\(code)", who)
        case .arrived(.push(let message, let receipt)):
            let number = Self.number(message)
            seenByEach[who].delivered[side].append(number)
            end(who).finish(receipt, now: now)
            if number == 55 { cancel(6) }
            if number == 56 { cancel(11) }
        case .arrived(.responsePart(let id, let message, let receipt, _)):
            let number = books[who].numberByRequest[id] ?? 0
            let isInTime = seenByEach[who].results[side][number] == nil
            seenByEach[who].responseParts[side][number, default: []].append(isInTime ? Self.number(message) : -1)
            end(who).finish(receipt, now: now)
        case .arrived(.request(let request, let message, _)):
            let kind = SessionCallKind(method: books[who].methods[message.method] ?? "")
            guard let kind, let number = kind.number(of: message) else { return failure = "a request is none" }
            seenByEach[who].begun[side].append(number)
            books[who].tasks[request] = Task(number: number, kind: kind)
            began(request, number, kind, who)
        case .arrived(.requestPart(let request, let message, let receipt)):
            let part = Self.number(message)
            if let task = books[who].tasks[request] {
                seenByEach[who].requestParts[side][task.number, default: []].append(part)
                if task.kind.hasResponseParts { sendPart(part + 200, ofResponseTo: request, from: who) }
                if task.number == 11 { push(56, from: who) }
            } else {
                failure = "part \(part) came of no request"
            }
            end(who).finish(receipt, now: now)
        case .requestEnded(let request):
            guard let task = books[who].tasks[request] else { return failure = "no request has ended" }
            seenByEach[who].requestParts[side][task.number, default: []].append(0)
            respond(to: request, task.number, from: who)
        case .cancelRequest(let request):
            seenByEach[who].cancelled[side].append(books[who].tasks[request]?.number ?? 0)
            respond(to: request, 0, from: who)
        case .method(let number, let name): books[who].methods[number] = name
        case .accepted, .leftOver, .sessionLost, .refuse, .peerLeaving, .accused, .notWelcomed, .violated, .ended,
            .arrived(.reply), .durableCallEnded:
            failure = "\(side == 0 ? "the client" : "the server"): \(action)"
        }
    }

    private func began(_ request: IncomingRequest, _ number: Int, _ kind: SessionCallKind, _ who: Int) {
        switch (number, kind) {
        case (6, _): push(55, from: who)
        case (12, _), (_, .unary): respond(to: request, number, from: who)
        case (_, .serverStream):
            for part in [1, 2] { sendPart(200 + 10 * number + part, ofResponseTo: request, from: who) }
            respond(to: request, number, from: who)
        case (_, .clientStream), (_, .bothWays): break
        }
    }

    private static func number(_ message: InboundMessage) -> Int { SessionNote(message.payload)?.number ?? 0 }

    private func ended(_ number: Int, _ result: String, _ who: Int) {
        if seenByEach[who].results[min(who, 1)].updateValue(result, forKey: number) != nil {
            failure = "request \(number) ended twice"
        }
    }
}

extension SessionCallKind {
    /// A request whose messages follow in parts has no payload, and says in its metadata which one it is.
    private static let numberKey = "number"

    fileprivate func request(_ number: Int) -> CutEnd.Content {
        guard hasRequestParts else { return CutEnd.Content(payload: SessionNote(number).payload) }
        var content = CutEnd.Content()
        FieldWriter.metadataFields([Self.numberKey: "\(number)"], field: 5, into: &content.fields)
        return content
    }

    /// The number of a request that came in; nil when its bytes are not its own.
    fileprivate func number(of message: InboundMessage) -> Int? {
        guard message.hasParts == hasRequestParts else { return nil }
        if !hasRequestParts { return SessionNote(message.payload)?.number }
        return message.payload.isEmpty ? message.metadata[Self.numberKey].flatMap { Int($0) } : nil
    }
}
