internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// An account of what one end of a scenario's sessions has offered, was told, and processed. It tells `fail` of what
/// does not hold.
///
/// A client's is one for all its sessions, as its messages go on with the next one; a server's is of one session.
final class SessionRecord {
    /// Messages that have one order and one credit. Requests have the numbers of their notes.
    enum Stream: Hashable {
        case pushes(String)
        case requestParts(Int)
        case responseParts(Int)

        var isPushes: Bool { if case .pushes = self { true } else { false } }
    }

    /// A push or a part that was accepted, or waits.
    struct Sent {
        let stream: Stream
        let delivery: SessionDelivery
        let isObserved: Bool
        /// Of its content.
        let byteCount: Int
    }

    /// A request of this side's.
    struct Call {
        let kind: SessionCallKind
        let id: SessionMachine.RequestID
        /// Until when the asker waits; nil: as long as it takes.
        let deadline: MonotonicTime?
        /// Of its content.
        let byteCount: Int
        /// Whether no part follows.
        var hasEnded: Bool
        var partCount = 0
    }

    /// A push or a part that came in and is not processed.
    struct Unread {
        let receipt: SessionMachine.Receipt
        let number: Int
        let stream: Stream
        /// Whether it was sent at most once.
        let isUnplaced: Bool
    }

    /// A request of the peer's that has a handler.
    struct Running {
        let request: IncomingRequest
        let number: Int
        let kind: SessionCallKind
        let byteCount: Int
        /// When the asker stops to wait, seen from here; nil: never.
        let deadline: MonotonicTime?
        /// Whether the last of its parts has come.
        var hasEnded: Bool
        var isCancelled = false
    }

    let end: SimulatedSessionEnd
    let name: String
    let fail: (String) -> Void
    /// The options of the peer.
    let peer: SessionOptions
    /// Finds the number of a request of the peer's by its serial.
    var numberOfPeersRequest: (UInt32) -> Int? = { _ in nil }

    // Messages that this side sends.
    var sent: [Int: Sent] = [:]
    /// The outcome of a message, told once. An outcome of one that nobody observes may not be told.
    var outcomes: [Int: SessionDeliveryOutcome] = [:]
    /// By the numbers that the machine gives.
    var numbers: [UInt64: Int] = [:]
    /// Messages whose senders wait, by the numbers that the machine gives.
    var waiting: Set<UInt64> = []
    /// Observed messages that are to be sent over the present connection or not at all, and of which neither is told.
    var openAtMostOnce: Set<Int> = []
    var withdrawn: Set<Int> = []

    // Its requests.
    var calls: [Int: Call] = [:]
    var openCalls: Set<Int> = []
    /// Calls that wait as the peer goes away.
    var heldCalls: Set<Int> = []
    /// Nil: a response.
    var results: [Int: RequestError.Code?] = [:]
    var numberByRequest: [SessionMachine.RequestID: Int] = [:]
    var numberBySerial: [UInt32: Int] = [:]
    /// How many calls of each kind were answered, and how many of those before all of their parts had been sent.
    var answeredCounts: [SessionCallKind: Int] = [:]
    var earlyResponseCount = 0

    // Messages that come in.
    var session: SessionID?
    var peerMethods: [UInt32: String] = [:]
    var came: [Stream: [Int]] = [:]
    /// How many messages came that have to come.
    var reliableCounts: [Stream: Int] = [:]
    var begun: [Int] = []
    var begunSet: Set<Int> = []
    var finished: Set<Int> = []
    var unread: [Unread] = []
    /// The cost of those that have places.
    var unreadCosts: [Stream: Int] = [:]
    /// Of a session that was lost.
    var stale: [SessionMachine.Receipt] = []
    var running: [Running] = []
    /// Requests that were answered here, or of which it was said that nobody waits.
    var ended: Set<Int> = []
    /// How many parts that have to come had come when the last part of a request came.
    var endedParts: [Int: Int] = [:]

    // How it goes.
    var lossCount = 0
    var refusedCount = 0
    var leftOverCount = 0
    var isOver = false
    /// Whether the user has asked it to end.
    var isClosing = false
    /// By when at the latest; nil: when everything is done.
    var closeDeadline: MonotonicTime?
    /// Whether the user has asked it to end at once.
    var isAbandoned = false

    init(_ end: SimulatedSessionEnd, _ name: String, peer: SessionOptions, fail: @escaping (String) -> Void) {
        (self.end, self.name, self.peer, self.fail) = (end, name, peer, fail)
    }

    func demand(_ condition: Bool, _ what: @autoclosure () -> String) {
        if !condition { fail("\(name): \(what())") }
    }

    /// Whether the peer takes no frame that is long enough for a content.
    func isTooLong(_ byteCount: Int) -> Bool {
        byteCount > min(peer.maximumFrameLength, peer.inboundWindow.byteCount) - 2 * SessionSize.frameOverhead
    }

    // MARK: What the user did

    /// A message has got an offer. Returns whether it was accepted, or waits.
    func offered(_ number: Int, _ message: Sent, _ offer: SessionMachine.Offer) -> Bool {
        let isPush = message.stream.isPushes
        switch offer {
        case .accepted(let id):
            sent[number] = message
            if id != 0 { demand(numbers.updateValue(number, forKey: id) == nil, "message \(id) was accepted twice") }
            demand(id != 0 || !message.isObserved, "message \(number) is observed, and has no number")
            if message.delivery.isAtMostOnce, message.isObserved { openAtMostOnce.insert(number) }
            return true
        case .waits(let id):
            sent[number] = message
            demand(id != 0 && numbers.updateValue(number, forKey: id) == nil, "message \(id) was accepted twice")
            demand(waiting.insert(id).inserted, "message \(id) waits twice")
            demand(!message.delivery.isAtMostOnce, "message \(number) waits, and is sent at most once")
            return true
        case .dropped:
            demand(message.delivery.isAtMostOnce || !isPush, "message \(number) was dropped")
        case .tooLong: demand(isTooLong(message.byteCount), "message \(number) is refused as too long")
        case .exhausted: demand(end.budget != nil, "message \(number) is refused, though there is no budget")
        case .badMethod: fail("\(name): a method has no number")
        case .notDurable: fail("\(name): message \(number) is refused as durable")
        case .closed: demand(isOver || isClosing && isPush, "message \(number) is refused as if it were over")
        }
        return false
    }

    func withdrew(_ id: UInt64) {
        demand(waiting.remove(id) != nil, "message \(id) was withdrawn and did not wait")
        guard let number = numbers[id] else { return }
        withdrawn.insert(number)
        demand(outcomes.updateValue(.unsent, forKey: number) == nil, "message \(number) was withdrawn at its end")
    }

    func asked(_ number: Int, _ call: Call) {
        calls[number] = call
        openCalls.insert(number)
        demand(numberByRequest.updateValue(number, forKey: call.id) == nil, "request \(call.id) was asked twice")
        numberBySerial[UInt32(truncatingIfNeeded: call.id)] = number
    }

    func callEnded(_ number: Int, _ failure: RequestError.Code?) {
        demand(openCalls.remove(number) != nil, "request \(number) ended twice")
        demand(results.updateValue(failure, forKey: number) == nil, "request \(number) has two results")
    }

    func takeUnread(at index: Int) -> Unread {
        let message = unread.remove(at: index)
        finished.insert(message.number)
        if !message.isUnplaced { unreadCosts[message.stream, default: 0] -= message.receipt.cost }
        return message
    }

    func takeRunning(at index: Int) -> Running {
        let taken = running.remove(at: index)
        ended.insert(taken.number)
        return taken
    }

    /// How many messages of a stream wait.
    func waitingCount(of stream: Stream) -> Int {
        waiting.count { numbers[$0].flatMap { sent[$0]?.stream } == stream }
    }

    /// An upper bound of the credit that a stream has used.
    func usedCredit(_ stream: Stream) -> Int {
        sent.reduce(0) { sum, element in
            let message = element.value
            guard message.stream == stream, !message.delivery.isAtMostOnce else { return sum }
            switch outcomes[element.key] {
            // These give it back.
            case .expired?, .replaced?, .unsent?, .refused?, .kept?, .notStored?: return sum
            case .processed?, .inDoubt?, .sent?, .dropped?, nil:
                // 20 bytes for the numbers and tags of its frame.
                return sum + message.byteCount + SessionSize.frameOverhead + 20
            }
        }
    }

    /// How many parts of a stream have to come: those that wait may be dropped.
    func reliableSentCount(_ stream: Stream, besidesWaiting: Bool) -> Int {
        let waitingNumbers = besidesWaiting ? Set(waiting.compactMap { numbers[$0] }) : []
        return sent.count { number, message in
            guard message.stream == stream, message.delivery == .reliable, !waitingNumbers.contains(number) else {
                return false
            }
            switch outcomes[number] {
            case nil, .processed?, .inDoubt?: return true
            case .sent?, .expired?, .replaced?, .dropped?, .refused?, .unsent?, .kept?, .notStored?: return false
            }
        }
    }
}
