package import LifelineCore

/// All decisions of one end of a session: what is sent, what is new, what is processed, how requests end, what becomes
/// of its connections, and when and why it is over. Both ends have the same rules but for who opens a connection.
///
/// It knows no sockets, clocks, timers or locks. A driver reports events with the time at which they happened, and runs
/// the actions that they return, in order. After each event, or several that come together, it offers frames from
/// `nextFrame` to the present connection until there are none, and reports `offeredFrames`. It calls `timerFired` when
/// `nextDeadline` has come. Connections have ascending numbers; what is reported of one that the machine has given up
/// is ignored.
///
/// - A push is processed when the driver says so (`finish`); a request, when it has begun; a response, when it was
///   handed to who waits for it.
/// - Every request ends with exactly one `complete` or `fail`, or with `cancelRequest`. Every push that was accepted
///   without being admitted is told of by exactly one `admitted`, or before that by `messageEnded`, or was withdrawn.
/// - `ended` is final: of later events only those that end connections change anything. See `SessionLife` for the
///   states.
package struct SessionMachine<Content: SessionContent, Waiter: Sendable>: Sendable {
    package typealias Message = SessionMessage<Content>
    package typealias Number = OutboundSequence<Content>.Number
    package typealias RequestID = RequestTable<RequestInFlight>.ID
    package typealias Role = SessionRole

    /// A request of this side's that has no response yet.
    package struct RequestInFlight: Sendable {
        let waiter: Waiter
        let number: Number
    }

    /// A push that came in, to say later that it was processed. One of a session that was lost changes nothing any
    /// more.
    package struct Receipt: Hashable, Sendable {
        let session: UInt64
        let isPlaced: Bool
        let number: UInt64
    }

    let role: Role
    let options: SessionOptions
    package internal(set) var life = SessionLife()
    /// What it may take of what all sessions of its server share.
    package var allowance = SessionAllowance.unlimited
    package internal(set) var outbound: OutboundSequence<Content>
    package internal(set) var inbound: InboundMessages
    /// Those of this side's.
    var requests: RequestTable<RequestInFlight>
    /// Those of the peer's that are not responded to.
    var running = RunningRequests()
    /// What goes before everything else.
    var controlFrames: [SessionFrame<Content>] = []
    var credentials: SessionCredentials?
    /// How often a client has said hello.
    var attempt: UInt64 = 0
    /// How many sessions there were before this one.
    var session: UInt64 = 0
    /// What the peer allows.
    var peerRequestLimit = Int.max
    /// The longest frame that the peer takes; `Int.max` before the first session is open. Who responds keeps to it.
    package internal(set) var peerFrameLimit = Int.max
    /// The largest message that the peer's window takes; `Int.max` before the first session is open.
    var peerByteLimit = Int.max
    /// Requests that came over the present connection after it was given up: their places by their serials. They come
    /// again.
    var missed: [UInt32: UInt64] = [:]
    /// Places of such requests that were cancelled meanwhile.
    var cancelledBeforeTheyCame: Set<UInt64> = []
    /// Whether the session was ever opened. If not, its users never heard of it, and are not told of its end.
    package internal(set) var wasOpened = false
    /// Responses and pushes that came too late for their requests.
    package internal(set) var lateMessageCount = 0
    /// Pushes that were to be sent at most once and came when there was no room for them.
    package internal(set) var droppedPushCount = 0

    /// Whether anything has come from the peer in this session: a message, or an acknowledgement.
    package var isUsed: Bool {
        inbound.progress != .none || inbound.hasUnplaced || outbound.acknowledged != SessionAcknowledgement()
    }

    /// The bytes that it keeps, in both directions, as windows and limits count them.
    package var keptByteCount: Int {
        outbound.keptSize.byteCount + inbound.unprocessedByteCount + running.byteCount
    }

    /// How many requests of the peer's are processed here.
    package var runningCount: Int { running.count }

    /// Why the session is over; nil while it is not.
    package var endReason: SessionEndReason? { life.endReason }

    /// Makes one end of a session without a connection.
    package init(role: Role, options: SessionOptions) {
        self.role = role
        self.options = options
        outbound = OutboundSequence(limit: options.outboundLimit)
        inbound = InboundMessages(options)
        requests = RequestTable(maximumCount: options.maximumRequestCount, serials: 1...UInt32.max)
    }

    /// What to do. What is rare stands elsewhere, as in `SessionFrame`.
    package enum Action: Sendable {
        /// The session was opened, or goes on, over the present connection.
        indirect case opened(SessionCredentials, isResumed: Bool)
        /// A client's session is lost, and its next connection begins a new one. What it means for messages and
        /// requests follows.
        indirect case sessionLost(SessionLoss)
        /// What became of a push that was accepted.
        case messageEnded(Number, SessionDeliveryOutcome)
        /// Whoever brought these pushes needs not wait any more.
        case admitted([Number])
        /// A request of this side's has its response.
        case complete(Waiter, Content)
        /// A request of this side's ends without one.
        case fail(Waiter, RequestError.Code)
        /// Hand this push to the user: of the request of this serial, or of none (0). Say `finish` when it is
        /// processed.
        case deliverPush(serial: UInt32, Content, Receipt)
        /// Begin to process this request, and `respond` in any case.
        case beginRequest(IncomingRequest, deadline: MonotonicTime?, Content)
        /// This side does not begin to process the request: `refuse` it.
        case refuseRequest(IncomingRequest, Content, RequestRefusal)
        /// The peer does not wait for this response any more: cancel what makes it, and `respond` nevertheless.
        case cancelRequest(IncomingRequest)
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
        /// What to do with a connection.
        indirect case closeConnection(UInt64, SessionClosing)
        /// The session is over.
        indirect case ended(SessionEndReason)
    }
}
