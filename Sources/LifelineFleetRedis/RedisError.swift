internal import LifelineCore

/// A failure of a command, of a connection to Redis, or of a configuration.
public struct RedisError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind {
            case invalidURL, invalidConfiguration, commandTooLarge
            case connectionFailed, notAdmitted, protocolViolation, closed
            case timedOut, outcomeUnknown, refused
        }
        private let kind: Kind

        /// Local misuse: the text is not a URL of a Redis server.
        public static let invalidURL = Code(kind: .invalidURL)
        /// Local misuse: a configuration cannot be used, such as a file of certificates.
        public static let invalidConfiguration = Code(kind: .invalidConfiguration)
        /// Local misuse: a command has more bytes than may be in flight.
        public static let commandTooLarge = Code(kind: .commandTooLarge)
        /// There is no connection, or it was lost. The cause is mostly a `ConnectionError`.
        public static let connectionFailed = Code(kind: .connectionFailed)
        /// The server did not let the client in: user, password or database are wrong.
        public static let notAdmitted = Code(kind: .notAdmitted)
        /// The server sent something that is not a reply of Redis, or exceeds a limit.
        public static let protocolViolation = Code(kind: .protocolViolation)
        /// The client was closed. The command did not run.
        public static let closed = Code(kind: .closed)
        /// The command could not be written in time. It did not run.
        public static let timedOut = Code(kind: .timedOut)
        /// The command was written, and no reply came: it may have run.
        public static let outcomeUnknown = Code(kind: .outcomeUnknown)
        /// The server replied with an error; see `replyCode`.
        public static let refused = Code(kind: .refused)

        /// The code's name.
        public var description: String { "\(kind)" }
    }

    /// The kind of failure.
    public let code: Code
    /// A description of the failure, and what to do about it.
    public let message: String
    /// The first word of an error that the server replied, such as `NOSCRIPT` or `WRONGTYPE`; nil for other failures.
    public let replyCode: String?
    /// The error of the layer below, if there is one.
    public let cause: (any Error)?

    /// Makes an error.
    public init(code: Code, message: String, replyCode: String? = nil, cause: (any Error)? = nil) {
        (self.code, self.message, self.replyCode, self.cause) = (code, message, replyCode, cause)
    }

    /// Whether the same command may succeed later: the server loads its data, has become a replica, has lost its
    /// master, or runs a long script.
    public var isTemporary: Bool {
        ["LOADING", "READONLY", "MASTERDOWN", "BUSY"].contains(replyCode)
    }

    /// The code, the message and the cause.
    public var description: String {
        guard let cause else { return "\(code): \(message)" }
        return "\(code): \(message) Cause: \("\(cause)".escaped())"
    }
}

extension RedisError {
    /// Makes the error for an error reply to a command.
    init(_ reply: RedisReplyError, to command: String) {
        let replyCode = String(reply.code).escaped(limit: 40)
        self.init(
            code: .refused,
            message: "Redis refused \(command): \(reply.text.escaped())",
            replyCode: replyCode
        )
    }

    /// Makes the error for an error reply while a connection is opened.
    init(_ reply: RedisReplyError, opening step: RedisGreeting.Step) {
        let advice =
            switch step {
            case .authenticate: "Check user and password."
            case .select: "Check the number of the database."
            case .name, .ping: "Check whether the server wants a password, and whether the user may connect."
            }
        let replyCode = String(reply.code).escaped(limit: 40)
        // A server that does not know AUTH quotes its arguments.
        let isSafe = step != .authenticate || ["WRONGPASS", "NOAUTH", "NOPERM", "LOADING"].contains(replyCode)
        self.init(
            code: .notAdmitted,
            message: "Redis did not accept the connection\(isSafe ? ": \(reply.text.escaped())" : ""). \(advice)",
            replyCode: isSafe ? replyCode : nil
        )
    }

    static func timedOut(_ command: String, _ cause: RedisError?) -> RedisError {
        RedisError(
            code: .timedOut,
            message:
                "\(command) was not sent in time, so it did not run. Check that Redis can be reached, or send less at "
                + "once.",
            cause: cause
        )
    }

    static func notConfirmed(_ cause: RedisError?) -> RedisError {
        RedisError(
            code: .timedOut,
            message:
                "Redis did not confirm in time what channels are subscribed to. The client goes on trying; check that "
                + "Redis can be reached.",
            cause: cause
        )
    }

    static func outcomeUnknown(_ command: String, _ cause: RedisError?) -> RedisError {
        let event = cause == nil ? "no reply came in time" : "the connection was lost before its reply came"
        return RedisError(
            code: .outcomeUnknown,
            message: "\(command) was sent, and \(event). It may have run: ask Redis before you repeat it.",
            cause: cause
        )
    }

    static func protocolViolation(_ cause: (any Error)?) -> RedisError {
        RedisError(
            code: .protocolViolation,
            message:
                "The server sent something that is no reply of Redis or is over a limit, so the connection was given "
                + "up. Check that Redis listens there.",
            cause: cause
        )
    }

    static let closed = RedisError(code: .closed, message: "The client was closed. Make a new one.")

    static let unresponsive = RedisError(
        code: .connectionFailed,
        message: "Redis gave no sign of life in time, so the connection was given up."
    )

    static func connectionFailed(_ cause: (any Error)?) -> RedisError {
        RedisError(
            code: .connectionFailed,
            message: cause == nil ? "Redis closed the connection." : "The connection to Redis failed.",
            cause: cause
        )
    }
}
