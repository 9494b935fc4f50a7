package import LifelineCore

/// The decisions of one end of a session: what is sent, what is new, what is processed, how requests end, and what a lost
/// connection changes. Both ends have the same rules but for who opens a connection.
///
/// It knows no sockets, clocks, timers or locks. A driver reports events with the time at which they happened, runs the
/// actions that they return, in order, and after each event, or several that come together, takes out frames with `nextFrame`
/// as long as its connection has room. It calls `timerFired` when `nextDeadline` has come. What it reports of a connection is
/// of the one that it last told of: frames that are left of an older one are dropped.
///
/// - A push is processed when the driver says so (`finish`); a request, when it has begun; a response, when it was handed to
///   who waits for it.
/// - Every request ends with exactly one `complete` or `fail`, or with `cancelRequest`. Every push that was accepted without
///   being admitted is told of by exactly one `admitted`, or before that by `messageEnded`, or was withdrawn.
/// - `ended` is final: every later event is ignored.
package struct SessionMachine<Content: SessionContent, Waiter: Sendable>: Sendable {
    package typealias Message = SessionMessage<Content>
    package typealias Number = OutboundSequence<Content>.Number
    package typealias RequestID = RequestTable<RequestInFlight>.ID

    /// Which end it is.
    package enum Role: Sendable {
        /// Opens connections; goes on with a new session where the old one is lost.
        case client
        /// Is opened; ends with its session.
        case server
    }

    /// A request of this side's that has no response yet.
    package struct RequestInFlight: Sendable {
        let waiter: Waiter
        let number: Number
    }

    /// A push that came in, to say later that it was processed. One of a session that was lost changes nothing any more.
    package struct Receipt: Hashable, Sendable {
        let session: UInt64
        let isPlaced: Bool
        let number: UInt64
    }

    enum State {
        /// There is no connection. Can go to: opening (client), open (server), ended.
        case detached
        /// A client has said hello. Can go to: open, failed, detached, ended.
        case opening
        /// Messages go to and fro. Can go to: detached, failed (client), opening (client), ended.
        case open
        /// One side has broken the rules, or been silent, and the connection is about to be closed. Can go to: detached,
        /// opening, ended.
        case failed
        /// Can go to: nothing.
        case ended
    }

    let role: Role
    let options: SessionOptions
    var state = State.detached
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
    /// How long a client that is opening a connection waits.
    var welcomeDeadline: MonotonicTime?
    /// How many sessions there were before this one.
    var session: UInt64 = 0
    /// What the peer allows.
    var peerRequestLimit = Int.max
    /// The longest frame that the peer takes; `Int.max` before the first session is open. Who responds keeps to it.
    package internal(set) var peerFrameLimit = Int.max
    /// The largest message that the peer's window takes; `Int.max` before the first session is open.
    var peerByteLimit = Int.max
    /// Whether the peer goes away, so that nothing is begun there.
    var isPeerLeaving = false
    /// Whether this side ends the session when everything is done.
    var isClosing = false
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
        /// The peer does not know the session any more, or cannot go on with it; a client's next connection begins a new one.
        /// What it means for messages and requests follows.
        case sessionLost
        /// What became of a push that was accepted.
        case messageEnded(Number, SessionDeliveryOutcome)
        /// Whoever brought these pushes needs not wait any more.
        case admitted([Number])
        /// A request of this side's has its response.
        case complete(Waiter, Content)
        /// A request of this side's ends without one.
        case fail(Waiter, RequestError.Code)
        /// Hand this push to the user: of the request of this serial, or of none (0). Say `finish` when it is processed.
        case deliverPush(serial: UInt32, Content, Receipt)
        /// Begin to process this request, and `respond` in any case.
        case beginRequest(IncomingRequest, deadline: MonotonicTime?, Content)
        /// This side does not begin to process the request: `respond` with a refusal.
        case refuseRequest(IncomingRequest, Content, RequestRefusal)
        /// The peer does not wait for this response any more: cancel what makes it, and `respond` nevertheless.
        case cancelRequest(IncomingRequest)
        /// The peer goes away, or cannot go on: finish what was begun as long as the connection lasts, and come back after
        /// the pause.
        indirect case peerLeaving(SessionGoodbye)
        /// All sessions of the server keep as much as they may, and this one was to keep more: what came is dropped.
        /// Write what is left in `nextFrame`, then close the connection: the client comes back later, and sends it
        /// again.
        case sentAway
        /// The server has not welcomed this client in time. Close the connection; the next one tries again.
        case notWelcomed
        /// The peer broke the rules. Write what is left in `nextFrame`, then close the connection.
        indirect case violated(SessionViolation)
        /// The session has ended. Write what is left in `nextFrame`, then close the connection.
        indirect case ended(SessionGoodbye, byPeer: Bool)
    }
}
