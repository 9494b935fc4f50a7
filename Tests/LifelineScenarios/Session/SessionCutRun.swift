internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

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
        /// What was under way comes to the server behind the next connection's hello.
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

    /// What users saw; those of a server, of the client's session.
    package struct Seen: Equatable, Sendable {
        package var delivered: [[Int]] = [[], []]
        package var begun: [[Int]] = [[], []]
        package var cancelled: [[Int]] = [[], []]
        /// The number that the response says, or why there is none.
        package var results: [[Int: String]] = [[:], [:]]
        /// Parts of responses, each before its response.
        package var parts: [[Int: [Int]]] = [[:], [:]]
        package var outcomes: [[UInt64: String]] = [[:], [:]]
    }

    private typealias Link = SimulatedSessionLink
    private typealias Machine = SimulatedSessionEnd.Machine

    /// What the client saw, and the server in each of its sessions.
    private var seenByEach = [Seen()]
    private var sessions: [SimulatedSessionEnd] = []
    /// What does not hold, whatever users see.
    package private(set) var failure: String?
    private let client: SimulatedSessionEnd
    private let server: SimulatedSessionServer
    /// The client's, as far as the server knows: the latest, but for those that a late hello begins.
    private var session: SimulatedSessionEnd? { sessions.first { $0.link === client.link } ?? sessions.last }
    private var now = MonotonicTime(nanoseconds: 0)
    private var linkCount: UInt64 = 0
    /// The client's request that it cancels when the server says that it has begun.
    private var cancellable: Machine.RequestID = 0

    package init() {
        var options = SessionOptions()
        options.acknowledgementBatchSize = 2
        var configuration = SimulatedSessionServer.Configuration()
        configuration.options = options
        configuration.options.acknowledgementBatchSize = 3
        server = SimulatedSessionServer(configuration)
        client = SimulatedSessionEnd(.client, options: options)
        client.onActions = { [unowned self] in acted($0, client, 0) }
        server.onSession = { [unowned self] in began($0) }
    }

    deinit { for end in sessions { end.onActions = { _ in } } }

    /// What users saw.
    package var seen: Seen {
        var seen = seenByEach[0]
        for (end, part) in zip(sessions, seenByEach.dropFirst()) where end === session {
            seen.delivered[1] = part.delivered[1]
            seen.begun[1] = part.begun[1]
            seen.cancelled[1] = part.cancelled[1]
            seen.results[1] = part.results[1]
            seen.parts[1] = part.parts[1]
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
        ask(3)
        push(4, .replaceable(key: "a"))
        push(5, .replaceable(key: "a"))
        cancellable = ask(6)
        ask(7, deadline: now + .seconds(1_000))
        push(8)
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
            end.map { $0.machine.outbound.keptSize == SessionSize() && $0.machine.nextDeadline == nil } ?? false
        }
    }

    private func connect() -> Link {
        linkCount += 1
        let link = Link(id: linkCount, capacity: 1 << 16, frameLimits: (4 << 20, 4 << 20))
        server.accept(link, now: now)
        client.connected(over: link, now: now)
        return link
    }

    /// Everything comes, up to a byte of each direction, in turns.
    private func exchange(over link: Link, upTo place: Place, piece: Int) {
        // Three times, so that what waits for a while to be acknowledged is.
        for _ in 0..<3 {
            var isIdle = false
            while !isIdle {
                let before = (link.deliveredByteCount(to: .client), link.deliveredByteCount(to: .server))
                let toServer = min(piece, place.toServer - before.1)
                if toServer > 0 { server.receive(over: link, atMost: toServer, now: now) }
                let toClient = min(piece, place.toClient - before.0)
                if toClient > 0 {
                    client.received(link.deliver(to: .client, atMost: toClient, now: now), over: link, now: now)
                }
                isIdle = before == (link.deliveredByteCount(to: .client), link.deliveredByteCount(to: .server))
            }
            now = now + .milliseconds(20)
            client.timerFired(now: now)
            session?.timerFired(now: now)
        }
    }

    private func die(_ link: Link, _ death: Death) {
        switch death {
        case .seen, .seenByClient, .seenByServer:
            link.lose(to: .client)
            link.lose(to: .server)
        case .late: link.lose(to: .client)
        }
        switch death {
        case .seen:
            server.disconnected(link, now: now)
            client.disconnected(now: now)
        case .seenByClient, .late:
            client.disconnected(now: now)
        case .seenByServer:
            server.disconnected(link, now: now)
            client.pump(now: now)
            client.disconnected(now: now)
        }
    }

    // MARK: The script

    private func push(_ number: Int, _ delivery: SessionDelivery = .reliable, from end: SimulatedSessionEnd? = nil) {
        let payload = OutgoingPayload.push(method: "m", metadata: [:], payload: SessionNote(number).payload)
        (end ?? client).push(payload, delivery, now: now) { _ in }
    }

    @discardableResult
    private func ask(_ number: Int, deadline: MonotonicTime? = nil, from end: SimulatedSessionEnd? = nil)
        -> Machine.RequestID
    {
        let payload = OutgoingPayload.request(method: "r", metadata: [:], payload: SessionNote(number).payload)
        do {
            return try (end ?? client).request(payload, number, deadline: deadline, now: now)
        } catch {
            failure = "\(error)"
            return 0
        }
    }

    private func respond(to request: IncomingRequest, _ number: Int, parts: Int, at end: SimulatedSessionEnd) {
        for part in 0..<parts {
            let payload = OutgoingPayload.push(
                method: "",
                metadata: [:],
                payload: SessionNote(number, part: part + 1).payload
            )
            end.push(payload, of: request, .reliable, now: now) { _ in }
        }
        let payload = SessionNote(100 + number, part: parts).payload
        end.respond(to: request, .response(SessionStatus(.ok), metadata: [:], payload: payload), now: now)
    }

    /// Of a session that the client never heard of, nothing comes.
    private func began(_ end: SimulatedSessionEnd) {
        sessions.append(end)
        seenByEach.append(Seen())
        let index = sessions.count
        end.onActions = { [unowned self, unowned end] in acted($0, end, index) }
        for number in [21, 22] { push(number, from: end) }
        ask(23, from: end)
        push(24, .replaceable(key: "a"), from: end)
        push(25, .replaceable(key: "a"), from: end)
        ask(26, from: end)
        push(27, from: end)
    }

    /// - Parameter who: the client (0), or which of the server's sessions.
    private func acted(_ actions: [Machine.Action], _ end: SimulatedSessionEnd, _ who: Int) {
        let side = min(who, 1)
        for action in actions {
            switch action {
            case .opened, .admitted, .sayGoodbye, .closeConnection: break
            case .messageEnded(let id, let outcome):
                if seenByEach[who].outcomes[side].updateValue("\(outcome)", forKey: id) != nil {
                    failure = "\(id) ended twice"
                }
            case .complete(let number, let content): ended(number, "\(SessionNote(content)?.number ?? 0)", who)
            case .fail(let number, let code): ended(number, "\(code)", who)
            case .deliverPush(let serial, let content, let receipt):
                let note = SessionNote(content) ?? SessionNote(0)
                if serial == 0 {
                    seenByEach[who].delivered[side].append(note.number)
                } else {
                    let isInTime = seenByEach[who].results[side][note.number] == nil
                    seenByEach[who].parts[side][note.number, default: []].append(isInTime ? note.part : -1)
                }
                end.finish(receipt, now: now)
                if note.number == 55 {
                    client.cancelRequest(cancellable, now: now) { number in
                        if let number { ended(number, "cancelled", 0) }
                    }
                }
            case .beginRequest(let request, _, let content):
                let number = SessionNote(content)?.number ?? 0
                seenByEach[who].begun[side].append(number)
                switch number {
                case 6: push(55, from: end)
                case 7, 26: respond(to: request, number, parts: 2, at: end)
                default: respond(to: request, number, parts: 0, at: end)
                }
            case .cancelRequest(let request):
                seenByEach[who].cancelled[side].append(Int(request.serial))
                respond(to: request, 0, parts: 0, at: end)
            case .sessionLost, .refuseRequest, .peerLeaving, .accused, .notWelcomed, .violated, .ended:
                failure = "\(side == 0 ? "the client" : "the server"): \(action)"
            }
        }
    }

    private func ended(_ number: Int, _ result: String, _ who: Int) {
        if seenByEach[who].results[min(who, 1)].updateValue(result, forKey: number) != nil {
            failure = "request \(number) ended twice"
        }
    }
}
