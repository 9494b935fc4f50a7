internal import FoundationEssentials
public import LifelineMessages

/// A message with the API of swift-protobuf's `Message`.
///
/// With the option `Compatibility=SwiftProtobuf`, `protoc-gen-lifeline` generates types that conform to it. They are
/// also messages of Lifeline: connections, sessions and reflection accept them.
public protocol SwiftProtobufMessage: LifelineMessages.Message {
    /// For generated code.
    var _content: _MessageContent<_Fields> { get set }
}

/// An enum with the API of swift-protobuf's `Enum`.
public protocol SwiftProtobufEnum: LifelineMessages.ProtobufEnum {}

/// Swift-protobuf's name of a message.
public typealias Message = SwiftProtobufMessage
/// Swift-protobuf's name of an enum.
public typealias Enum = SwiftProtobufEnum

extension SwiftProtobufMessage {
    /// A new message. `populate` sets its fields.
    @inlinable public static func with<Failure: Error>(
        _ populate: (inout Self) throws(Failure) -> Void
    ) throws(Failure) -> Self {
        var message = Self()
        try populate(&message)
        // Done now, because the first use would otherwise have to make a copy.
        if !message._content.unsettled.isEmpty { message._content.settle() }
        return message
    }

    /// Whether the other message has the same type and content.
    public func isEqualTo(message: any SwiftProtobufMessage) -> Bool { (message as? Self) == self }

    /// The fields that the message type does not know. Extensions are among them.
    public var unknownFields: UnknownStorage {
        get {
            let bytes: [UInt8] = unknownFields
            return UnknownStorage(data: Data(bytes))
        }
        set {
            newValue.data.withUnsafeBytes { bytes in
                _message.untyped.setUnknownFields(bytes.assumingMemoryBound(to: UInt8.self), as: Self._table)
            }
        }
    }
}
