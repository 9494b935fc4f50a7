/// The reason why a byte stream could not be split into frames, or a payload could not be put into one.
public struct FramingError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind {
            case malformedPrefix, frameTooLarge, truncatedFrame, payloadTooLarge
            case malformedHead, headTooLarge, invalidHead
        }
        private let kind: Kind

        /// Remote violation: the length prefix is not a varint of 32 bits.
        public static let malformedPrefix = Code(kind: .malformedPrefix)
        /// Remote violation: the length prefix, or the head, declares more than the limit.
        public static let frameTooLarge = Code(kind: .frameTooLarge)
        /// Remote violation: the stream ended inside a frame.
        public static let truncatedFrame = Code(kind: .truncatedFrame)
        /// Local misuse: the payload to send is over the limit.
        public static let payloadTooLarge = Code(kind: .payloadTooLarge)
        /// Remote violation: a frame's head line is not a JSON object with a type and a size.
        public static let malformedHead = Code(kind: .malformedHead)
        /// Remote violation: a frame's head line does not end within its limit.
        public static let headTooLarge = Code(kind: .headTooLarge)
        /// Local misuse: the framing has no head for the given message.
        public static let invalidHead = Code(kind: .invalidHead)

        /// The code's name.
        public var description: String { "\(kind)" }
    }

    /// The kind of failure.
    public let code: Code
    /// A description of the failure, and what to do about it.
    public let message: String

    /// The code and the message.
    public var description: String { "\(code): \(message)" }
}

extension FramingError {
    package static var malformedPrefix: FramingError {
        FramingError(
            code: .malformedPrefix,
            message: "The length prefix does not end within five bytes and 32 bits. "
                + "Check that the peer sends varint-delimited messages on this connection."
        )
    }

    package static func frameTooLarge(declaredLength: Int, limit: Int) -> FramingError {
        FramingError(
            code: .frameTooLarge,
            message: "The peer declared a frame of \(declaredLength) bytes, over the limit of \(limit). "
                + "Raise maximumFrameLength if such messages are expected."
        )
    }

    package static func truncatedFrame(received: Int, missing: Int) -> FramingError {
        FramingError(
            code: .truncatedFrame,
            message: "The stream ended \(received) bytes into a frame, at least \(missing) short of its end. "
                + "The message in it is lost; the peer probably stopped while it was sending."
        )
    }

    package static func payloadTooLarge(length: Int, limit: Int) -> FramingError {
        FramingError(
            code: .payloadTooLarge,
            message: "A message of \(length) bytes is over the limit of \(limit). "
                + "Split it, or raise maximumFrameLength here and at the peer."
        )
    }

    /// - Parameter reason: the problem, as a clause.
    package static func malformedHead(_ reason: String, at offset: Int) -> FramingError {
        FramingError(
            code: .malformedHead,
            message: "The head of a frame is malformed: at byte \(offset), \(reason). "
                + "Check that the peer sends a JSON object with a type and a size, and CRLF, before each content."
        )
    }

    package static func headTooLarge(limit: Int) -> FramingError {
        FramingError(
            code: .headTooLarge,
            message: "The head of a frame does not end within \(limit) bytes. "
                + "Check that the peer sends a JSON object with a type and a size, and CRLF, before each content."
        )
    }

    /// - Parameter reason: the problem, as a sentence.
    package static func invalidHead(_ reason: String) -> FramingError {
        FramingError(code: .invalidHead, message: reason)
    }
}
