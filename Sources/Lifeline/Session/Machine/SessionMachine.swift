package import LifelineCore

/// All decisions of one end of a session: what to send and when, which received messages are new, which are processed,
/// how calls end, what happens to connections, and when and why the session is over. The lanes of the session are logs.
///
/// It knows no sockets, clocks, timers or locks. A driver reports events with the time at which they happened, and runs
/// the actions that they add, in order. A message from a frame is returned, and comes after the actions: most frames
/// have a message and no actions. It borrows bytes of the frame, and is valid as long as they are. After each event, or
/// several at once, the driver calls `offer` until it hands out nothing more, and `timerFired` when `nextDeadline` has
/// passed. Connections have ascending numbers; reports about a connection that was given up are ignored.
///
/// - Each received push or part counts as processed when the driver calls `finish`.
/// - Each request of this side ends with exactly one `response` or `failed`, or with `cancelRequest`.
/// - Each message that has to wait gets exactly one `accepted`, or a `messageEnded` before that, or is withdrawn.
/// - `ended` is final.
package struct SessionMachine: ~Copyable {
    /// The most requests that a client makes before it knows the server's terms.
    package static var requestLimitBeforeTerms: Int { 1_024 }
    /// The additional cost of a message in the log that has a key or a time to live, or is observed: entries in four
    /// tables.
    package static var detailsOverhead: Int { 512 }
    /// The number of unacknowledged frames of this lane that breaks the rules. A peer processes urgent frames on
    /// arrival, and its calls under way are limited.
    static var urgentFrameLimit: Int { 16_384 }

    /// An object of the driver that the machine keeps with a request and never uses.
    package typealias Asker = any AnyObject & Sendable

    /// A request of this side that has no response yet.
    package struct OwnRequest: Sendable {
        /// The object that the driver passed with it, and gets back.
        let asker: Asker?
        /// Its place in the log; 0 while it waits.
        var place: UInt64
        /// The time until which the caller waits.
        let deadline: MonotonicTime?
        /// The number of the message if it waited; otherwise 0.
        var waitingNumber: UInt64 = 0
    }

    /// The parts of a request of this side.
    struct OwnStream: Sendable {
        /// The credit for the parts of the request; nil if it has none.
        var send: SendCredit?
        /// Whether its last part was accepted.
        var hasEnded = false
        /// The credit for the parts of the response.
        var receive: ReceiveCredit
    }

    /// The parts of a request of the peer, or of its response.
    struct PeerStream: Sendable {
        let request: IncomingRequest
        /// The credit for the parts of the response.
        var send: SendCredit
        /// The credit for the parts of the request; nil if it has none.
        var receive: ReceiveCredit?
        /// Whether the last part of the request was received.
        var hasEnded: Bool
    }

    /// The facts about a message in the log that has a key or a deadline, or is observed.
    struct MessageDetails {
        let number: UInt64
        let scope: MessageScope
        let delivery: SessionDelivery
        let deadline: MonotonicTime?
        let key: ScopedKey?
        let isObserved: Bool
        /// The number in the store; 0 if the message is not durable.
        var durable: UInt64 = 0
        /// For a durable message: whether it was sent in a lost session, or perhaps by an earlier process or session.
        var mayHaveCome = false
        /// The durable call that the message replies to, if no store has the reply. The call is processed when the
        /// reply is.
        var answers: Receipt?
    }

    /// A key of a delivery, with its scope.
    struct ScopedKey: Hashable {
        let scope: MessageScope
        let key: String
    }

    /// The place of the newest message with a key.
    enum Newest {
        case waiting(number: UInt64)
        case logged(place: UInt64)
    }

    /// Unused. It only keeps the machine in place: without an existential in the type, the compiler copies the whole
    /// machine, some 2 KB, for each call of a nonmutating method.
    private let staysInPlace: (any Sendable)? = nil

    let role: SessionRole
    let options: SessionOptions
    package internal(set) var life = SessionLife()
    /// The session's share of its server's memory and handlers.
    package var allowance = SessionAllowance.unlimited
    var credentials: SessionCredentials?
    var attempt: UInt64 = 0
    /// The number of sessions before this one.
    var session: UInt64 = 0
    package internal(set) var wasOpened = false

    /// The newest connection over which a server has sent before this client's hello; 0 for none.
    var earlyConnectionID: UInt64 = 0

    // The outbound side.
    var ordinary = OutboundLog()
    var urgent = OutboundLog()
    /// The state of both lanes before the frames that the connection has not taken yet; nil when it has taken all.
    var beforeUnwritten: (ordinary: OutboundLog.SendingState, urgent: OutboundLog.SendingState)?
    var methods = MethodNumbers()
    /// The credits by the numbers of this side's methods, from 1 on.
    var pushCredits: [SendCredit] = []
    var waiting = WaitingMessages()
    var nextNumber: UInt64 = 1
    /// The details by place.
    var details: [UInt64: MessageDetails] = [:]
    var newestByKey: [ScopedKey: Newest] = [:]
    /// The places in the log of messages with a deadline, by their numbers.
    var expiringPlaces: [UInt64: UInt64] = [:]
    /// The ends of the messages' times to live, by their numbers.
    var logDeadlines = DeadlineHeap()
    var waitingDeadlines = DeadlineHeap()
    /// The time at which the lanes free memory that they do not need; nil while they need all of it.
    var spareMemoryDeadline: MonotonicTime?
    /// Frames that go before all others: openings and goodbyes.
    var control: [UInt8] = []
    /// Messages that are sent at most once, and the numbers of those that are observed.
    var unplaced: [UInt8] = []
    var unplacedNumbers: [UInt64] = []
    /// The place in the ordinary lane after which they are sent: that of a method's name, or of a request.
    var unplacedPlace: UInt64 = 0
    /// The place of the last name of a method.
    var lastMethodPlace: UInt64 = 0
    /// The highest received place that the peer has reported in an opening.
    var peerReceived: UInt64 = 0
    /// The limits of the peer; nil before the first session is open.
    package internal(set) var peerTerms: SessionTerms?

    /// One or none. An array, so that a session without a store has no room for it, which would be 570 bytes.
    private var durabilities: [Durability?] = []
    /// The state of the store; nil without a store.
    var durability: Durability? {
        _read {
            if durabilities.isEmpty {
                yield nil
            } else {
                yield durabilities[0]
            }
        }
        _modify {
            if durabilities.isEmpty {
                var first: Durability?
                yield &first
                if first != nil { durabilities = [first] }
            } else {
                yield &durabilities[0]
            }
        }
    }
    /// Whether the store is not open yet: until then it is unknown what is left to send.
    var awaitsStore: Bool
    /// The peer's durable calls that have not begun.
    var heldCalls = HeldCalls()

    // The inbound side.
    var inbound: InboundLane
    var urgentInbound: UrgentLane
    /// The peer's methods by their numbers, from 1 on.
    package internal(set) var peerMethods: [String] = []
    var peerMethodByteCount = 0
    var peerPushCredits: [ReceiveCredit] = []
    var peerMethodNames: Set<ExactName> = []
    /// The credits to tell the peer, each once.
    var dueCredits: [CreditGrant.Target] = []
    var isCreditDue: Set<CreditGrant.Target> = []
    /// The size of received at-most-once messages that are not consumed.
    var unplacedSize = SessionSize()

    // Calls.
    var requests: RequestTable<OwnRequest>
    var ownStreams = SerialTable<OwnStream>()
    var running = RunningRequests()
    var peerStreams = SerialTable<PeerStream>()

    /// The number of messages that arrived too late for their requests.
    package internal(set) var lateMessageCount = 0
    /// The number of at-most-once messages that arrived when there was no room.
    package internal(set) var droppedMessageCount = 0

    package typealias RequestID = RequestTable<OwnRequest>.ID

    /// Makes one end of a session without a connection.
    ///
    /// - Parameter awaitsStore: whether the driver will call `opened` for a store.
    package init(role: SessionRole, options: SessionOptions, awaitsStore: Bool = false) {
        self.awaitsStore = awaitsStore
        self.role = role
        self.options = options
        inbound = InboundLane(options)
        urgentInbound = UrgentLane(options)
        requests = RequestTable(maximumCount: options.maximumRequestCount, serials: 1...UInt32.max)
    }

    /// The limits of this side.
    var terms: SessionTerms {
        SessionTerms(
            window: options.inboundWindow,
            credit: options.inboundCredit,
            maximumRequestCount: options.maximumRunningCount,
            maximumFrameLength: options.maximumFrameLength
        )
    }

    /// The progress of this side with the peer's frames.
    var progress: OpeningProgress {
        OpeningProgress(processed: inbound.processed, received: inbound.received, urgent: urgentInbound.received)
    }

    var initialCredit: Int { peerTerms?.credit ?? SessionTerms.smallestCredit }
    var peerFrameLimit: Int { peerTerms?.maximumFrameLength ?? .max }
    var peerWindow: SessionWindow { peerTerms?.window ?? SessionWindow(frameCount: .max, byteCount: .max) }

    /// The reason for the end of the session; nil while it goes on.
    package var endReason: SessionEndReason? { life.endReason }

    /// Whether anything was received from the peer in this session.
    package var isUsed: Bool { inbound.received > 0 || urgentInbound.received > 0 || ordinary.first > 1 }

    /// The bytes that the session keeps in both directions, as windows and limits count them.
    package var keptByteCount: Int {
        keptSize.byteCount + inbound.unprocessedSize.byteCount + unplacedSize.byteCount + running.byteCount
            + peerMethodByteCount + (durability?.outbox.unstoredReplyByteCount ?? 0)
    }

    /// The size of all messages that are kept for the peer.
    package var keptSize: SessionSize {
        var size = ordinary.keptSize + urgent.keptSize
        size.frameCount += waiting.count
        size.byteCount += waiting.byteCount + details.count * Self.detailsOverhead
        return size
    }

    package var requestCount: Int { requests.count }
    package var runningCount: Int { running.count }
    /// The number of messages that wait for credit or room.
    package var waitingCount: Int { waiting.count }

    /// Identifies a received push or part, or several consecutive ones of one source, to report later that they were
    /// processed. A receipt of a lost session has no effect.
    package struct Receipt: Equatable, Sendable {
        package enum Source: Equatable, Sendable {
            case push(method: UInt32)
            case requestPart(IncomingRequest)
            case responsePart(serial: UInt32)
        }

        let session: UInt64
        /// The place of the first message; 0 if they have none.
        let place: UInt64
        var count = 1
        /// The cost of all messages.
        package let cost: Int
        let source: Source

        /// Returns a receipt for other messages of the same source.
        func with(place: UInt64, count: Int, cost: Int) -> Receipt {
            Receipt(session: session, place: place, count: count, cost: cost, source: source)
        }
    }

    /// The result of offering a message.
    package enum Offer: Equatable, Sendable {
        /// The message is in the log.
        case accepted(number: UInt64)
        /// The sender has to wait; an action reports the outcome.
        case waits(number: UInt64)
        /// The message was to be sent now or not at all, and cannot be; or nobody waits for its request any more.
        case dropped
        /// The message is longer than the peer's frames or window allow.
        case tooLong(limit: Int)
        /// All sessions of the server together keep as much as they may.
        case exhausted
        /// The method's name is empty or too long, or the limit of methods is reached.
        case badMethod
        /// The message was to be durable, and there is no store.
        case notDurable
        /// The session has ended, or is about to.
        case closed
    }

    /// A received message to deliver. It borrows the bytes of its frame.
    package enum Arrival {
        /// Pass this push to its handlers, and call `finish`.
        case push(InboundMessage, Receipt)
        /// Begin to process this request, and call `respond` in any case.
        case request(IncomingRequest, InboundMessage, deadline: MonotonicTime?)
        /// The response to a request of this side.
        case response(RequestID, InboundMessage, asker: Asker?)
        /// A part of a request of the peer.
        case requestPart(IncomingRequest, InboundMessage, Receipt)
        /// A part of the response to a request of this side.
        case responsePart(RequestID, InboundMessage, Receipt, asker: Asker?)
        /// The reply to a durable call of this side, and its caller, if one waits. Call `finish`.
        case reply(InboundMessage, Receipt, asker: Asker?)
    }

    /// A step for the driver.
    package enum Action {
        /// A message that `receive` cannot return, because other actions follow it.
        indirect case arrived(Arrival)
        /// No more parts of this request of the peer follow.
        case requestEnded(IncomingRequest)
        /// A message that waited is in the log.
        case accepted(number: UInt64)
        /// The outcome of a message that waited or is observed.
        case messageEnded(number: UInt64, SessionDeliveryOutcome)
        /// An accepted push ended without being processed.
        ///
        /// - Parameter isObserved: whether `messageEnded` reported it, too.
        indirect case leftOver(SessionMessageInDoubt, isObserved: Bool)
        /// A durable call of this side ends for its caller without a reply; nil when the caller's time is over.
        case durableCallEnded(Asker, SessionDeliveryOutcome?)
        /// A request of this side ends without a response.
        case failed(RequestID, RequestError.Code, asker: Asker?)
        /// This side does not process the request: call `respond` with a status. Parts of it may come before.
        case refuse(IncomingRequest, method: UInt32, RequestRefusal)
        /// The peer no longer waits for this response: cancel its handler, and call `respond` nevertheless.
        case cancelRequest(IncomingRequest)
        /// The peer has given a method a number.
        indirect case method(number: UInt32, name: String)
        /// The session was opened or resumed over the present connection.
        indirect case opened(SessionCredentials, isResumed: Bool)
        /// A client's session is lost, and its next connection begins a new one. Actions for its messages and requests
        /// follow.
        indirect case sessionLost(SessionLoss)
        /// The peer goes away: come back after the pause.
        case peerLeaving(pause: Duration)
        /// The peer says that this client broke the rules.
        indirect case accused(SessionGoodbye)
        /// The server has not welcomed this client in time.
        case notWelcomed
        /// The peer broke the rules.
        indirect case violated(SessionViolation)
        /// Send this on a connection that no longer carries the session.
        indirect case sayGoodbye(UInt64, SessionGoodbye)
        /// End a connection in this way.
        indirect case closeConnection(UInt64, SessionClosing)
        /// The session is over.
        indirect case ended(SessionEndReason)
    }
}
