internal import LifelineCore
public import LifelineMessages

/// A message of a WebSocket, as a browser sees it: for peers that send texts, or anything other than delimited
/// protobuf.
///
/// A connection, client or server that receives or sends this type treats each WebSocket message as one message. With
/// every other type, binary messages carry a stream of delimited messages, and texts are refused.
///
/// The type is for endpoints `ws` and `wss`. On other endpoints it is a delimited message: a byte (1 for text, 2 for
/// binary) and the content.
public enum WebSocketMessage: Sendable, Hashable {
    /// A text.
    case text(String)
    /// Bytes.
    case binary([UInt8])
}

extension WebSocketMessage: DelimitedMessage {
    /// Reads the kind and the content.
    ///
    /// - Throws: `MessageError` when the bytes are not such a message.
    public init(
        serializedBytes: UnsafeRawBufferPointer,
        partial: Bool = false,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) {
        let content = UnsafeRawBufferPointer(rebasing: serializedBytes.dropFirst())
        switch serializedBytes.first {
        case WebSocketMessageFrame.binary:
            self = .binary([UInt8](content))
        case WebSocketMessageFrame.text:
            guard let text = String(validating: content, as: UTF8.self) else {
                throw MessageError(code: .invalidUTF8, message: "The text of a WebSocketMessage is not UTF-8.")
            }
            self = .text(text)
        case nil:
            throw MessageError(code: .truncated, message: "A WebSocketMessage has no kind.")
        default:
            throw MessageError(code: .typeMismatch, message: "What came is no WebSocketMessage.")
        }
    }

    /// Calls `body` with the length, the kind and the content.
    public func withDelimitedBytes<Result>(
        partial: Bool = false,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        var frame: [UInt8]
        switch self {
        case .text(let text):
            let content = text.utf8
            frame = WebSocketMessageFrame.head(of: .text, byteCount: content.count)
            frame += content
        case .binary(let content):
            frame = WebSocketMessageFrame.head(of: .binary, byteCount: content.count)
            frame += content
        }
        return try frame.withUnsafeBytes(body)
    }
}
