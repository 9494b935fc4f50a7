internal import LifelineCore

/// How a request was answered when it was not with its result: what a handler throws, and what the one who asked gets.
public struct SessionStatus: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of answer it is: the codes of google.rpc.Code, with its numbers. Others may come from a peer.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The number on the wire.
        public let rawValue: UInt32

        /// Makes a code of a number.
        public init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        /// The request succeeded.
        public static let ok = Code(rawValue: 0)
        /// The request was cancelled, mostly by who asked.
        public static let cancelled = Code(rawValue: 1)
        /// Something failed of which nothing more is known.
        public static let unknown = Code(rawValue: 2)
        /// The request makes no sense, whatever the state of the system.
        public static let invalidArgument = Code(rawValue: 3)
        /// The deadline was over before the request was done.
        public static let deadlineExceeded = Code(rawValue: 4)
        /// What was asked for is not there.
        public static let notFound = Code(rawValue: 5)
        /// What was to be made is there already.
        public static let alreadyExists = Code(rawValue: 6)
        /// Who asks may not do this.
        public static let permissionDenied = Code(rawValue: 7)
        /// Something is used up: a quota, or the requests that may be processed at once.
        public static let resourceExhausted = Code(rawValue: 8)
        /// The system is not in the state that the request needs; it has to be changed before another try.
        public static let failedPrecondition = Code(rawValue: 9)
        /// The request was given up, mostly because another one came in its way; try again from further up.
        public static let aborted = Code(rawValue: 10)
        /// The request went past the end of what there is.
        public static let outOfRange = Code(rawValue: 11)
        /// Nobody handles this method.
        public static let unimplemented = Code(rawValue: 12)
        /// Something that must hold does not: a bug.
        public static let `internal` = Code(rawValue: 13)
        /// The service cannot be used now; try again after a while.
        public static let unavailable = Code(rawValue: 14)
        /// Data was lost or damaged for good.
        public static let dataLoss = Code(rawValue: 15)
        /// It is not known who asks.
        public static let unauthenticated = Code(rawValue: 16)

        /// In the order of their numbers.
        private static let names = [
            "ok", "cancelled", "unknown", "invalidArgument", "deadlineExceeded", "notFound", "alreadyExists",
            "permissionDenied", "resourceExhausted", "failedPrecondition", "aborted", "outOfRange", "unimplemented",
            "internal", "unavailable", "dataLoss", "unauthenticated",
        ]

        /// The code's name, or its number where it has none.
        public var description: String {
            rawValue < Self.names.count ? Self.names[Int(rawValue)] : "code \(rawValue)"
        }
    }

    /// Something for programs: an encoded message and which one it is, as in `google.protobuf.Any`.
    public struct Detail: Sendable, Hashable {
        /// Which message it is: `type.googleapis.com/package.Message`.
        public var typeURL: String
        /// The encoded message.
        public var value: [UInt8]

        /// Takes an encoded message.
        public init(typeURL: String, value: [UInt8]) {
            self.typeURL = typeURL
            self.value = value
        }
    }

    /// What kind of answer it is.
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
