/// The reason why a store cannot be used.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind { case inUse, damaged, newerVersion, otherUse, insecure, full, failed }
        private let kind: Kind

        /// The store is open already, in another process or in this one, or another program writes to it.
        public static let inUse = Code(kind: .inUse)
        /// The content of the store is not what was written.
        public static let damaged = Code(kind: .damaged)
        /// A later version of Lifeline has made the store.
        public static let newerVersion = Code(kind: .newerVersion)
        /// The store belongs to a client of another endpoint, to a server instead of a client or the other way round,
        /// or to another program.
        public static let otherUse = Code(kind: .otherUse)
        /// Users other than the owner have access to the store, which contains secrets.
        public static let insecure = Code(kind: .insecure)
        /// The disk is full.
        public static let full = Code(kind: .full)
        /// Reading or writing failed; the cause has the details.
        public static let failed = Code(kind: .failed)

        /// The code's name.
        public var description: String { "\(kind)" }
    }

    /// The kind of failure.
    public let code: Code
    /// What happened and what to do.
    public let message: String
    /// The error of the layer below, where there is one.
    public let cause: (any Error)?

    /// Makes an error.
    public init(code: Code, message: String, cause: (any Error)? = nil) {
        (self.code, self.message, self.cause) = (code, message, cause)
    }

    /// The code, the message and the cause.
    public var description: String {
        guard let cause else { return "\(code): \(message)" }
        return "\(code): \(message) Cause: \("\(cause)".escaped())"
    }
}
