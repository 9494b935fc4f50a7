/// An error of adding files to a pool of descriptors.
public struct DescriptorError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added: give a `switch` over them a default.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String, Sendable {
            case malformed, limitExceeded, unsupportedEdition
            case missingImport, cyclicImport, duplicateFile
            case invalidName, duplicateName, unknownType
            case invalidNumber, duplicateNumber, overlappingRanges
            case invalidField, invalidEnum, invalidDefault
        }
        private let kind: Kind

        /// The bytes are not file descriptors.
        public static let malformed = Self(kind: .malformed)
        /// ``DescriptorLimits`` does not allow so many declarations, or such large ones.
        public static let limitExceeded = Self(kind: .limitExceeded)
        /// A file has an unknown syntax or edition.
        public static let unsupportedEdition = Self(kind: .unsupportedEdition)
        /// A file imports one that is neither added nor in the pool.
        public static let missingImport = Self(kind: .missingImport)
        /// A file imports itself, directly or through others.
        public static let cyclicImport = Self(kind: .cyclicImport)
        /// The pool has another file with the same name and different content.
        public static let duplicateFile = Self(kind: .duplicateFile)
        /// A name is not an identifier, or a name in JSON is in brackets.
        public static let invalidName = Self(kind: .invalidName)
        /// Another declaration has the same full name, or the same name in JSON.
        public static let duplicateName = Self(kind: .duplicateName)
        /// A type that is used is neither declared by the file nor by its imports, or is of another kind.
        public static let unknownType = Self(kind: .unknownType)
        /// The number of a field, or of a range, is not allowed.
        public static let invalidNumber = Self(kind: .invalidNumber)
        /// Two fields, or two values of an enum, have the same number.
        public static let duplicateNumber = Self(kind: .duplicateNumber)
        /// Ranges of reserved numbers or of extensions overlap, or a field is in one of them.
        public static let overlappingRanges = Self(kind: .overlappingRanges)
        /// The declaration of a field, extension, oneof or map is contradictory.
        public static let invalidField = Self(kind: .invalidField)
        /// An enum has no values, or is open and does not begin with 0.
        public static let invalidEnum = Self(kind: .invalidEnum)
        /// A default is not a value of its field's type, or the field cannot have a default.
        public static let invalidDefault = Self(kind: .invalidDefault)

        public var description: String { kind.rawValue }
    }

    /// The kind of failure.
    public var code: Code
    /// The problem, with the file and the full name of the declaration.
    public var message: String

    /// Makes an error with a text for people.
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { "\(code): \(message)" }
}

/// How much may be added to a pool at once. These limits bound the cost of malicious descriptors from a peer.
public struct DescriptorLimits: Hashable, Sendable {
    /// The bytes of the encoded files, and of all full names together. 16 MiB by default.
    ///
    /// Decoded files may take 16 times as much memory, and 1 MiB.
    public var byteCount = 16 << 20
    /// Files. 20,000 by default.
    public var fileCount = 20_000
    /// Messages, extensions, enums, services and oneofs. 200,000 by default.
    public var typeCount = 200_000
    /// Fields, extensions, values of enums and methods. 1,000,000 by default.
    public var memberCount = 1_000_000
    /// How deep declarations of messages may be nested. 32 by default, as for protoc.
    public var depth = 32

    /// Makes limits with the default values.
    public init() {}

    /// The bytes that decoding may allocate. Common files take about ten times their size.
    var memoryLimit: Int { 16 * min(max(byteCount, 0), .max / 32) + 1 << 20 }
}
