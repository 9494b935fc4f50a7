/// An error for which swift-protobuf has no enum.
public struct SwiftProtobufError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added: give a `switch` over them a default.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String {
            case binaryDecodingError, binaryStreamDecodingError, jsonDecodingError, jsonEncodingError
        }
        private let kind: Kind

        /// An encoded message could not be decoded.
        public static let binaryDecodingError = Self(kind: .binaryDecodingError)
        /// A stream of messages could not be read.
        public static let binaryStreamDecodingError = Self(kind: .binaryStreamDecodingError)
        /// JSON could not be read.
        public static let jsonDecodingError = Self(kind: .jsonDecodingError)
        /// A message could not be written as JSON.
        public static let jsonEncodingError = Self(kind: .jsonEncodingError)

        public var description: String { kind.rawValue }
    }

    /// The place in a program where an error was made.
    public struct SourceLocation: Hashable, Sendable {
        /// The function's name.
        public var function: String
        /// The module and the file's name.
        public var file: String
        /// The line in the file.
        public var line: Int

        /// Makes a location.
        public init(function: String, file: String, line: Int) {
            (self.function, self.file, self.line) = (function, file, line)
        }
    }

    /// The kind of failure.
    public var code: Code
    private let message: String
    private let location: SourceLocation

    /// Makes an error with a text for people.
    public init(code: Code, message: String, location: SourceLocation) {
        (self.code, self.message, self.location) = (code, message, location)
    }

    /// - Parameters:
    ///   - function: the caller's.
    ///   - file: the caller's.
    ///   - line: the caller's.
    init(
        _ code: Code,
        _ message: String,
        function: String = #function,
        file: String = #fileID,
        line: Int = #line
    ) {
        self.init(code: code, message: message, location: SourceLocation(function: function, file: file, line: line))
    }

    public var description: String { "\(code) in \(location.file), line \(location.line): \(message)" }
}

extension SwiftProtobufError {
    /// Errors of decoding a message.
    public enum BinaryDecoding {
        /// An encoded message has more than 2 GiB.
        public static func tooLarge(
            function: String = #function,
            file: String = #fileID,
            line: Int = #line
        ) -> SwiftProtobufError {
            let message = "An encoded message has more than 2147483647 bytes, protobuf's limit."
            return SwiftProtobufError(.binaryDecodingError, message, function: function, file: file, line: line)
        }
    }

    /// Errors of reading a stream of messages.
    public enum BinaryStreamDecoding {
        /// The length before a message is above 2 GiB.
        public static func tooLarge(
            function: String = #function,
            file: String = #fileID,
            line: Int = #line
        ) -> SwiftProtobufError {
            let message = "A message of the stream has more than 2147483647 bytes, protobuf's limit."
            return SwiftProtobufError(.binaryStreamDecodingError, message, function: function, file: file, line: line)
        }

        /// There is no length before a message.
        public static func malformedLength(
            function: String = #function,
            file: String = #fileID,
            line: Int = #line
        ) -> SwiftProtobufError {
            let message = "Where the length of a message has to stand, the stream has no varint of a length."
            return SwiftProtobufError(.binaryStreamDecodingError, message, function: function, file: file, line: line)
        }

        /// The stream has ended after a message.
        public static func noBytesAvailable(
            function: String = #function,
            file: String = #fileID,
            line: Int = #line
        ) -> SwiftProtobufError {
            let message = "The stream has no more messages."
            return SwiftProtobufError(.binaryStreamDecodingError, message, function: function, file: file, line: line)
        }
    }

    /// Errors of reading JSON.
    public enum JSONDecoding {
        /// A `google.protobuf.Any` has a type that is not registered.
        public static func invalidAnyTypeURL(
            type_url: String,
            function: String = #function,
            file: String = #fileID,
            line: Int = #line
        ) -> SwiftProtobufError {
            let message = "No type is registered for the google.protobuf.Any: \(type_url)"
            return SwiftProtobufError(.jsonDecodingError, message, function: function, file: file, line: line)
        }

        /// A `google.protobuf.Any` has no type.
        public static func emptyAnyTypeURL(
            function: String = #function,
            file: String = #fileID,
            line: Int = #line
        ) -> SwiftProtobufError {
            let message = "A google.protobuf.Any has no \"@type\"."
            return SwiftProtobufError(.jsonDecodingError, message, function: function, file: file, line: line)
        }
    }

    /// Errors of writing JSON.
    public enum JSONEncoding {
        /// A `google.protobuf.Any` has a type that is not registered.
        public static func invalidAnyTypeURL(
            type_url: String,
            function: String = #function,
            file: String = #fileID,
            line: Int = #line
        ) -> SwiftProtobufError {
            let message = "No type is registered for the google.protobuf.Any: \(type_url)"
            return SwiftProtobufError(.jsonEncodingError, message, function: function, file: file, line: line)
        }

        /// A `google.protobuf.Any` has no type.
        public static func emptyAnyTypeURL(
            function: String = #function,
            file: String = #fileID,
            line: Int = #line
        ) -> SwiftProtobufError {
            let message = "A google.protobuf.Any has no type."
            return SwiftProtobufError(.jsonEncodingError, message, function: function, file: file, line: line)
        }
    }
}
