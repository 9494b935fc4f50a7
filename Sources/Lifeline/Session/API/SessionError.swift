internal import LifelineCore

/// The reason why a session ended, or why a message did not reach the peer.
public struct SessionError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind {
            case closedLocally, closedByPeer, replaced, refused, versionMismatch, protocolViolation
            case sessionLost, expired, moved
            case messageExpired, messageReplaced, messageDropped, messageInDoubt, messageUnsent, messageKept
            case noStore, storeFailed
            case notWaitedFor
            case status, timedOut, cancelled, tooManyInFlight, messageRefused, serverExhausted, malformedMessage
        }
        private let kind: Kind

        /// This side closed the session, or is about to.
        public static let closedLocally = Code(kind: .closedLocally)
        /// The peer closed the session.
        public static let closedByPeer = Code(kind: .closedByPeer)
        /// Another connection has taken over the session: somebody else has its credentials.
        public static let replaced = Code(kind: .replaced)
        /// The server does not let this client in; the message has the reason.
        public static let refused = Code(kind: .refused)
        /// There is no version of the session protocol that both sides speak.
        public static let versionMismatch = Code(kind: .versionMismatch)
        /// One side broke the rules of the session protocol; the message has the details.
        public static let protocolViolation = Code(kind: .protocolViolation)
        /// The server no longer knows the session: it was restarted, or the client was away for too long. Or the
        /// session has ended; the cause has the reason. Messages that were sent and are not known to be processed are
        /// in doubt.
        public static let sessionLost = Code(kind: .sessionLost)
        /// On a server: the client did not come back in time.
        public static let expired = Code(kind: .expired)
        /// On a server: the session goes on at another server of the fleet. A message that was accepted before reaches
        /// the client from there; this one was not.
        public static let moved = Code(kind: .moved)
        /// The time to live of the message was over before it reached the peer.
        public static let messageExpired = Code(kind: .messageExpired)
        /// A newer message with the same key came before this one had reached the peer.
        public static let messageReplaced = Code(kind: .messageReplaced)
        /// The message was to be sent at once or not at all, and there was no connection, or no room.
        public static let messageDropped = Code(kind: .messageDropped)
        /// The session was lost after the message was sent: it is unknown whether the peer has processed it.
        public static let messageInDoubt = Code(kind: .messageInDoubt)
        /// The session ended before the message was sent. The peer has not seen it.
        public static let messageUnsent = Code(kind: .messageUnsent)
        /// The session ended before the peer confirmed that it had processed the message. The message is not lost: the
        /// next session with the same store sends it, or the server that the session has moved to.
        public static let messageKept = Code(kind: .messageKept)
        /// Local misuse: a message was to be durable, but this side, or the client that a server pushes to, has no
        /// store.
        public static let noStore = Code(kind: .noStore)
        /// A durable message could not be stored, and was not sent; the cause is a `StoreError`.
        public static let storeFailed = Code(kind: .storeFailed)
        /// The push belongs to a request that the peer no longer waits for.
        public static let notWaitedFor = Code(kind: .notWaitedFor)

        /// The handler ended the request with a status other than ok: see `SessionError.status`.
        public static let status = Code(kind: .status)
        /// No response came by the deadline. The peer may have acted on the request nevertheless.
        public static let timedOut = Code(kind: .timedOut)
        /// The task was cancelled. The peer may have acted on a request that was sent. A push was not sent, unless its
        /// sender waited until it is processed: then it may have been sent, and goes on.
        public static let cancelled = Code(kind: .cancelled)
        /// The limit of waiting requests, of this side or of the peer, is reached, or the unsent requests take up all
        /// bytes that may be kept. This request was not sent.
        public static let tooManyInFlight = Code(kind: .tooManyInFlight)
        /// Local misuse: the message cannot be encoded (the cause is a `MessageError`), or is over the limit. It was
        /// not sent.
        public static let messageRefused = Code(kind: .messageRefused)
        /// On a server: all sessions together keep as much as `SessionServerConfiguration.maximumKeptByteCount` allows.
        /// The message was not sent.
        public static let serverExhausted = Code(kind: .serverExhausted)
        /// The peer sent a message that is not of the method's type; the cause is a `MessageError`.
        public static let malformedMessage = Code(kind: .malformedMessage)

        /// The code's name.
        public var description: String { "\(kind)" }
    }

    /// The kind of failure.
    public var code: Code { content.code }
    /// What happened and what to do. Texts from the peer are escaped in it, and cut to 1,000 characters; `status` has
    /// the original texts.
    public var message: String { content.message }
    /// The status of the peer's handler, or the server's reason to refuse this client; nil for other errors.
    public var status: SessionStatus? { content.status }
    /// The error of the layer below, where there is one.
    public var cause: (any Error)? { content.cause }

    /// In an object, because results of calls are copied several times, and nearly all of them are not errors.
    private let content: Content

    private final class Content: Sendable {
        let code: Code
        let message: String
        let status: SessionStatus?
        let cause: (any Error)?

        init(_ code: Code, _ message: String, _ status: SessionStatus?, _ cause: (any Error)?) {
            (self.code, self.message, self.status, self.cause) = (code, message, status, cause)
        }
    }

    /// Makes an error.
    public init(code: Code, message: String, status: SessionStatus? = nil, cause: (any Error)? = nil) {
        content = Content(code, message, status, cause)
    }

    /// The code, the message and the cause.
    public var description: String {
        guard let cause else { return "\(code): \(message)" }
        return "\(code): \(message) Cause: \("\(cause)".escaped())"
    }
}

extension SessionError {
    /// Makes the error for the outcome of a message; nil if it was sent or processed.
    ///
    /// - Parameter cause: the reason for the end of the session, if that decided the outcome.
    package init?(_ outcome: SessionDeliveryOutcome, cause: (any Error)? = nil) {
        switch outcome {
        case .processed, .sent:
            return nil
        case .expired:
            self.init(
                code: .messageExpired,
                message: "The message's time to live was over before it reached the peer. Send it with a longer one."
            )
        case .replaced:
            self.init(
                code: .messageReplaced,
                message: "A newer message with the same key was sent in place of this one. There is nothing to do."
            )
        case .dropped:
            self.init(
                code: .messageDropped,
                message: "The message was to be sent at once or not at all, and there was no connection, or no room. "
                    + "Send it reliably if it matters."
            )
        case .refused:
            self.init(
                code: .messageRefused,
                message: "The peer takes no frame of the message's length. Send less at once, or raise its limit."
            )
        case .inDoubt:
            self.init(
                code: .messageInDoubt,
                message:
                    "The session was lost after the message was sent, so it is unknown whether it was processed. "
                    + "Send it again only if that does no harm."
            )
        case .kept:
            self.init(
                code: .messageKept,
                message:
                    "The session ended here before the peer confirmed that it had processed the message. It is kept "
                    + "and sent later.",
                cause: cause
            )
        case .notStored:
            self.init(
                code: .storeFailed,
                message: "The message could not be stored, and was not sent. Send it again when the store has room.",
                cause: cause
            )
        case .unsent:
            self.init(
                code: .messageUnsent,
                message: "The session ended before the message was sent. The peer has not seen it: send it again.",
                cause: cause
            )
        }
    }

    /// The error for a lost session.
    package static var sessionLost: SessionError {
        SessionError(
            code: .sessionLost,
            message:
                "The server no longer knows the session; a new one has begun. Messages sent and not known to be "
                + "processed are in doubt."
        )
    }

    /// The error for a server's session that has made way for another one.
    package static var madeWay: SessionError {
        SessionError(
            code: .expired,
            message: "A new client took the place of this session, whose client was away. Allow more sessions."
        )
    }

    /// The error for a server's session whose client has begun another one.
    package static var begunAgain: SessionError {
        SessionError(
            code: .expired,
            message: "The client has begun another session: it was started again. There is nothing to do."
        )
    }

    package static var expired: SessionError {
        SessionError(
            code: .expired,
            message: "The client did not come back in time. Keep sessions for longer if clients are away for longer."
        )
    }

    package static var noStore: SessionError {
        SessionError(
            code: .noStore,
            message:
                "A durable message needs a store on this side, and on the client that a server pushes to. Set "
                + "the configuration's store, or send it with another delivery."
        )
    }

    /// The error for a push that was dropped because its request is over.
    package static var notWaitedFor: SessionError {
        SessionError(
            code: .notWaitedFor,
            message: "The peer no longer waits for the response. Stop sending it."
        )
    }
}
