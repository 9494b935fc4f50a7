/// Why a store cannot be used.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure this is. More may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind { case inUse, damaged, newerVersion, otherUse, insecure, full, failed }
        private let kind: Kind

        /// The store is open already, in another process or in this one, or another program writes to it.
        public static let inUse = Code(kind: .inUse)
        /// The store has other content than was put there.
        public static let damaged = Code(kind: .damaged)
        /// A later version of Lifeline has made the store.
        public static let newerVersion = Code(kind: .newerVersion)
        /// The store belongs to a client of another endpoint, to a server where a client was to use it, or to something
        /// that is not Lifeline.
        public static let otherUse = Code(kind: .otherUse)
        /// Others than its owner may use the store, which has secrets.
        public static let insecure = Code(kind: .insecure)
        /// There is no room for more on the disk.
        public static let full = Code(kind: .full)
        /// Reading or writing failed; the cause says how.
        public static let failed = Code(kind: .failed)

        /// The code's name.
        public var description: String { "\(kind)" }
    }

    /// What kind of failure this is.
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
