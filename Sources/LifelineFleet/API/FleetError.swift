/// The reason why a group cannot be used.
public struct FleetError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind {
            case badName, badMessage, alreadyJoined, tooManyGroups, sessionEnded, engineFailed, cancelled
        }
        private let kind: Kind

        /// Local misuse: the name of a group is empty or too long.
        public static let badName = Code(kind: .badName)
        /// Local misuse: the message cannot be pushed to a group. No member gets it.
        public static let badMessage = Code(kind: .badMessage)
        /// Local misuse: the client is already in the group, through another call of `withGroup`.
        public static let alreadyJoined = Code(kind: .alreadyJoined)
        /// The session is in as many groups as it may join.
        public static let tooManyGroups = Code(kind: .tooManyGroups)
        /// The session is over.
        public static let sessionEnded = Code(kind: .sessionEnded)
        /// The engine has failed; the cause has the reason. A message that was pushed may have been kept nevertheless.
        public static let engineFailed = Code(kind: .engineFailed)
        /// The task was cancelled. A message that was pushed may have been kept nevertheless.
        public static let cancelled = Code(kind: .cancelled)

        /// The code's name.
        public var description: String { "\(kind)" }
    }

    /// The kind of failure.
    public let code: Code
    /// A description of the failure, and what to do about it.
    public let message: String
    /// The error of the layer below, if there is one.
    public let cause: (any Error)?

    /// Makes an error.
    public init(code: Code, message: String, cause: (any Error)? = nil) {
        (self.code, self.message, self.cause) = (code, message, cause)
    }

    /// The code, the message and the cause.
    public var description: String {
        guard let cause else { return "\(code): \(message)" }
        return "\(code): \(message) Cause: \(cause)"
    }
}

extension FleetError {
    static let cancelled = FleetError(code: .cancelled, message: "The task was cancelled.")

    static let alreadyJoined = FleetError(
        code: .alreadyJoined,
        message: "The client is already in the group. Share the group of one withGroup call."
    )

    static let sessionEnded = FleetError(code: .sessionEnded, message: "The session is over.")

    static func tooManyGroups(_ limit: Int) -> FleetError {
        FleetError(
            code: .tooManyGroups,
            message:
                "The session is in \(limit) groups, as many as FleetConfiguration.maximumGroupCountPerSession allows. "
                + "Leave one, or raise the limit."
        )
    }

    /// - Throws: `badName`.
    static func checkName(_ name: String) throws(FleetError) {
        let length = name.utf8.count
        if (1...maximumNameByteCount).contains(length) { return }
        throw FleetError(
            code: .badName,
            message: "The name of a group has from 1 to \(maximumNameByteCount) bytes of UTF-8, and this one \(length)."
        )
    }

    private static var maximumNameByteCount: Int { 255 }
}
