import Lifeline
import LifelineCore

/// The two ends of a session, and a network between them that a test can cut anywhere.
final class MachinePair {
    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
    let client: MachineEnd
    private(set) var server: MachineEnd
    /// Ends of sessions that the server has forgotten.
    private(set) var oldServers: [MachineEnd] = []
    private let options: SessionOptions
    private var connection: UInt64 = 0
    private(set) var isConnected = false
    var toServer: [UInt8] = []
    var toClient: [UInt8] = []
    private var sessionCount: UInt8 = 0
    private var known: SessionCredentials?
    private(set) var resumptionCount = 0
    private(set) var moveCount = 0
    /// Whether the server has refused the client because its session is being moved.
    private var isRefused = false
    /// How often an end had nothing to offer, and had announced that.
    private(set) var idleOfferCount = 0

    /// - Parameters:
    ///   - takesShortWay: whether simple messages are sent the short way if possible.
    ///   - finishesRuns: whether ends report several messages at once as processed.
    init(_ options: SessionOptions, takesShortWay: Bool = true, finishesRuns: Bool = false) {
        self.options = options
        client = MachineEnd("client", .client, options)
        server = MachineEnd("server", .server, options)
        for end in ends { (end.takesShortWay, end.finishesRuns) = (takesShortWay, finishesRuns) }
    }

    var ends: [MachineEnd] { [client, server] }

    var failure: String? {
        client.failure ?? server.failure ?? oldServers.lazy.compactMap(\.failure).first
    }

    func pass(_ duration: Duration) {
        now = now + duration
        for end in ends {
            if let deadline = end.machine.nextDeadline, deadline <= now {
                end.machine.timerFired(now: now, into: &end.actions)
                end.run(now: now)
            }
        }
    }

    func connect() {
        connection += 1
        isConnected = true
        client.machine.connected(over: connection, now: now, into: &client.actions)
        client.run(now: now)
    }

    /// Loses the connection, and the bytes that were under way.
    func cut() {
        toServer = []
        toClient = []
        (isConnected, isRefused) = (false, false)
        for end in ends {
            end.machine.disconnected(connection, now: now, into: &end.actions)
            end.run(now: now)
        }
    }

    /// Restarts the server, which forgets everything.
    func loseServer() {
        oldServers.append(server)
        for id in server.sent.keys { server.sent[id]?.isLost = true }
        let next = MachineEnd("server", .server, options)
        next.nextID = server.nextID
        next.received = server.received
        (next.takesShortWay, next.finishesRuns) = (server.takesShortWay, server.finishesRuns)
        server = next
        known = nil
    }

    /// Moves the session to another server, if possible. Returns whether it has moved.
    func moveServer() -> Bool {
        guard server.machine.move(pause: .zero, cancelling: now, by: now + .seconds(1)) else { return false }
        server.machine.timerFired(now: now, into: &server.actions)
        server.run(now: now)
        return goOnMoving()
    }

    /// Continues the move of a session that was not at rest.
    @discardableResult
    func goOnMoving() -> Bool {
        guard server.machine.isMoving,
            let snapshot = server.machine.takeSnapshot(now: now, into: &server.actions)
        else { return false }
        server.run(now: now)
        if isConnected { cut() }
        oldServers.append(server)
        let next = MachineEnd(snapshot, of: server, options, now: now)
        server.sent = [:]
        server = next
        moveCount += 1
        return true
    }

    /// Lets an end hand out frames to send. Returns whether there may be more.
    func offer(_ end: MachineEnd, hasRoom: Bool = true, atMost byteCount: Int = 1 << 20) -> Bool {
        var out: [UInt8] = []
        let (isWanted, actionCount) = (wantsOffer(end), end.actions.count)
        let isMore = end.machine.offer(hasRoom: hasRoom, atMost: byteCount, now: now, into: &end.actions) {
            out.append(contentsOf: $0)
        }
        if !isWanted, isMore || !out.isEmpty || end.actions.count != actionCount {
            end.fail("something was offered that was not wanted")
        }
        if end === client { toServer += out } else { toClient += out }
        return isMore
    }

    /// Whether there may be something to offer. If not, a driver makes no offer.
    private func wantsOffer(_ end: MachineEnd) -> Bool {
        let isWanted = end.machine.wantsOffer(now: now)
        if !isWanted { idleOfferCount += 1 }
        return isWanted
    }

    /// Reports the end of an offer.
    func offered(_ end: MachineEnd) {
        let (isWanted, actionCount) = (wantsOffer(end), end.actions.count)
        end.machine.offered(hasRoom: true, now: now, into: &end.actions)
        if !isWanted, end.actions.count != actionCount { end.fail("an offer did something that was not wanted") }
        end.run(now: now)
    }

    /// Hands over the whole frames that are under way.
    func deliver() {
        deliver(&toServer, toClient: false)
        deliver(&toClient, toClient: true)
        if isRefused { cut() }
    }

    /// Closes the connection if an end has asked for it.
    func closeIfAsked() {
        for end in ends where !end.closings.isEmpty {
            end.closings = []
            if isConnected { cut() }
        }
    }

    private func deliver(_ bytes: inout [UInt8], toClient isClient: Bool) {
        var offset = 0
        while true {
            guard case .value(let length, let prefix) = bytes.withUnsafeBytes({ Varint.decode($0, at: offset) }),
                bytes.count - offset - prefix >= Int(length)
            else { break }
            let frame = [UInt8](bytes[(offset + prefix)..<(offset + prefix + Int(length))])
            offset += prefix + Int(length)
            frame.withUnsafeBytes { receive($0, isClient) }
        }
        bytes.removeFirst(offset)
    }

    private func receive(_ frame: UnsafeRawBufferPointer, _ isClient: Bool) {
        if isClient {
            client.receive(frame, over: connection, now: now)
            client.run(now: now)
        } else if let inner = try? InboundFrame(parsing: frame), inner.kind == .hello {
            open(inner.body)
        } else {
            server.receive(frame, over: connection, now: now)
            server.run(now: now)
        }
    }

    private func open(_ body: UnsafeRawBufferPointer) {
        guard let hello = try? ClientOpening(parsing: body) else { return client.fail("the hello cannot be parsed") }
        let isResumed = known != nil && hello.credentials?.id == known?.id
        if isResumed {
            resumptionCount += 1
        } else {
            if server.openedCount > 0 { loseServer() }
            sessionCount += 1
            let bytes = [UInt8](repeating: sessionCount, count: 16)
            guard let id = SessionID(bytes), let token = SessionToken(bytes) else { return }
            known = SessionCredentials(id: id, token: token)
        }
        guard let known else { return }
        let refusal = server.machine.opened(
            by: hello,
            known,
            isResumed: isResumed,
            over: connection,
            now: now,
            into: &server.actions
        )
        if let refusal {
            if !server.machine.isMoving { server.fail("the client was not let in: \(refusal)") }
            isRefused = true
        }
        server.run(now: now)
    }

    /// Heals the network, and lets both ends finish all their work.
    func finish() {
        for round in 0..<400 {
            if !isConnected { connect() }
            exchange()
            if failure != nil { return }
            goOnMoving()
            for end in ends {
                while !end.unread.isEmpty { end.read(0, now: now) }
                for request in end.calls.keys.sorted() { end.goOnAsking(request, size: 10, now: now) }
                for index in end.work.indices.reversed() { end.goOnAnswering(index, size: 10, now: now) }
                end.run(now: now)
            }
            if round % 3 == 0 { pass(.milliseconds(25)) }
            if isQuiet { return }
        }
    }

    /// Sends and delivers everything.
    func exchange() {
        for end in ends {
            var rounds = 0
            while offer(end), rounds < 50 { rounds += 1 }
            offered(end)
        }
        deliver()
        closeIfAsked()
    }

    private var isQuiet: Bool {
        ends.allSatisfy {
            $0.machine.keptSize.frameCount == 0 && $0.calls.isEmpty && $0.work.isEmpty && $0.unread.isEmpty
        }
    }

    /// Returns a failure after all work is finished; nil if every message arrived once and in order, or is accounted
    /// for.
    func check() -> String? {
        for end in ends {
            let kept = end.machine.keptSize
            if kept.frameCount != 0 || kept.byteCount != 0 {
                return "\(end.name) keeps \(kept), \(end.machine.waitingCount) wait"
            }
            if !end.calls.isEmpty { return "\(end.name): calls have not ended: \(end.calls)" }
            if !end.work.isEmpty { return "\(end.name): \(end.work.count) handlers run" }
            if !end.waitingIDs.isEmpty { return "\(end.name): messages wait: \(end.waitingIDs)" }
            if end.machine.keptByteCount != 0, end.peerMethods.isEmpty {
                return "\(end.name) keeps \(end.machine.keptByteCount) bytes"
            }
        }
        return check(client, server.received) ?? check(server, client.received)
    }

    private func check(_ sender: MachineEnd, _ received: [String: [UInt32]]) -> String? {
        for (method, ids) in received {
            if Set(ids).count != ids.count { return "\(method): a push of the \(sender.name)'s came twice" }
            // A message that replaces another one takes over its place, and one that is sent at most once has none.
            let inOrder = ids.filter {
                sender.sent[$0]?.delivery.key == nil && sender.sent[$0]?.delivery.isAtMostOnce == false
            }
            if inOrder != inOrder.sorted() {
                return "\(method): pushes of the \(sender.name)'s are out of order: \(inOrder)"
            }
        }
        let all = Set(received.values.joined())
        for (id, message) in sender.sent {
            if message.isLost { continue }
            let isInDoubt = message.outcome == .inDoubt || message.outcome == .unsent || message.outcome == .refused
            if message.isAccepted, isInDoubt, !message.isLeftOver {
                return "push \(id) of the \(sender.name)'s was not told of whole: \(message)"
            }
            let hasCome = all.contains(id)
            switch message.outcome {
            case nil, .processed?:
                if !hasCome, !message.delivery.isAtMostOnce {
                    return "push \(id) of the \(sender.name)'s is lost: \(message)"
                }
            case .replaced?:
                if hasCome { return "push \(id) came, and was said to be replaced" }
            case .expired?:
                if hasCome { return "push \(id) came, and was said to be expired" }
            case .unsent?, .refused?:
                if hasCome { return "push \(id) came, and was said to be unsent" }
            case .dropped?, .sent?, .inDoubt?, .kept?, .notStored?: break
            }
        }
        return nil
    }
}
