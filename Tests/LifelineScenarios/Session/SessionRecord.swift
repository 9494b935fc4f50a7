internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// An account of everything that the users of a story have sent, received and were told, over all sessions. It makes
/// the world fail at the first thing that does not hold.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class SessionRecord: @unchecked Sendable {
    /// The user that sends a push.
    enum Sender: Hashable {
        /// A client in one of its runs. Its messages go on with the next session.
        case client(run: Int)
        /// The server's end of a session, counted from 1.
        case server(session: Int)
    }

    /// Messages that have one order and one credit. Calls have the numbers of their notes.
    enum Stream: Hashable {
        case pushes(String, Sender)
        case requestParts(Int)
        case responseParts(Int)

        var isPushes: Bool { if case .pushes = self { true } else { false } }
    }

    /// How the send of a message ended.
    enum SendEnd: Hashable {
        case accepted
        case processed
        case failed(SessionError.Code)
    }

    /// A push or a part that was sent.
    struct Message {
        let stream: Stream
        let sender: Sender
        let delivery: SessionDelivery
        /// Whether its sender waits until it is processed.
        let isObserved: Bool
        let byteCount: Int
        let sentAt: Duration
        /// Whether its stream had used up its credit when it was sent.
        var exceedsCredit = false
        var acceptedAt: Duration?
        /// Nil while its sender waits.
        var end: SendEnd?
        /// The outcome that was told after the message had been accepted.
        var leftOver: SessionDeliveryOutcome?
        var hasCome = false
        var isFinished = false

        var isPlainPush: Bool { stream.isPushes && delivery == .reliable && !isObserved }

        /// Whether it may still arrive after its sender was told the end.
        var mayCome: Bool {
            switch leftOver {
            case .expired?, .replaced?, .refused?, .unsent?, .dropped?: return false
            case .processed?, .sent?, .inDoubt?, .kept?, .notStored?, nil: break
            }
            guard case .failed(let code)? = end else { return true }
            // An observed message whose sender was cancelled goes on.
            return code == .messageInDoubt || code == .cancelled && isObserved || code == .notWaitedFor
        }
    }

    /// A request of the client.
    struct Call {
        enum Result: Hashable {
            case replied
            case status(SessionStatus.Code)
            case failed(SessionError.Code)
        }

        let kind: SessionCallKind
        let run: Int
        let timeout: Duration?
        let startedAt: Duration
        let byteCount: Int
        var isCancelled = false
        /// Whether all of its parts were sent.
        var hasSentParts = false
        var partCount = 0
        var result: Result?
        var endedAt: Duration?
    }

    /// The handler of a call.
    struct Handler {
        let session: Int
        var hasEnded = false
        /// Whether its process was killed.
        var isDead = false
    }

    private let world: World
    let settings: SessionSettings
    var totals = SessionScenario.Totals()
    /// The number of the last message or call. All of them are numbered together.
    private(set) var lastNumber = 0

    var messages: [Int: Message] = [:]
    var calls: [Int: Call] = [:]
    var handlers: [Int: Handler] = [:]
    /// The times at which the client's runs have lost sessions.
    private(set) var losses: [Int: [Duration]] = [:]
    /// The times at which runs were told to end, or were ended by the server.
    var runEnds: [Int: Duration] = [:]
    /// The times at which sessions of the server ended, and the sessions whose process was killed.
    var serverSessionEnds: [Int: Duration] = [:]
    private(set) var deadSessions: Set<Int> = []
    /// Outcomes that only the loss or the end of a session explains. They are checked at the end, because a sender
    /// may learn of it before the session's other users.
    private(set) var claims: [Claim] = []

    /// Of each stream in each session of the receiver: the last number, and the last one of each key.
    private var lastCame: [Order: Int] = [:]
    /// The bytes of each stream that were sent and are not processed.
    private var outstanding: [Stream: Int] = [:]
    /// The reliable pushes of each sender that were accepted and are not processed.
    private var kept: [Sender: SessionSize] = [:]
    /// Clients that keep more than they may, unless they have just lost a session.
    private(set) var excesses: [(sender: Sender, time: Duration, text: String)] = []

    struct Claim {
        let sender: Sender
        let sentAt: Duration
        let toldAt: Duration
        let text: String
        /// Whether the loss of a session explains it, too.
        var isLoss = false
    }

    private struct Order: Hashable {
        let stream: Stream
        let receiver: Int
        let key: String?
    }

    init(_ world: World, _ settings: SessionSettings) { (self.world, self.settings) = (world, settings) }

    func fail(_ text: @autoclosure () -> String) { world.fail(text()) }

    func demand(_ condition: Bool, _ text: @autoclosure () -> String) {
        if !condition { world.fail(text()) }
    }

    func takeNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    // MARK: Sending

    /// A message is about to be sent.
    func offered(_ number: Int, _ message: Message) {
        messages[number] = message
        let isByClient = if case .client = message.sender { true } else { false }
        let credit = (isByClient ? settings.server.limits : settings.client.limits).maximumUnreadByteCount
        messages[number]?.exceedsCredit = outstanding[message.stream, default: 0] >= credit
        outstanding[message.stream, default: 0] += message.byteCount + SessionSize.frameOverhead
        switch message.stream {
        case .pushes: totals.messages += 1
        case .requestParts(let call):
            totals.requestParts += 1
            calls[call]?.partCount += 1
        case .responseParts: totals.responseParts += 1
        }
    }

    /// Whether a message of a stream was accepted.
    func hasAccepted(in stream: Stream) -> Bool {
        messages.values.contains { $0.stream == stream && $0.acceptedAt != nil }
    }

    /// The send of a message has returned.
    func ended(_ number: Int, _ end: SendEnd, isCancelled: Bool) {
        guard let message = messages[number] else { return }
        let now = world.now
        messages[number]?.end = end
        if end == .accepted {
            messages[number]?.acceptedAt = now
            keep(message)
        }
        if message.sentAt < now, !message.isObserved {
            totals.waits += 1
            if message.exceedsCredit, message.stream.isPushes { totals.creditWaits += 1 }
            if message.exceedsCredit, !message.stream.isPushes { totals.partCreditWaits += 1 }
        }
        let (isRight, mayHaveCome) = check(end, message, isCancelled: isCancelled)
        demand(isRight, "message \(number), \(message), ended so: \(end)")
        demand(mayHaveCome || !message.hasCome, "message \(number) has come, and its sender is told: \(end)")
        if end != .accepted, end != .processed { giveBack(number) }
        count(end, message)
    }

    private func check(_ end: SendEnd, _ message: Message, isCancelled: Bool) -> (isRight: Bool, mayHaveCome: Bool) {
        guard case .failed(let code) = end else {
            // Parts of a call that has ended are dropped, and so processed.
            let hasCome = message.hasCome || !message.stream.isPushes || message.delivery.isAtMostOnce
            return (end == .accepted || hasCome, true)
        }
        switch code {
        case .messageExpired: return (message.delivery.timeToLive != nil, false)
        case .messageReplaced: return (message.delivery.key != nil, false)
        case .messageDropped: return (message.delivery.isAtMostOnce, false)
        case .messageRefused: return (isTooLong(message.byteCount), false)
        case .messageInDoubt:
            claim(end, message, isLoss: true)
            return (!message.delivery.isAtMostOnce, true)
        case .messageUnsent:
            if message.stream.isPushes { claim(end, message) }
            return (true, false)
        case .cancelled: return (isCancelled, message.isObserved)
        case .notWaitedFor: return (!message.stream.isPushes, true)
        case .serverExhausted:
            if case .client = message.sender { return (false, false) }
            return (settings.hasBudget, false)
        case .closedLocally, .closedByPeer, .expired, .sessionLost:
            if message.stream.isPushes { claim(end, message, isLoss: code == .sessionLost) }
            return (true, false)
        default: return (false, true)
        }
    }

    /// Whether a message is too long for a frame, or for a window, of a side.
    func isTooLong(_ byteCount: Int) -> Bool {
        let limits = [
            settings.client.client.connection.maximumFrameLength, settings.server.server.connection.maximumFrameLength,
            settings.client.limits.maximumUnprocessedByteCount, settings.server.limits.maximumUnprocessedByteCount,
        ]
        return byteCount + 4 * SessionSize.frameOverhead > limits.min() ?? 0
    }

    private func claim(_ end: Any, _ message: Message, isLoss: Bool = false) {
        let text = "\(message) ended so: \(end)"
        claims.append(
            Claim(sender: message.sender, sentAt: message.sentAt, toldAt: world.now, text: text, isLoss: isLoss)
        )
    }

    /// Counts an accepted push, and checks the limits of what its side keeps.
    private func keep(_ message: Message) {
        guard message.isPlainPush, !message.isFinished else { return }
        let isClient = if case .client = message.sender { true } else { false }
        let limits = isClient ? settings.client.limits : settings.server.limits
        var size = kept[message.sender] ?? SessionSize()
        size.frameCount += 1
        size.byteCount += message.byteCount + SessionSize.frameOverhead
        kept[message.sender] = size
        // The least limits are 4 messages and 4 KiB.
        let isWithin =
            size.frameCount <= max(limits.maximumKeptMessageCount, 4)
            && (size.byteCount <= max(limits.maximumKeptByteCount, 4_096) || size.frameCount == 1)
        if isWithin { return }
        let text = "\(message.sender) keeps \(size.frameCount) pushes, \(size.byteCount) bytes"
        // After the loss of a session, a client accepts messages before its user has read which are in doubt.
        if isClient { excesses.append((message.sender, world.now, text)) } else { fail(text) }
    }

    /// A push is not kept any more.
    private func release(_ message: Message) {
        guard message.isPlainPush, message.end == .accepted, let size = kept[message.sender] else { return }
        let cost = message.byteCount + SessionSize.frameOverhead
        kept[message.sender] = SessionSize(frameCount: size.frameCount - 1, byteCount: size.byteCount - cost)
    }

    private func giveBack(_ number: Int) {
        guard let message = messages[number] else { return }
        outstanding[message.stream, default: 0] -= message.byteCount + SessionSize.frameOverhead
    }

    /// An accepted push is reported as in doubt, unsent, or refused.
    func leftOver(_ message: SessionMessageInDoubt, of sender: Sender) {
        totals.leftOverPushes += 1
        let number = message.payload.withUnsafeBytes { SessionNote.number($0) }
        if SessionCallKind(method: message.method) != nil {
            // A call that fails with `sessionLost` is in doubt, too. It has a payload if it has no parts.
            return demand(message.outcome == .inDoubt, "a call is reported as \(message.outcome)")
        }
        guard let number, let push = messages[number] else {
            return fail("an unknown push is reported as \(message.outcome)")
        }
        demand(push.sender == sender && push.delivery == message.delivery, "push \(number) is told to another sender")
        demand(push.leftOver == nil, "push \(number) is reported as \(message.outcome) after an earlier report")
        messages[number]?.leftOver = message.outcome
        if !push.isFinished { release(push) }
        let isRight =
            switch message.outcome {
            case .inDoubt, .unsent: !push.delivery.isAtMostOnce
            case .refused: isTooLong(push.byteCount)
            case .expired: push.delivery.timeToLive != nil
            case .replaced: push.delivery.key != nil
            case .processed, .sent, .dropped, .kept, .notStored: false
            }
        demand(isRight, "push \(number), \(push), is reported as \(message.outcome)")
        demand(message.outcome == .inDoubt || !push.hasCome, "push \(number) has come, and is \(message.outcome)")
        if message.outcome == .inDoubt { totals.doubtfulMessages += 1 }
        if message.outcome == .inDoubt || message.outcome == .unsent {
            claim(message.outcome, push, isLoss: message.outcome == .inDoubt)
        }
    }

    // MARK: Receiving

    /// A push has come to its user.
    func cameAsPush(_ bytes: [UInt8], of method: String, to receiver: Int) -> (number: Int, stream: Stream)? {
        let number = bytes.withUnsafeBytes { SessionNote.number($0) }
        guard let number, let stream = messages[number]?.stream, case .pushes(method, _) = stream else {
            fail("a push of \(method) came that nobody has sent")
            return nil
        }
        return came(bytes, in: stream, to: receiver).map { ($0, stream) }
    }

    /// A message has come to its user.
    ///
    /// - Parameter receiver: the number of the server's session, or of the client's run.
    /// - Returns: its number; nil if it is none.
    func came(_ bytes: [UInt8], in stream: Stream, to receiver: Int) -> Int? {
        guard let note = bytes.withUnsafeBytes({ SessionNote($0) }), let message = messages[note.number] else {
            fail("a message came whose bytes are not its own")
            return nil
        }
        let number = note.number
        demand(message.stream == stream, "message \(number) of \(message.stream) came in \(stream)")
        demand(!message.hasCome, "message \(number) came a second time")
        demand(message.mayCome, "message \(number) came, and its sender was told: \(message)")
        messages[number]?.hasCome = true
        if message.delivery.isAtMostOnce { return number }
        // A message that replaces another one stands in its place, so only those of one key are in order.
        let order = Order(stream: stream, receiver: receiver, key: message.delivery.key)
        let last = lastCame.updateValue(number, forKey: order) ?? 0
        demand(last < number, "message \(number) of \(stream) came after \(last)")
        return number
    }

    /// The user is done with a message.
    func finished(_ number: Int?) {
        guard let number, let message = messages[number], !message.isFinished else { return }
        messages[number]?.isFinished = true
        if message.leftOver == nil { release(message) }
        giveBack(number)
    }

    /// Checks that all reliable parts of a stream have come before its end.
    func checkComplete(_ stream: Stream) {
        for (number, part) in messages where part.stream == stream && part.delivery == .reliable && !part.hasCome {
            if part.end == .accepted || part.end == .processed {
                fail("part \(number) of \(stream) had not come before the end")
            }
        }
    }

    // MARK: Calls

    func began(_ number: Int, in session: Int, runningLimits: (session: Int, server: Int)) {
        demand(calls[number] != nil, "a request came that nobody has made")
        demand(handlers[number] == nil, "request \(number) began twice")
        handlers[number] = Handler(session: session)
        let running = handlers.values.filter { !$0.hasEnded && !$0.isDead }
        demand(running.count <= runningLimits.server, "\(running.count) handlers of the server run")
        let count = running.count { $0.session == session }
        demand(count <= runningLimits.session, "\(count) handlers of a session run")
    }

    func callEnded(_ number: Int, _ result: Call.Result) {
        guard let call = calls[number] else { return }
        demand(call.result == nil, "request \(number) ended twice")
        calls[number]?.result = result
        calls[number]?.endedAt = world.now
        if !call.kind.hasResponseParts, let timeout = call.timeout, let slack = settings.slack {
            demand(
                world.now <= call.startedAt + timeout + slack,
                "request \(number) ended after its timeout: \(result)"
            )
        }
        count(result, call)
    }

    // MARK: Sessions

    func lostSession(_ run: Int, _ inDoubt: [SessionMessageInDoubt]) {
        totals.lostSessions += 1
        losses[run, default: []].append(world.now)
        for message in inDoubt { leftOver(message, of: .client(run: run)) }
    }

    /// The server's process was killed: its users do nothing any more.
    func serverWasKilled(_ sessions: some Sequence<Int>) {
        deadSessions.formUnion(sessions)
        for (number, handler) in handlers where deadSessions.contains(handler.session) && !handler.hasEnded {
            handlers[number]?.isDead = true
        }
    }
}
