/// The reason why a request ended without its answer.
public struct RequestError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind {
            case timedOut, cancelled, connectionLost, sessionLost, tooManyInFlight, notSent, messageRefused
        }
        private let kind: Kind

        /// No answer came by the request's deadline. The peer may have acted on the request nevertheless.
        public static let timedOut = Code(kind: .timedOut)
        /// The caller gave up the request. The peer may have acted on the request nevertheless.
        public static let cancelled = Code(kind: .cancelled)
        /// The connection was lost before the answer came; the cause has the reason. The peer may have acted on the
        /// request.
        public static let connectionLost = Code(kind: .connectionLost)
        /// The session was lost, or ended, after the request was sent. The peer may have acted on it. Users see it as a
        /// `SessionError`.
        package static let sessionLost = Code(kind: .sessionLost)
        /// Local misuse: the limit of waiting requests is reached. This one was not sent.
        public static let tooManyInFlight = Code(kind: .tooManyInFlight)
        /// No connection took the request; the cause, a `ConnectionError`, has the reason.
        public static let notSent = Code(kind: .notSent)

        /// Local misuse: the request is longer than the peer accepts. It was not sent.
        public static let messageRefused = Code(kind: .messageRefused)

        /// The code's name.
        public var description: String { "\(kind)" }
    }

    /// The kind of failure.
    public let code: Code
    /// A description of the failure, and what to do about it.
    public let message: String
    /// The error of the layer below, if there is one.
    public let cause: (any Error)?

    package init(code: Code, message: String, cause: (any Error)?) {
        (self.code, self.message, self.cause) = (code, message, cause)
    }

    /// The code, the message and the cause.
    public var description: String {
        guard let cause else { return "\(code): \(message)" }
        return "\(code): \(message) Cause: \("\(cause)".escaped())"
    }
}

extension RequestError {
    package static var timedOut: RequestError {
        RequestError(
            code: .timedOut,
            message:
                "No answer came in time. The peer may have acted on the request; repeat it only if that does no harm.",
            cause: nil
        )
    }

    package static var cancelled: RequestError {
        RequestError(
            code: .cancelled,
            message: "The request was given up before its answer came. The peer may have acted on it.",
            cause: nil
        )
    }

    package static func connectionLost(_ cause: (any Error)?) -> RequestError {
        RequestError(
            code: .connectionLost,
            message: "The connection was lost before the answer came. The peer may have acted on the request.",
            cause: cause
        )
    }

    package static func notSent(_ cause: any Error) -> RequestError {
        RequestError(
            code: .notSent,
            message: "No connection took the request, so the peer has not seen it.",
            cause: cause
        )
    }

    package static func messageRefused(limit: Int) -> RequestError {
        RequestError(
            code: .messageRefused,
            message: "The peer takes frames of up to \(limit) bytes. Send less at once, or raise the limit there.",
            cause: nil
        )
    }

    @usableFromInline
    package static func tooManyInFlight(limit: Int) -> RequestError {
        RequestError(
            code: .tooManyInFlight,
            message: "\(limit) requests wait for their answers already. Ask less at once, or raise the limit.",
            cause: nil
        )
    }
}
