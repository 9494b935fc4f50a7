package import LifelineCore

/// All decisions of one end of a session whose lanes are logs: what is sent and when, what is new, what is processed,
/// how calls end, what becomes of its connections, and when and why it is over.
///
/// It knows no sockets, clocks, timers or locks. A driver reports events with the time at which they happened, and runs
/// the actions that they add, in order. A message that a frame has brought is returned, and comes behind the actions:
/// most frames bring one and nothing else. What it borrows is valid until the frame is. After each event, or several
/// that come together, the driver calls `offer` until it hands out nothing more, and `timerFired` when `nextDeadline`
/// has come. Connections have ascending numbers; what is reported of one that was given up is ignored.
///
/// - Each push and each part that came in is processed when the driver says `finish`.
/// - Each request of this side's ends with exactly one `response` or `failed`, or with `cancelRequest`.
/// - Each message that has to wait is told of by exactly one `accepted`, or before that by `messageEnded`, or was
///   withdrawn.
/// - `ended` is final.
package struct SessionMachine: ~Copyable {
    /// The requests that a client asks before it knows the server's terms.
    package static var requestLimitBeforeTerms: Int { 1_024 }
    /// A message in the log that has a key or a time to live, or is observed, costs this beside: places in four tables.
    package static var detailsOverhead: Int { 512 }
    /// Acknowledgements of this lane that fail to come for so many frames break the rules: a peer processes urgent
    /// frames as they come, and has at most as many calls under way as it may.
    static var urgentFrameLimit: Int { 16_384 }

    /// An object of the driver's, which the machine keeps with a request and never looks at.
    package typealias Asker = any AnyObject & Sendable

    /// A request of this side's that has no response yet.
    package struct OwnRequest: Sendable {
        /// What the driver gave with it, and gets back.
        let asker: Asker?
        /// Where it stands in the log; 0 while it waits.
        var place: UInt64
        /// Until when the asker waits.
        let deadline: MonotonicTime?
        /// The number of the message that waits; 0 where it never did.
        var waitingNumber: UInt64 = 0
    }

    /// The parts of a request of this side's.
    struct OwnStream: Sendable {
        /// For the parts of the request; nil where it has none.
        var send: SendCredit?
        /// Whether its last part was accepted.
        var hasEnded = false
        /// For the parts of the response.
        var receive: ReceiveCredit
    }

    /// The parts of a request of the peer's, or of its response.
    struct PeerStream: Sendable {
        let request: IncomingRequest
        /// For the parts of the response.
        var send: SendCredit
        /// For the parts of the request; nil where it has none.
        var receive: ReceiveCredit?
        /// Whether the last part of the request has come.
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
        /// Its number in the store; 0: it is not durable.
        var durable: UInt64 = 0
        /// Of a durable one: whether it was sent in a session that was lost, or perhaps by an earlier process or session.
        var mayHaveCome = false
        /// The durable call that it is the reply to, where no store has the reply: that is processed when this is.
        var answers: Receipt?
    }

    /// A key of a delivery, with what it is a key of.
    struct ScopedKey: Hashable {
        let scope: MessageScope
        let key: String
    }

    /// Where the newest message of a key is.
    enum Newest {
        case waiting(number: UInt64)
        case logged(place: UInt64)
    }

    /// Nothing. A type with an existential in it stays where it is: without one, the compiler copies all of the
    /// machine, some 2 KB, for each call of a method that does not change it.
    private let staysInPlace: (any Sendable)? = nil

    let role: SessionRole
    let options: SessionOptions
    package internal(set) var life = SessionLife()
    /// Its share of the memory and the handlers of its server.
    package var allowance = SessionAllowance.unlimited
    var credentials: SessionCredentials?
    var attempt: UInt64 = 0
    /// How many sessions there were before this one.
    var session: UInt64 = 0
    package internal(set) var wasOpened = false

    /// The newest connection over which a server has spoken before this client had said hello; 0: none.
    var earlyConnectionID: UInt64 = 0

    // The outbound side.
    var ordinary = OutboundLog()
    var urgent = OutboundLog()
    /// How far both lanes were before frames were handed out that the connection has not taken yet; nil: it has all.
    var beforeUnwritten: (ordinary: OutboundLog.SendingState, urgent: OutboundLog.SendingState)?
    var methods = MethodNumbers()
    /// By the numbers of this side's methods, from 1 on.
    var pushCredits: [SendCredit] = []
    var waiting = WaitingMessages()
    var nextNumber: UInt64 = 1
    /// By place.
    var details: [UInt64: MessageDetails] = [:]
    var newestByKey: [ScopedKey: Newest] = [:]
    /// Where those are in the log that have a deadline, by their numbers.
    var expiringPlaces: [UInt64: UInt64] = [:]
    /// When messages are not worth sending any more, by their numbers.
    var logDeadlines = DeadlineHeap()
    var waitingDeadlines = DeadlineHeap()
    /// When the lanes give back the memory that they do not need; nil while they need all of it.
    var spareMemoryDeadline: MonotonicTime?
    /// Frames that go before all others: openings and goodbyes.
    var control: [UInt8] = []
    /// Messages that are sent at most once, and the numbers of those that are observed.
    var unplaced: [UInt8] = []
    var unplacedNumbers: [UInt64] = []
    /// The place in the ordinary lane behind which they go: that of a method's name, or of a request.
    var unplacedPlace: UInt64 = 0
    /// The place of the last name of a method.
    var lastMethodPlace: UInt64 = 0
    /// The highest place that the peer has said to have received in an opening.
    var peerReceived: UInt64 = 0
    /// The limits of the peer; nil before the first session is open.
    package internal(set) var peerTerms: SessionTerms?

    /// One or none. An array, so that a session without a store has no room for it, which would be 570 bytes.
    private var durabilities: [Durability?] = []
    /// Nil without a store.
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
    /// Whether it has a store that is not open yet: nobody knows what is left to be sent.
    var awaitsStore: Bool
    /// The peer's durable calls that are not begun.
    var heldCalls = HeldCalls()

    // The inbound side.
    var inbound: InboundLane
    var urgentInbound: UrgentLane
    /// The peer's methods, by their numbers from 1 on.
    package internal(set) var peerMethods: [String] = []
    var peerMethodByteCount = 0
    var peerPushCredits: [ReceiveCredit] = []
    var peerMethodNames: Set<ExactName> = []
    /// Credits that the peer is to be told of, each once.
    var dueCredits: [CreditGrant.Target] = []
    var isCreditDue: Set<CreditGrant.Target> = []
    /// At-most-once messages that came in and are not consumed.
    var unplacedSize = SessionSize()

    // Calls.
    var requests: RequestTable<OwnRequest>
    var ownStreams = SerialTable<OwnStream>()
    var running = RunningRequests()
    var peerStreams = SerialTable<PeerStream>()

    /// Messages that came too late for their requests.
    package internal(set) var lateMessageCount = 0
    /// At-most-once messages that came when there was no room for them.
    package internal(set) var droppedMessageCount = 0

    package typealias RequestID = RequestTable<OwnRequest>.ID

    /// Makes one end of a session without a connection.
    ///
    /// - Parameter awaitsStore: whether the driver will say that a store is `opened`.
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

    /// How far this side is with the peer's frames.
    var progress: OpeningProgress {
        OpeningProgress(processed: inbound.processed, received: inbound.received, urgent: urgentInbound.received)
    }

    var initialCredit: Int { peerTerms?.credit ?? SessionTerms.smallestCredit }
    var peerFrameLimit: Int { peerTerms?.maximumFrameLength ?? .max }
    var peerWindow: SessionWindow { peerTerms?.window ?? SessionWindow(frameCount: .max, byteCount: .max) }

    /// Why the session is over; nil while it is not.
    package var endReason: SessionEndReason? { life.endReason }

    /// Whether anything has come from the peer in this session.
    package var isUsed: Bool { inbound.received > 0 || urgentInbound.received > 0 || ordinary.first > 1 }

    /// The bytes that it keeps, in both directions, as windows and limits count them.
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
    /// Messages that wait for credit or room.
    package var waitingCount: Int { waiting.count }

    /// A push or a part that came in, or several of one source that came one behind the other: to say later that they
    /// were processed. One of a session that was lost changes nothing any more.
    package struct Receipt: Equatable, Sendable {
        package enum Source: Equatable, Sendable {
            case push(method: UInt32)
            case requestPart(IncomingRequest)
            case responsePart(serial: UInt32)
        }

        let session: UInt64
        /// That of the first; 0: they have none.
        let place: UInt64
        var count = 1
        /// That of all.
        package let cost: Int
        let source: Source

        /// The same for others of its source.
        func with(place: UInt64, count: Int, cost: Int) -> Receipt {
            Receipt(session: session, place: place, count: count, cost: cost, source: source)
        }
    }

    /// The fate of a message that is to be sent.
    package enum Offer: Equatable, Sendable {
        /// It is in the log.
        case accepted(number: UInt64)
        /// Its sender has to wait: an action says how it ends.
        case waits(number: UInt64)
        /// It was to be sent now or not at all, and cannot be; or its request is not waited for any more.
        case dropped
        /// The peer takes no frame that is long enough for it, or its window is smaller.
        case tooLong(limit: Int)
        /// All sessions of the server keep as much as they may.
        case exhausted
        /// The name is empty or too long, or there are as many methods as there may be.
        case badMethod
        /// It was to be durable, and there is no store.
        case notDurable
        /// The session has ended, or is about to.
        case closed
    }

    /// A message for somebody, which a frame has brought. It borrows the bytes of the frame.
    package enum Arrival {
        /// Hand this push to its handlers, and say `finish`.
        case push(InboundMessage, Receipt)
        /// Begin to process this request, and `respond` in any case.
        case request(IncomingRequest, InboundMessage, deadline: MonotonicTime?)
        /// A request of this side's has its response.
        case response(RequestID, InboundMessage, asker: Asker?)
        /// A message of the peer's stream, of a request of the peer's.
        case requestPart(IncomingRequest, InboundMessage, Receipt)
        /// A message of the stream that answers a request of this side's.
        case responsePart(RequestID, InboundMessage, Receipt, asker: Asker?)
        /// The reply to a durable call of this side's, and who waits for it; nil: nobody. Say `finish`.
        case reply(InboundMessage, Receipt, asker: Asker?)
    }

    /// A step for the driver.
    package enum Action {
        /// A message that `receive` cannot return, as other actions come behind it.
        indirect case arrived(Arrival)
        /// No part of this request of the peer's follows.
        case requestEnded(IncomingRequest)
        /// A message that waited is in the log.
        case accepted(number: UInt64)
        /// The fate of a message that waited, or that is observed.
        case messageEnded(number: UInt64, SessionDeliveryOutcome)
        /// An accepted push ended without being processed.
        ///
        /// - Parameter isObserved: whether `messageEnded` told of it, too.
        indirect case leftOver(SessionMessageInDoubt, isObserved: Bool)
        /// A durable call of this side's ends for its asker without a reply; nil: as the asker has waited long enough.
        case durableCallEnded(Asker, SessionDeliveryOutcome?)
        /// A request of this side's ends without a response.
        case failed(RequestID, RequestError.Code, asker: Asker?)
        /// This side does not begin to process the request: `respond` with a status. Parts of it may come before.
        case refuse(IncomingRequest, method: UInt32, RequestRefusal)
        /// The peer does not wait for this response any more: cancel what makes it, and `respond` nevertheless.
        case cancelRequest(IncomingRequest)
        /// The peer has given a method a number.
        indirect case method(number: UInt32, name: String)
        /// The session was opened, or goes on, over the present connection.
        indirect case opened(SessionCredentials, isResumed: Bool)
        /// A client's session is lost, and its next connection begins a new one. What it means for messages and
        /// requests follows.
        indirect case sessionLost(SessionLoss)
        /// The peer goes away: come back after the pause.
        case peerLeaving(pause: Duration)
        /// The peer says that this client broke the rules.
        indirect case accused(SessionGoodbye)
        /// The server has not welcomed this client in time.
        case notWelcomed
        /// The peer broke the rules.
        indirect case violated(SessionViolation)
        /// Say this on a connection, though it carries the session no more.
        indirect case sayGoodbye(UInt64, SessionGoodbye)
        /// Do this with a connection.
        indirect case closeConnection(UInt64, SessionClosing)
        /// The session is over.
        indirect case ended(SessionEndReason)
    }
}
