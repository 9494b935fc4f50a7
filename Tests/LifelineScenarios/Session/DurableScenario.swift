internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// A random story that follows from a seed: a client and a server that keep durable messages, whose connections are
/// cut, whose disks fail, and whose processes are killed at any step. In the end every message that was accepted was
/// processed once, and those of a method in their order; every call of the client's, too, and its reply.
///
/// What a handler does is on its disk with the mark that it has done it: when the store commits that.
package final class DurableScenario {
    /// How it went.
    package struct Result: Sendable {
        /// The first thing that did not hold; nil when everything did.
        package var failure: String?
        package var totals = Totals()
        /// Empty without tracing.
        package var trace: [String] = []
    }

    /// What happened, in all.
    package struct Totals: Sendable, Equatable {
        package var messages = 0
        package var processed = 0
        package var kills = 0
        package var connections = 0
        /// Messages that could not be stored.
        package var refused = 0
        /// Commits that had failed, and were there when the process was killed.
        package var commitsThatReturned = 0
        /// Messages that have expired, counted by each process that learnt of it.
        package var expired = 0
        /// Of the messages, calls; replies that found their askers; and those that came when nobody waited any more.
        package var calls = 0
        package var replies = 0
        package var lateReplies = 0

        package init() {}

        package static func += (sum: inout Totals, more: Totals) {
            sum.messages += more.messages
            sum.processed += more.processed
            sum.kills += more.kills
            sum.connections += more.connections
            sum.refused += more.refused
            sum.expired += more.expired
            sum.commitsThatReturned += more.commitsThatReturned
            sum.calls += more.calls
            sum.replies += more.replies
            sum.lateReplies += more.lateReplies
        }
    }

    typealias Side = SimulatedSessionLink.Side

    /// A message that came and is not processed.
    private struct Unread {
        /// Nil of a call.
        let receipt: SessionMachine.Receipt?
        let note: Int
        let method: String
        /// Its number in the store of its sender.
        let number: UInt64
        /// Whether its handler has marked it with its effect, and has not returned.
        var isMarked = false
        /// Of a call: to be answered, in the session that it came in.
        var call: (request: IncomingRequest, end: SimulatedSessionEnd)?
        /// Whether it is handled whatever came before it: a call, or a reply.
        var isUnordered = false
    }

    /// How a disk behaves for a while.
    private enum Disk: CaseIterable {
        /// One in 40 pieces of work fails.
        case good
        case full
        case failing
        /// A piece of work takes seconds.
        case slow
    }

    /// Waits for the reply to a call.
    private final class Asker: Sendable {
        let note: Int

        init(_ note: Int) { self.note = note }
    }

    /// The reply to a call has this number more.
    private static let replyOffset = 1 << 24

    private static func isReply(_ note: Int) -> Bool { note >= replyOffset }

    /// One side over all of its processes.
    private final class Party {
        let side: Side
        let store: SimulatedSessionStore
        /// Of its own messages: the method of each, and what its sender was told.
        var methods: [Int: String] = [:]
        var accepted: Set<Int> = []
        /// Those that are not stored, as the sender knows.
        var refused: Set<Int> = []
        /// Notes by the numbers of messages in the present process.
        var waiting: [UInt64: Int] = [:]
        /// Of those, the ones whose senders wait until they are processed, and are not told yet.
        var observed: Set<UInt64> = []
        /// The messages of these are calls that are not answered, as far as their askers know.
        var asked: [UInt64: Asker] = [:]
        /// Calls that nobody waits for any more.
        var givenUp: Set<Int> = []
        /// Until when its messages are worth sending, of those that are not for ever.
        var deadlines: [Int: MonotonicTime] = [:]
        /// Those that have expired, and whether the other side may have seen them; and of which the present process was
        /// told.
        var expired: [Int: SessionDeliveryOutcome] = [:]
        var toldExpired: Set<Int> = []
        var isClockForward = false
        var disk = Disk.good
        /// Of `refused`, those that are perhaps on the disk nevertheless.
        var uncertain: Set<Int> = []
        var isClockBack = false
        /// Those that have expired by a date that the store does not know. Where its process is killed before it does,
        /// and the clock was put back, they may come after all.
        var unstoredExpired: Set<Int> = []
        var returning: Set<Int> = []
        /// Of the other side's: by their numbers in the store.
        var came: [UInt64: Int] = [:]
        var unread: [Unread] = []
        /// Those that a handler of the present process has handled, and of each method the last one.
        var handled: Set<Int> = []
        var lastHandled: [String: Int] = [:]
        /// Those whose effects are on the disk, and of them those whose handlers have marked them.
        var processed: Set<Int> = []
        var marked: Set<Int> = []
        var known = ReceivedNumbers()

        init(_ side: Side, _ id: UInt64) {
            self.side = side
            store = SimulatedSessionStore(id: SessionStoreID(SessionID(id, id)))
        }

        /// Its process is gone.
        func killed() {
            (waiting, unread, handled, lastHandled) = ([:], [], [], [:])
            (observed, asked, toldExpired) = ([], [:], [])
            if isClockBack { returning.formUnion(unstoredExpired) }
            unstoredExpired = []
        }
    }

    private var random: SimulationRandom
    private let isTracing: Bool
    private var result = Result()
    private var now = MonotonicTime(nanoseconds: 0)
    private let options: SessionOptions
    private let parties = [Party(.client, 1), Party(.server, 2)]
    private var client: SimulatedSessionEnd
    private var server: SimulatedSessionServer
    private var link: SimulatedSessionLink?
    private var linkCount: UInt64 = 0
    private var noteCount = 0
    private var isQuiet = false
    /// Whether more is kept than memory has.
    private let isLarge: Bool

    package init(seed: UInt64, isTracing: Bool = false) {
        self.isTracing = isTracing
        var random = SimulationRandom(seed: seed)
        var options = SessionOptions()
        let isSmall = Bool.random(using: &random)
        options.outboundLimit = SessionWindow(frameCount: isSmall ? 8 : 1_000, byteCount: 64 << 10)
        options.inboundWindow = SessionWindow(frameCount: isSmall ? 8 : 1_000, byteCount: 64 << 10)
        options.inboundCredit = 64 << 10
        options.maximumRunningCount = isSmall ? 2 : 20
        self.options = options
        isLarge = Int.random(in: 0..<8, using: &random) == 0
        self.random = random
        client = SimulatedSessionEnd(.client, options: options)
        server = SimulatedSessionServer(SimulatedSessionServer.Configuration())
        for party in parties {
            party.store.duration = { [unowned self, unowned party] in
                isQuiet ? .zero : .milliseconds(party.disk == .slow ? 1_000 + below(3_000) : below(30))
            }
            party.store.failure = { [unowned self, unowned party] in failure(of: $0, on: party.disk) }
            party.store.onCommit = { [unowned self, unowned party] in committed($0, at: party) }
        }
        startClient()
        startServer(sessionCount: 0)
    }

    private var clientParty: Party { parties[0] }
    private var serverParty: Party { parties[1] }

    private func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    private func note(_ line: @autoclosure () -> String) {
        if isTracing { result.trace.append("\(now) \(line())") }
    }

    private func demand(_ condition: Bool, _ what: @autoclosure () -> String) {
        guard !condition, result.failure == nil else { return }
        result.failure = what()
        note("FAILED: \(what())")
    }

    /// Runs it. Once.
    package func run() -> Result {
        for _ in 0..<Int.random(in: 50...400, using: &random) where result.failure == nil { step() }
        if result.failure == nil { settle() }
        client.onActions = { _ in }
        for (_, end) in server.sessions { end.onActions = { _ in } }
        return result
    }

    private func failure(of work: SessionMachine.StoreWork, on disk: Disk) -> StoreError.Code? {
        if isQuiet { return nil }
        switch (disk, work) {
        case (.full, .commit): return .full
        case (.failing, _) where below(4) > 0: return .failed
        case (.good, _) where below(40) == 0: return below(2) == 0 ? .full : .failed
        default: return nil
        }
    }

    private func step() {
        switch below(41) {
        case 0..<5: push(from: clientParty)
        case 5..<8: if below(8) == 0 { giveUpCall() } else { call() }
        case 8..<12: push(from: serverParty)
        case 12..<22: deliver(atMost: below(3) == 0 ? 1 + below(100) : .max)
        case 22..<28: for party in parties { process(at: party, atMost: below(6)) }
        case 28..<33: advance(by: .milliseconds(below(40)))
        case 33: advance(by: .milliseconds(below(3_000)))
        case 34..<36: if link == nil || below(6) == 0 { connect() }
        case 36: if below(3) == 0 { cut() }
        case 37: if below(4) == 0 { forgetSession() }
        case 38: if below(3) == 0 { killClient() }
        case 39: changeDisk(of: parties[below(2)])
        default: if below(3) == 0 { killServer() }
        }
    }

    private func changeDisk(of party: Party) {
        // Most are good most of the time.
        party.disk = below(2) == 0 ? .good : Disk.allCases[below(Disk.allCases.count)]
        note("the disk of the \(party.side) is \(party.disk)")
    }

    // MARK: Processes

    private func startClient() {
        client = SimulatedSessionEnd(.client, options: options)
        client.use(clientParty.store, for: nil)
        client.onActions = { [unowned self] in acted($0, client, clientParty) }
        client.pump(now: now)
    }

    private func startServer(sessionCount: UInt64) {
        var configuration = SimulatedSessionServer.Configuration()
        configuration.options = options
        configuration.registry.keptDuration = .milliseconds(1_500)
        configuration.registry.hasStore = true
        configuration.store = serverParty.store
        server = SimulatedSessionServer(configuration, sessionCount: sessionCount)
        server.onSession = { [unowned self] end in
            end.onActions = { [unowned self, unowned end] in acted($0, end, serverParty) }
        }
    }

    private func killClient() {
        note("the client is killed")
        result.totals.kills += 1
        cut()
        client.onActions = { _ in }
        killProcess(of: clientParty)
        startClient()
    }

    private func killServer() {
        note("the server is killed")
        result.totals.kills += 1
        cut()
        for (_, end) in server.sessions { end.onActions = { _ in } }
        killProcess(of: serverParty)
        startServer(sessionCount: server.sessionCount)
    }

    private func killProcess(of party: Party) {
        if party.store.killed(isWritten: { below(2) == 0 }) {
            note("a commit of the \(party.side) has failed, and is there")
            party.uncertain.formUnion(party.refused)
            result.totals.commitsThatReturned += 1
        }
        setClock(of: party)
        party.killed()
    }

    /// The clock of a machine may be set while its process does not run.
    private func setClock(of party: Party) {
        guard below(4) == 0 else { return }
        let change = below(4_000) - 2_000
        party.store.dateOffset += Int64(change)
        if change > 0 { party.isClockForward = true } else { party.isClockBack = true }
        note("the clock of the \(party.side) is set by \(change) ms")
    }

    /// The server's end of the session is over, and its handlers are cancelled.
    private func forgetSession() {
        guard let end = server.sessions.last?.end else { return }
        note("the server ends a session")
        let calls = serverParty.unread.filter { $0.call?.end === end }
        serverParty.unread = []
        end.end(.abandoned, now: now)
        // Their handlers are cancelled, and end as they like.
        for message in calls {
            if below(2) == 0 { answer(message) } else { message.call.map { end.abandoned($0.request, now: now) } }
        }
    }

    // MARK: Connections

    private func connect() {
        guard client.machine.endReason == nil else { return startClientAgain() }
        cut()
        linkCount += 1
        result.totals.connections += 1
        let link = SimulatedSessionLink(
            id: linkCount,
            capacity: 4 << 10,
            frameLimits: (options.maximumFrameLength, options.maximumFrameLength)
        )
        note("link \(link.id)")
        self.link = link
        server.accept(link, now: now)
        client.connected(over: link, now: now)
    }

    /// The server has ended the session, and so the client's run is over: its program makes another client.
    private func startClientAgain() {
        // What was being stored is.
        while let due = clientParty.store.nextDeadline { advance(by: max(due - now, .zero)) }
        note("the client is made again")
        demand(clientParty.asked.isEmpty, "who waits for replies is not told of the end")
        client.onActions = { _ in }
        clientParty.killed()
        startClient()
    }

    private func cut() {
        guard let link else { return }
        self.link = nil
        client.disconnected(link, now: now)
        server.disconnected(link, now: now)
    }

    private func deliver(atMost byteCount: Int = .max) {
        guard let link else { return }
        if below(2) == 0 {
            server.receive(over: link, atMost: byteCount, now: now)
        } else {
            client.received(link.deliver(to: .client, atMost: byteCount), over: link, now: now)
            if link.isAtEnd(at: .client) { cut() }
        }
        client.pump(now: now)
        for (_, end) in server.sessions { end.pump(now: now) }
    }

    private func advance(by duration: Duration) {
        now = now + duration
        for party in parties { party.store.advanced(to: now) }
        server.advanced(to: now)
        for end in [client] + server.sessions.map(\.end) {
            if let deadline = end.machine.nextDeadline, deadline <= now { end.timerFired(now: now) }
            end.pump(now: now)
        }
    }

    // MARK: Users

    /// The method whose handlers mark messages themselves.
    private static let markingMethod = "test.Durable/2"

    private func push(from party: Party) {
        guard party.waiting.count < 200, let end = party.side == .client ? client : server.sessions.last?.end else {
            return
        }
        for _ in 0..<(below(10) == 0 ? 1 + below(30) : 1) {
            noteCount += 1
            let number = noteCount
            let method = "test.Durable/\(below(3))"
            let filler = isLarge ? below(50_000) : below(8) == 0 ? below(3_000) : below(40)
            let content = SessionNote(number, fillerCount: filler).content
            let isObserved = below(3) == 0
            let deadline = below(4) == 0 ? now + .milliseconds(below(1_500)) : nil
            end.pushDurable(method, content, deadline: deadline, isObserved: isObserved, now: now) { offer in
                guard case .waits(let id) = offer else { return }
                party.methods[number] = method
                party.waiting[id] = number
                party.deadlines[number] = deadline
                if isObserved { party.observed.insert(id) }
                result.totals.messages += 1
                note("the \(party.side) pushes \(number)")
            }
        }
    }

    private func call() {
        guard clientParty.waiting.count < 200 else { return }
        for _ in 0..<(below(10) == 0 ? 1 + below(30) : 1) {
            noteCount += 1
            let (number, asker) = (noteCount, Asker(noteCount))
            let method = "test.Durable/\(below(2) == 0 ? "call" : "markedCall")"
            let content = SessionNote(number, fillerCount: isLarge ? below(50_000) : below(40)).content
            let deadline = below(4) == 0 ? now + .milliseconds(below(300)) : nil
            client.callDurably(method, content, deadline: deadline, asker: asker, now: now) { offer in
                guard case .waits(let id) = offer else { return }
                clientParty.methods[number] = method
                clientParty.waiting[id] = number
                clientParty.asked[id] = asker
                serverParty.methods[number + Self.replyOffset] = method
                result.totals.messages += 1
                result.totals.calls += 1
                note("the client calls \(number)")
            }
        }
    }

    private func giveUpCall() {
        guard let id = clientParty.asked.keys.sorted().randomElement(using: &random), let asker = clientParty.asked[id]
        else { return }
        note("the client gives \(asker.note) up")
        ended(asker, nil)
        client.cancelDurableCall(id, now: now)
    }

    /// A call has ended for its asker without a reply; nil: it is given up.
    private func ended(_ asker: Asker, _ outcome: SessionDeliveryOutcome?) {
        guard let id = clientParty.asked.first(where: { $0.value === asker })?.key else {
            return demand(false, "\(asker.note) ends twice")
        }
        clientParty.asked[id] = nil
        clientParty.givenUp.insert(asker.note)
        if let outcome, outcome != .notStored { ended(id, outcome, clientParty) }
    }

    private func acted(_ actions: [SessionMachine.Action], _ end: SimulatedSessionEnd, _ party: Party) {
        for action in actions {
            switch action {
            case .arrived(.push(let message, let receipt)):
                guard let content = SessionNote(message.payload) else { return demand(false, "a push is no note") }
                came(content.number, message, receipt, end, party)
            case .arrived(.request(let request, let message, _)):
                guard let content = SessionNote(message.payload) else { return demand(false, "a call is no note") }
                let end = party.side == .client ? client : end
                came(content.number, message, call: (request, end), end, party)
            case .arrived(.reply(let message, let receipt, let asker)):
                guard let content = SessionNote(message.payload) else { return demand(false, "a reply is no note") }
                replied(content.number, message, receipt, asker as? Asker, end, party)
            case .durableCallEnded(let asker, let outcome):
                if let asker = asker as? Asker { ended(asker, outcome) }
            case .accepted(let id):
                if let number = party.waiting[id] { party.accepted.insert(number) }
            case .messageEnded(let id, let outcome): ended(id, outcome, party)
            case .leftOver(let message, _):
                guard let content = message.payload.withUnsafeBytes({ SessionNote($0) }) else {
                    return demand(false, "what expired is no note")
                }
                expired(content.number, message.outcome, party)
            case .violated(let violation): demand(false, "somebody broke the rules: \(violation)")
            case .ended where party.side == .server:
                // Its handlers are cancelled, or its pushes were all handled.
                serverParty.unread = []
                // The next one looks into the store.
                serverParty.toldExpired = []
            default: break
            }
        }
    }

    private func ended(_ id: UInt64, _ outcome: SessionDeliveryOutcome, _ party: Party) {
        guard let number = party.waiting[id] else { return }
        party.observed.remove(id)
        switch outcome {
        case .processed: demand(other(than: party).processed.contains(number), "\(number) is not processed")
        case .notStored, .unsent:
            demand(!party.accepted.contains(number), "\(number) was accepted, and is \(outcome)")
            party.refused.insert(number)
            result.totals.refused += 1
        case .expired, .inDoubt: demand(party.deadlines[number] != nil, "\(number) has no deadline, and is \(outcome)")
        case .kept: demand(party.accepted.contains(number), "\(number) was not accepted, and is kept")
        default: demand(false, "\(number) is \(outcome)")
        }
    }

    /// A message has expired, as its sender is told.
    private func expired(_ number: Int, _ outcome: SessionDeliveryOutcome, _ party: Party) {
        note("\(number) of the \(party.side) is \(outcome)")
        guard let deadline = party.deadlines[number] else { return demand(false, "\(number) is \(outcome)") }
        demand(deadline <= now || party.isClockForward, "\(number) expires too early")
        party.unstoredExpired.insert(number)
        demand(party.toldExpired.insert(number).inserted, "\(number) expires twice")
        let cameBefore = other(than: party).came.values.contains(number)
        demand(outcome == .inDoubt || outcome == .expired && !cameBefore, "\(number) came, and is \(outcome)")
        // An earlier process may have known better.
        party.expired[number] = party.expired[number] == .inDoubt ? .inDoubt : outcome
        result.totals.expired += 1
    }

    private func replied(
        _ number: Int,
        _ message: InboundMessage,
        _ receipt: SessionMachine.Receipt,
        _ asker: Asker?,
        _ end: SimulatedSessionEnd,
        _ party: Party
    ) {
        demand(party.side == .client && Self.isReply(number), "a reply comes that is none")
        came(number, message, receipt, end, party)
        guard let asker else { return }
        demand(asker.note == number - Self.replyOffset, "\(asker.note) has the reply of another one")
        guard let id = party.asked.first(where: { $0.value === asker })?.key else {
            return demand(false, "\(asker.note) has a reply, and does not wait")
        }
        party.asked[id] = nil
        party.unread.removeAll { $0.note == number }
        result.totals.replies += 1
        note("\(asker.note) has its reply")
        end.finish(receipt, now: now)
    }

    private func came(
        _ number: Int,
        _ message: InboundMessage,
        _ receipt: SessionMachine.Receipt? = nil,
        call: (request: IncomingRequest, end: SimulatedSessionEnd)? = nil,
        _ end: SimulatedSessionEnd,
        _ party: Party
    ) {
        let sender = other(than: party)
        let method = end.machine.peerMethods[Int(message.method) - 1]
        demand(sender.methods[number] == method, "\(number) comes of another method")
        demand(message.durable != 0, "\(number) has no number")
        demand(!party.processed.contains(number), "\(number) is processed, and comes again")
        let mayReturn = sender.returning.contains(number)
        demand(sender.expired[number] != .expired || mayReturn, "\(number) has expired, and comes")
        demand(party.came.updateValue(number, forKey: message.durable) ?? number == number, "\(number) has two numbers")
        demand(!party.unread.contains { $0.note == number }, "\(number) comes twice")
        if let call {
            let running = party.unread.count { $0.call?.end === call.end }
            demand(running < options.maximumRunningCount, "\(running) calls run, and another one begins")
        }
        var unread = Unread(receipt: receipt, note: number, method: method, number: message.durable)
        (unread.call, unread.isUnordered) = (call, call != nil || Self.isReply(number))
        party.unread.append(unread)
    }

    /// Handlers process some messages: of each method in order, the methods side by side, and calls as well.
    private func process(at party: Party, atMost count: Int) {
        for _ in 0..<count {
            guard let any = party.unread.indices.randomElement(using: &random) else { return }
            let method = party.unread[any].method
            if party.unread[any].isUnordered {
                processUnordered(any, at: party)
                continue
            }
            guard let index = party.unread.firstIndex(where: { $0.method == method && !$0.isUnordered }),
                let end = party.side == .client ? client : server.sessions.last?.end
            else { return }
            if method == Self.markingMethod, !party.unread[index].isMarked {
                party.unread[index].isMarked = true
                mark(party.unread[index], end, party)
                continue
            }
            let message = party.unread.remove(at: index)
            demand(party.handled.insert(message.note).inserted, "\(message.note) is handled twice")
            let last = party.lastHandled.updateValue(message.note, forKey: method) ?? 0
            let mayReturn = other(than: party).returning.contains(message.note)
            demand(last < message.note || mayReturn, "\(message.note) is handled behind \(last)")
            note("the \(party.side) has handled \(message.note)")
            if let receipt = message.receipt { end.finish(receipt, now: now) }
        }
    }

    /// A call, or a reply that nobody waits for.
    private func processUnordered(_ index: Int, at party: Party) {
        let message = party.unread[index]
        if let call = message.call, message.method == "test.Durable/markedCall", !message.isMarked {
            party.unread[index].isMarked = true
            let payload = SessionNote(message.note + Self.replyOffset).payload
            let bytes = SessionMachine.replyBytes(to: message.number, of: message.method, payload: payload)
            markEffect(message, party)
            party.store.mark(message.number, of: other(than: party).store.id, reply: bytes)
            return call.end.marked(call.request)
        }
        party.unread.remove(at: index)
        demand(party.handled.insert(message.note).inserted, "\(message.note) is handled twice")
        note("the \(party.side) has handled \(message.note)")
        answer(message)
        guard let receipt = message.receipt else { return }
        result.totals.lateReplies += 1
        client.finish(receipt, now: now)
    }

    /// A handler replies to its call.
    private func answer(_ message: Unread) {
        guard let (request, end) = message.call else { return }
        let filler = isLarge ? below(50_000) : below(100)
        let content = SessionNote(message.note + Self.replyOffset, fillerCount: filler).content
        end.respond(to: request, content, now: now) { offer in
            demand(offer == .accepted, "the reply to \(message.note) is \(offer)")
        }
    }

    /// A handler writes its effect together with the mark.
    private func mark(_ message: Unread, _ end: SimulatedSessionEnd, _ party: Party) {
        markEffect(message, party)
        party.store.mark(message.number, of: other(than: party).store.id)
        if let receipt = message.receipt { end.marked(receipt) }
    }

    private func markEffect(_ message: Unread, _ party: Party) {
        demand(party.processed.insert(message.note).inserted, "\(message.note) is processed twice, and marked")
        party.marked.insert(message.note)
        result.totals.processed += 1
        note("a handler of the \(party.side) marks \(message.note)")
        acceptReply(to: message.note, at: party)
    }

    /// A call is processed: its reply is on the disk, too.
    private func acceptReply(to number: Int, at party: Party) {
        let reply = number + Self.replyOffset
        if party.methods[reply] != nil { party.accepted.insert(reply) }
    }

    private func committed(_ changes: SessionStoreChanges, at party: Party) {
        if changes.date != nil { party.unstoredExpired = [] }
        for bytes in changes.processed.values {
            guard let numbers = ReceivedNumbers(bytes: bytes) else { return demand(false, "numbers cannot be read") }
            let came = party.came.sorted { $0.key < $1.key }
            for (number, content) in came where numbers.contains(number) && !party.known.contains(number) {
                if party.marked.contains(content) { continue }
                // Its sender may have said that it does not come any more.
                if other(than: party).expired[content] != nil, !party.handled.contains(content) { continue }
                demand(party.processed.insert(content).inserted, "\(content) is processed twice")
                result.totals.processed += 1
                note("the \(party.side) has \(content) on its disk")
                acceptReply(to: content, at: party)
            }
            for (number, _) in came where party.known.contains(number) {
                demand(numbers.contains(number), "number \(number) is forgotten")
            }
            party.known = numbers
        }
    }

    private func other(than party: Party) -> Party { party.side == .client ? serverParty : clientParty }

    // MARK: The end

    /// Nothing disturbs any more: all comes, and nothing is left in the stores.
    private func settle() {
        note("nothing disturbs any more")
        isQuiet = true
        // What is under way on a slow disk comes to its end.
        advance(by: .seconds(5))
        for _ in 0..<3_000 where result.failure == nil {
            if isDone { break }
            if link == nil || client.machine.endReason != nil { connect() }
            for _ in 0..<4 { deliver() }
            for party in parties { process(at: party, atMost: 100) }
            advance(by: .milliseconds(20))
        }
        for party in parties where result.failure == nil {
            let processed = other(than: party).processed
            for number in party.methods.keys.sorted() {
                if party.expired[number] != nil { continue }
                if party.accepted.contains(number) {
                    demand(processed.contains(number), "\(number) of the \(party.side) is lost")
                } else if party.refused.contains(number), !party.uncertain.contains(number) {
                    demand(!processed.contains(number), "\(number) of the \(party.side) was refused, and is processed")
                }
            }
            demand(party.store.groupCount == 0, "groups are left in the store of the \(party.side)")
            demand(party.asked.isEmpty, "who waits for replies at the \(party.side) is not told")
            demand(party.observed.isEmpty, "who waits at the \(party.side) is not told")
        }
    }

    private var isDone: Bool {
        parties.allSatisfy { party in
            party.store.groupCount == 0 && party.unread.isEmpty && party.store.nextDeadline == nil
                && party.observed.isEmpty
                && party.accepted.allSatisfy {
                    other(than: party).processed.contains($0) || party.expired[$0] != nil
                }
                && party.waiting.allSatisfy {
                    party.accepted.contains($1) || party.refused.contains($1) || party.givenUp.contains($1)
                }
                && party.asked.isEmpty
        }
    }
}

extension DurableScenario {
    /// Returns the text of a failure, with the command that shows what led to it.
    package static func failureMessage(_ seed: UInt64, _ what: String) -> String {
        "durable scenario \(seed) failed: \(what); replay: scripts/soak --durable-scenario \(seed)"
    }
}
