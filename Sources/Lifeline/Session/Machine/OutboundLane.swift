internal import LifelineCore

/// One lane of what a side of a session has accepted for the peer: what waits, what was sent and is not known to be
/// processed, and which of it has room.
struct OutboundLane<Content: SessionContent>: Sendable {
    /// An accepted message.
    struct Entry: Sendable {
        let number: UInt64
        let byteCount: Int
        private var content: EntryContent
        /// Where it stands among those that wait: at its number, or at that of the first of those which it replaced.
        var position: UInt64
        /// Whether there is room for it: whoever brought it needs not wait any more.
        var isAdmitted = true
        /// Whether only its place is left.
        private(set) var isBlank = false
        /// Whether an older one that was accepted has ended for it.
        var hasReplaced = false
        /// Blank where only its place is left.
        var message: SessionMessage<Content> { content.message }
        var kind: OutboundKind { content.kind }
        var isOfThisSession: Bool { content.isOfThisSession }
        /// Whether somebody waits to hear that it was processed.
        var isObserved: Bool { content.isObserved }
        /// Whether it is sent over the present connection or not at all.
        var isAtMostOnce: Bool { content.terms?.isAtMostOnce ?? false }
        /// Of those that have the same, the newest counts.
        var key: ReplacementKey? { content.terms?.key }
        /// When it is not worth sending any more.
        var deadline: MonotonicTime? { content.terms?.deadline }

        /// What becomes of a message when it is accepted.
        init(
            number: UInt64,
            _ message: SessionMessage<Content>,
            _ delivery: SessionDelivery,
            isObserved: Bool,
            now: MonotonicTime
        ) {
            self.number = number
            byteCount = message.byteCount
            let terms = delivery == .reliable ? nil : Terms(delivery, of: message, now: now)
            content = EntryContent(message, terms, isObserved: isObserved)
            position = number
        }

        /// Takes the content out: only the place is left, which takes up as much as before.
        mutating func makeBlank() {
            isBlank = true
            content = EntryContent(.blank, nil, isObserved: false)
        }
    }

    /// What an entry carries. An object, as entries are handed on from one place to the next.
    private final class EntryContent: Sendable {
        let message: SessionMessage<Content>
        let kind: OutboundKind
        let isOfThisSession: Bool
        /// Nil where nothing but the usual is promised, as of most messages.
        let terms: Terms?
        let isObserved: Bool

        init(_ message: SessionMessage<Content>, _ terms: Terms?, isObserved: Bool) {
            self.message = message
            kind = OutboundKind(message)
            isOfThisSession = message.isOfThisSession
            self.terms = terms
            self.isObserved = isObserved && kind == .push
        }
    }

    /// What is promised of a message besides the usual.
    final class Terms: Sendable {
        let isAtMostOnce: Bool
        let key: ReplacementKey?
        let deadline: MonotonicTime?

        init(_ delivery: SessionDelivery, of message: SessionMessage<Content>, now: MonotonicTime) {
            isAtMostOnce = delivery.isAtMostOnce
            key = delivery.key.flatMap(message.replacementKey)
            deadline = delivery.timeToLive.map { now + $0 }
        }
    }

    /// What is kept before whoever brings more waits.
    let limit: SessionWindow
    /// Not sent yet, by their positions.
    private(set) var waiting = SparseQueue<Entry>()
    /// Sent and not known to be processed, by their places in the lane.
    private(set) var sent = FIFO<Entry>(firstNumber: 1)
    /// The place of the next message to send again.
    private(set) var resendPlace: UInt64 = 1
    /// The positions of those that were accepted without room and are not admitted yet, by their numbers.
    private var unadmitted = SparseQueue<UInt64>()
    /// The sizes of what is kept and admitted, of what waits, and of what was sent.
    private(set) var (admittedSize, waitingSize, sentSize) = (SessionSize(), SessionSize(), SessionSize())
    /// Responses and requests that are not admitted.
    private(set) var (unadmittedResponseSize, unadmittedRequestSize) = (SessionSize(), SessionSize())
    /// Requests that were not sent.
    private(set) var waitingRequestCount = 0
    /// What may be sent before it is processed.
    private var window = SessionWindow(frameCount: 0, byteCount: 0)

    init(limit: SessionWindow) {
        self.limit = limit
    }

    /// The last place that was given out.
    var lastSequence: UInt64 { sent.nextNumber - 1 }
    /// The last place that the peer has processed.
    var acknowledged: UInt64 { sent.firstNumber - 1 }
    var unadmittedCount: Int { unadmitted.count }

    /// Whether a message that is accepted now is admitted at once.
    func hasRoom(for byteCount: Int) -> Bool { unadmitted.isEmpty && limit.takesOwn(byteCount, besides: admittedSize) }

    /// Accepts a message. Returns whether it is admitted.
    mutating func append(_ entry: Entry) -> Bool {
        var entry = entry
        switch entry.kind {
        case .push, .response, .request: entry.isAdmitted = hasRoom(for: entry.byteCount)
        case .cancel: break
        }
        waiting.append(entry.position, entry)
        entered(entry)
        return entry.isAdmitted
    }

    /// Puts a push in the place of one that waits, which leaves. Returns whether it is admitted.
    mutating func replace(_ older: Entry, with entry: Entry) -> Bool {
        left(older)
        var entry = entry
        entry.position = older.position
        entry.hasReplaced = true
        // It needs not line up again for room that the older one had.
        let hasTurn = older.isAdmitted || unadmitted.isEmpty
        entry.isAdmitted = hasTurn && limit.takesOwn(entry.byteCount, besides: admittedSize)
        waiting.update(entry.position) { $0 = entry }
        entered(entry)
        return entry.isAdmitted
    }

    /// One that was sent has ended for a push that waits.
    mutating func replacedSent(at position: UInt64) {
        waiting.update(position) { $0.hasReplaced = true }
    }

    /// Takes out a message that waits, and is not to be sent; nil when none stands there.
    mutating func dropWaiting(at position: UInt64) -> Entry? {
        guard let entry = waiting.remove(position) else { return nil }
        left(entry)
        return entry
    }

    private mutating func entered(_ entry: Entry) {
        waitingSize.add(entry.byteCount)
        if entry.kind == .request { waitingRequestCount += 1 }
        if entry.isAdmitted {
            admittedSize.add(entry.byteCount)
        } else {
            unadmitted.append(entry.number, entry.position)
            switch entry.kind {
            case .response: unadmittedResponseSize.add(entry.byteCount)
            case .request: unadmittedRequestSize.add(entry.byteCount)
            case .push, .cancel: break
            }
        }
    }

    private mutating func left(_ entry: Entry) {
        leftWaiting(entry)
        if entry.isAdmitted { admittedSize.remove(entry.byteCount) } else { forgetUnadmitted(entry) }
    }

    private mutating func leftWaiting(_ entry: Entry) {
        waitingSize.remove(entry.byteCount)
        if entry.kind == .request { waitingRequestCount -= 1 }
    }

    /// Whether there is something to send again.
    var hasResend: Bool { resendPlace < sent.nextNumber }

    /// The next to send again, which there is. The peer's window counts it already.
    mutating func takeResend() -> (sequence: UInt64, Entry) {
        defer { resendPlace += 1 }
        return (resendPlace, sent[resendPlace])
    }

    /// The position of the first that waits, if the peer takes it now.
    ///
    /// - Parameter beginsNothing: whether it takes only what belongs to what was begun before.
    func sendablePosition(beginsNothing: Bool = false) -> UInt64? {
        waiting.readFirst { first in
            guard window.takesOwn(first.byteCount, besides: sentSize) else { return nil }
            return beginsNothing && !first.isOfThisSession ? nil : first.position
        } ?? nil
    }

    /// The message that waits at a position, where there is one, is sent for the first time. Returns it as it waited,
    /// and its place; 0 where it was to be sent at most once.
    mutating func send(at position: UInt64) -> (sequence: UInt64, Entry)? {
        guard let entry = waiting.remove(position) else { return nil }
        leftWaiting(entry)
        if !entry.isAdmitted { forgetUnadmitted(entry) }
        if entry.isAtMostOnce {
            // It was accepted because there was room.
            admittedSize.remove(entry.byteCount)
            return (0, entry)
        }
        // From here on the window bounds it.
        if !entry.isAdmitted { admittedSize.add(entry.byteCount) }
        var sentEntry = entry
        sentEntry.isAdmitted = true
        sent.append(sentEntry)
        sentSize.add(entry.byteCount)
        resendPlace = sent.nextNumber
        return (lastSequence, entry)
    }

    /// The peer has processed everything up to a place that was given out: takes the next of that out, until it is nil.
    mutating func takeProcessed(upTo sequence: UInt64) -> Entry? {
        guard sent.firstNumber <= sequence else { return nil }
        let entry = takeFirstSent()
        resendPlace = max(resendPlace, sent.firstNumber)
        return entry
    }

    /// A connection is there; everything up to a place that was given out has come.
    mutating func resume(received: UInt64, window: SessionWindow) {
        // A peer that takes everything must not make this side keep everything.
        self.window = SessionWindow(
            frameCount: min(window.frameCount, limit.frameCount),
            byteCount: min(window.byteCount, limit.byteCount)
        )
        resendPlace = max(received, acknowledged) + 1
    }

    /// Takes the content from a message that was sent.
    mutating func blank(_ place: UInt64) {
        sent[place].makeBlank()
    }

    /// The peer does not know the session any more: takes out what was sent.
    mutating func forgetSent() -> [Entry] {
        var forgotten: [Entry] = []
        while !sent.isEmpty { forgotten.append(takeFirstSent()) }
        sent = FIFO(firstNumber: 1)
        resendPlace = 1
        return forgotten
    }

    /// Admits those for which there is room now, in order.
    mutating func admit() -> [Entry] {
        var admitted: [Entry] = []
        while let position = unadmitted.first?.element, let entry = waiting[position],
            limit.takesOwn(entry.byteCount, besides: admittedSize)
        {
            waiting.update(position) { $0.isAdmitted = true }
            admittedSize.add(entry.byteCount)
            forgetUnadmitted(entry)
            admitted.append(entry)
        }
        return admitted
    }

    private mutating func takeFirstSent() -> Entry {
        let entry = sent.removeFirst()
        sentSize.remove(entry.byteCount)
        admittedSize.remove(entry.byteCount)
        return entry
    }

    private mutating func forgetUnadmitted(_ entry: Entry) {
        unadmitted.remove(entry.number)
        switch entry.kind {
        case .response: unadmittedResponseSize.remove(entry.byteCount)
        case .request: unadmittedRequestSize.remove(entry.byteCount)
        case .push, .cancel: break
        }
    }
}

/// Who has to hear of a message, and is held back by it.
enum OutboundKind: Sendable {
    /// Who pushes waits for room, and hears what becomes of the message.
    case push
    /// Requests of the peer's are refused while responses have no room, and held back while urgent ones have none.
    case response
    /// Who asks waits for the response, and hears of that only; how many ask is limited, and with how many bytes.
    case request
    /// Nobody hears of it.
    case cancel

    init(_ message: SessionMessage<some SessionContent>) {
        switch message.kind {
        case .push: self = .push
        case .response: self = .response
        case .request: self = .request
        case .cancel, .blank: self = .cancel
        }
    }
}
