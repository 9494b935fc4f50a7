internal import LifelineCore

/// The answer to a request that is not its result. A handler throws it, and the caller receives it.
public struct SessionStatus: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of answer: the codes of google.rpc.Code, with its numbers. A peer may send others.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The number on the wire.
        public let rawValue: UInt32

        /// Makes a code from its number.
        public init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        /// The request succeeded.
        public static let ok = Code(rawValue: 0)
        /// The request was cancelled, mostly by the caller.
        public static let cancelled = Code(rawValue: 1)
        /// Something failed, and nothing more is known about it.
        public static let unknown = Code(rawValue: 2)
        /// The request makes no sense, whatever the state of the system.
        public static let invalidArgument = Code(rawValue: 3)
        /// The deadline was over before the request was done.
        public static let deadlineExceeded = Code(rawValue: 4)
        /// The requested thing does not exist.
        public static let notFound = Code(rawValue: 5)
        /// The thing to create exists already.
        public static let alreadyExists = Code(rawValue: 6)
        /// The caller may not do this.
        public static let permissionDenied = Code(rawValue: 7)
        /// Something is used up: a quota, or the requests that may be processed at once.
        public static let resourceExhausted = Code(rawValue: 8)
        /// The system is not in the state that the request needs. Change the state before another try.
        public static let failedPrecondition = Code(rawValue: 9)
        /// The request was given up, mostly because of a conflict with another one. Repeat the whole operation.
        public static let aborted = Code(rawValue: 10)
        /// The request went past the valid range.
        public static let outOfRange = Code(rawValue: 11)
        /// No handler exists for this method.
        public static let unimplemented = Code(rawValue: 12)
        /// An invariant does not hold: a bug.
        public static let `internal` = Code(rawValue: 13)
        /// The service cannot be used now; try again after a while.
        public static let unavailable = Code(rawValue: 14)
        /// Data was lost or damaged for good.
        public static let dataLoss = Code(rawValue: 15)
        /// The caller is not authenticated.
        public static let unauthenticated = Code(rawValue: 16)

        /// The names in the order of the codes' numbers.
        private static let names = [
            "ok", "cancelled", "unknown", "invalidArgument", "deadlineExceeded", "notFound", "alreadyExists",
            "permissionDenied", "resourceExhausted", "failedPrecondition", "aborted", "outOfRange", "unimplemented",
            "internal", "unavailable", "dataLoss", "unauthenticated",
        ]

        /// The code's name, or its number if it has none.
        public var description: String {
            rawValue < Self.names.count ? Self.names[Int(rawValue)] : "code \(rawValue)"
        }
    }

    /// A detail for programs: an encoded message with its type, as in `google.protobuf.Any`.
    public struct Detail: Sendable, Hashable {
        /// The type of the message: `type.googleapis.com/package.Message`.
        public var typeURL: String
        /// The encoded message.
        public var value: [UInt8]

        /// Makes a detail from an encoded message.
        public init(typeURL: String, value: [UInt8]) {
            self.typeURL = typeURL
            self.value = value
        }
    }

    /// The kind of answer.
    public let code: Code
    /// What happened, for people.
    public let message: String
    /// What happened, for programs.
    public let details: [Detail]

    /// Makes a status.
    public init(_ code: Code, _ message: String = "", details: [Detail] = []) {
        self.code = code
        self.message = message
        self.details = details
    }

    /// The code and the message, in which control characters and the like are escaped and which is cut to 1,000
    /// characters.
    public var description: String { message.isEmpty ? "\(code)" : "\(code): \(message.escaped())" }
}
