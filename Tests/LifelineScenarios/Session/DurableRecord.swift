internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// An account of the durable messages of a story, over all processes of both sides.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class DurableRecord: @unchecked Sendable {
    enum Side: Int {
        case client, server

        var other: Side { self == .client ? .server : .client }
    }

    struct Message {
        let side: Side
        let method: String
        let isCall: Bool
        let isObserved: Bool
        /// The process of its sender that sent it.
        let process: Int
        let timeToLive: Duration?
        let sentAt: Duration
        /// Whether its sender knows that it is stored.
        var isAccepted = false
        /// Whether its sender knows that it is not stored, unless a commit that had failed was there later.
        var isRefused = false
        var mayBeStored = false
        /// Whether its sender does not wait any more.
        var hasEnded = false
        /// The outcome that its sender was told after the time to live, and the sender's sessions that told it.
        var expired: SessionDeliveryOutcome?
        var expirySessions: Set<Int> = []
        /// The number of times that a process of the receiver was done with it.
        var handledCount = 0
        /// Whether its caller, or the reader of late replies, has the reply.
        var hasReply = false
    }

    /// The reply to a call has this number more.
    static let replyOffset = 1 << 24
    static let callMethod = "test.Durable/Call"
    static let markedCallMethod = "test.Durable/MarkedCall"
    static let markedMethod = "test.Durable/2"
    static let pushMethods = ["test.Durable/0", "test.Durable/1", markedMethod]

    private let world: World
    let stores: [WatchedStore]
    /// Whether the date jumps, so that messages may expire early, or come back.
    private let dateJumps: Bool
    var totals = DurableScenario.Totals()
    private(set) var messages: [Int: Message] = [:]
    private var lastNumber = 0
    /// How often the process of each side was started.
    private(set) var processes = [0, 0]
    /// How often each side began a session with its store, from which it may learn again that messages have expired.
    private var sessions = [0, 0]
    /// The messages that the present process, or client, of each side has handled, and the last one of each method.
    private var handled: [Set<Int>] = [[], []]
    private var lastHandled: [[String: Int]] = [[:], [:]]
    /// Expired messages whose store does not know that, and those that may come back.
    private var unstoredExpired: [Set<Int>] = [[], []]
    private var returning: Set<Int> = []
    /// Messages whose handlers do not know whether a failed transaction has marked them.
    var uncertainMarks: Set<Int> = []
    /// Messages and replies by their numbers in the store of their sender, and the other way around.
    private var notes: [[UInt64: Int]] = [[:], [:]]
    private var durables: [[Int: UInt64]] = [[:], [:]]

    init(_ world: World, _ stores: [WatchedStore], dateJumps: Bool) {
        (self.world, self.stores, self.dateJumps) = (world, stores, dateJumps)
        for side in [Side.client, .server] {
            stores[side.rawValue].onLoss = { [unowned world] in world.fail("the \(side) forgets what is processed") }
            stores[side.rawValue].note = { [unowned world] in world.note("the store of the \(side) \($0)") }
            stores[side.rawValue].onCommit = { [weak self] changes in
                if changes.date != nil { self?.unstoredExpired[side.rawValue] = [] }
            }
        }
    }

    func demand(_ condition: Bool, _ text: @autoclosure () -> String) {
        if !condition { world.fail(text()) }
    }

    // MARK: Processes

    /// A process was started, or the one before was killed.
    func started(_ side: Side) {
        processes[side.rawValue] += 1
        if processes[side.rawValue] > 1 { totals.kills += 1 }
        for (number, message) in messages where message.side == side && message.isRefused {
            messages[number]?.mayBeStored = true
        }
        beganAnew(side)
        unstoredExpired[side.rawValue] = []
    }

    /// A client was made, or a process was started: messages that were being handled come again.
    func beganAnew(_ side: Side) {
        sessionEnded(side)
        (handled[side.rawValue], lastHandled[side.rawValue]) = ([], [:])
    }

    /// A session is over. The next one reads the store again, and goes by the date.
    func sessionEnded(_ side: Side) {
        sessions[side.rawValue] += 1
        if dateJumps { returning.formUnion(unstoredExpired[side.rawValue]) }
    }

    // MARK: Sending

    func takeNumber(
        _ side: Side,
        _ method: String,
        isCall: Bool = false,
        isObserved: Bool = false,
        timeToLive: Duration? = nil
    ) -> Int {
        lastNumber += 1
        totals.messages += 1
        if isCall { totals.calls += 1 }
        messages[lastNumber] = Message(
            side: side,
            method: method,
            isCall: isCall,
            isObserved: isObserved,
            process: processes[side.rawValue],
            timeToLive: timeToLive,
            sentAt: world.now
        )
        return lastNumber
    }

    /// The send of a push has returned.
    func ended(_ number: Int, _ error: SessionError?) {
        guard let message = messages[number] else { return }
        messages[number]?.hasEnded = true
        switch error?.code {
        case nil:
            messages[number]?.isAccepted = true
            demand(!message.isObserved || isProcessed(number), "\(number) is reported as processed, and is not")
        case .messageKept?: messages[number]?.isAccepted = true
        case .storeFailed?: refused(number)
        case .messageExpired?, .messageInDoubt?:
            demand(message.isObserved && message.timeToLive != nil, "\(number), \(message), has expired")
            expired(number, error?.code == .messageExpired ? .expired : .inDoubt, isSender: true)
        case .cancelled? where message.isObserved: break
        case .closedLocally?, .closedByPeer?, .expired?, .messageUnsent?, .cancelled?, .noStore?:
            // The session was over, or its sender gave up, before it was stored.
            messages[number]?.isRefused = true
        default: world.fail("push \(number) ended with \(error.map { "\($0)" } ?? "")")
        }
    }

    private func refused(_ number: Int) {
        messages[number]?.isRefused = true
        totals.refused += 1
    }

    /// The time to live of an accepted message is over.
    func expired(_ message: SessionMessageInDoubt, _ side: Side) {
        guard message.outcome == .expired || message.outcome == .inDoubt else {
            return world.fail("a durable message is reported as \(message.outcome)")
        }
        guard let number = message.payload.withUnsafeBytes({ SessionNote.number($0) }), messages[number]?.side == side
        else { return world.fail("an unknown message has expired") }
        expired(number, message.outcome, isSender: false)
    }

    private func expired(_ number: Int, _ outcome: SessionDeliveryOutcome, isSender: Bool) {
        guard let message = messages[number], let timeToLive = message.timeToLive else {
            return world.fail("\(number) has expired, and has no time to live")
        }
        // Stores keep dates in whole milliseconds.
        let earliest = message.sentAt + timeToLive - .milliseconds(1)
        demand(dateJumps || earliest <= world.now, "\(number) expires too early")
        demand(outcome == .inDoubt || message.handledCount == 0 || dateJumps, "\(number) came, and is \(outcome)")
        let session = sessions[message.side.rawValue]
        let isFirst = messages[number]?.expirySessions.insert(session).inserted ?? false
        demand(isFirst || message.isObserved, "\(number) expires twice")
        // An earlier process may have known better.
        messages[number]?.expired = message.expired == .inDoubt ? .inDoubt : outcome
        unstoredExpired[message.side.rawValue].insert(number)
        totals.expired += 1
    }

    /// A call has ended for its caller.
    func callEnded(_ number: Int, _ reply: [UInt8]?, _ error: SessionError?) {
        messages[number]?.hasEnded = true
        if let reply { return replied(reply, to: number) }
        switch error?.code {
        case .timedOut?, .cancelled?: break
        case .messageKept?: messages[number]?.isAccepted = true
        case .storeFailed?: refused(number)
        case .closedLocally?, .closedByPeer?, .messageUnsent?: messages[number]?.isRefused = true
        default: world.fail("call \(number) ended with \(error.map { "\($0)" } ?? "")")
        }
    }

    private func replied(_ reply: [UInt8], to number: Int) {
        let note = reply.withUnsafeBytes { SessionNote($0) }
        demand(note?.number == number + Self.replyOffset, "\(number) has the reply \(note?.number ?? 0)")
        demand(messages[number]?.hasReply == false, "\(number) has two replies")
        messages[number]?.isAccepted = true
        messages[number]?.hasReply = true
        totals.replies += 1
    }

    func cameLate(_ reply: [UInt8]) -> Int? {
        guard let note = reply.withUnsafeBytes({ SessionNote($0) }), messages[note.number - Self.replyOffset] != nil
        else {
            world.fail("a late reply comes to no call")
            return nil
        }
        checkArrival(of: note.number, at: .client)
        return note.number - Self.replyOffset
    }

    func finishedLate(_ number: Int) {
        demand(handled[0].insert(number + Self.replyOffset).inserted, "the late reply to \(number) is handled twice")
        messages[number]?.hasReply = true
        totals.lateReplies += 1
    }

    // MARK: Receiving

    /// A message is written to a connection.
    func wrote(_ message: SessionWitness.Message) {
        guard message.durable != 0, let number = message.number else { return }
        let side = message.isByClient ? 0 : 1
        let known = notes[side].updateValue(number, forKey: message.durable) ?? number
        demand(known == number, "\(number) has the durable number of \(known)")
        let durable = durables[side].updateValue(message.durable, forKey: number) ?? message.durable
        demand(durable == message.durable, "\(number) has the durable numbers \(durable) and \(message.durable)")
    }

    /// A message has come to its handler.
    func came(_ bytes: [UInt8], of method: String, at side: Side) -> Int? {
        guard let number = bytes.withUnsafeBytes({ SessionNote($0)?.number }), let message = messages[number] else {
            world.fail("a message came whose bytes are not its own")
            return nil
        }
        demand(message.side != side && message.method == method, "\(number), \(message), came in \(method)")
        checkArrival(of: number, at: side)
        demand(message.expired != .expired || dateJumps, "\(number) has expired, and comes")
        return number
    }

    private func checkArrival(of number: Int, at side: Side) {
        if uncertainMarks.contains(number) { return }
        demand(!isProcessed(number), "\(number) is processed, and comes again")
        demand(!handled[side.rawValue].contains(number), "\(number) was handled, and comes again")
    }

    /// A handler is done with a message.
    func finished(_ number: Int, at side: Side) {
        guard let message = messages[number] else { return }
        messages[number]?.handledCount += 1
        demand(handled[side.rawValue].insert(number).inserted, "\(number) is handled twice")
        totals.processed += 1
        if message.isCall { return }
        let last = lastHandled[side.rawValue].updateValue(number, forKey: message.method) ?? 0
        let mayReturn = returning.contains(number) || returning.contains(last)
        demand(last < number || mayReturn, "\(number) of \(message.method) is handled behind \(last)")
    }

    /// Whether the receiver's disk knows that a message, or a reply, is processed.
    func isProcessed(_ number: Int) -> Bool {
        let isReply = number >= Self.replyOffset
        guard let message = messages[isReply ? number - Self.replyOffset : number] else { return false }
        let (sender, receiver) = isReply ? (1, 0) : (message.side.rawValue, message.side.other.rawValue)
        if !isReply, stores[receiver].database.content.contains(number) { return true }
        return durables[sender][number].map { stores[receiver].processed.contains($0) } ?? false
    }

    // MARK: The end

    /// Describes a message that has not come to its end; nil when there is none.
    func unfinished() -> String? {
        for (number, message) in messages {
            let isDead = message.process != processes[message.side.rawValue]
            if !message.hasEnded, !isDead { return "\(number), \(message)" }
            if message.isAccepted, message.expired == nil, !isProcessed(number) { return "\(number), \(message)" }
            if message.isCall, isProcessed(number), !message.hasReply { return "the reply to \(number), \(message)" }
        }
        return nil
    }

    func verify() {
        for (number, message) in messages {
            if message.isRefused, !message.mayBeStored {
                demand(message.handledCount == 0, "\(number), \(message), was refused, and came")
            } else if message.isRefused, message.handledCount > 0 {
                totals.commitsThatReturned += 1
            }
        }
        for store in stores {
            let content = store.database.content
            demand(Set(content).count == content.count, "an effect happened twice: \(content)")
        }
    }
}
