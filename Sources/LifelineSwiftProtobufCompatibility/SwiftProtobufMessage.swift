internal import FoundationEssentials
public import LifelineMessages

/// A message with the API of swift-protobuf's `Message`.
///
/// `protoc-gen-lifeline` generates the conforming types with the option `Compatibility=SwiftProtobuf`. They are
/// messages of Lifeline too: connections, sessions and reflection take them.
public protocol SwiftProtobufMessage: LifelineMessages.Message {}

/// An enum with the API of swift-protobuf's `Enum`.
public protocol SwiftProtobufEnum: LifelineMessages.ProtobufEnum {}

public typealias Message = SwiftProtobufMessage
public typealias Enum = SwiftProtobufEnum

extension SwiftProtobufMessage {
    /// Whether the other message has the same type and content.
    public func isEqualTo(message: any SwiftProtobufMessage) -> Bool { (message as? Self) == self }

    /// The fields that the message type does not know. Extensions are among them.
    ///
    /// Fields with numbers that the message type does know become these when they are set here.
    public var unknownFields: UnknownStorage {
        get {
            let bytes: [UInt8] = unknownFields
            return UnknownStorage(data: Data(bytes))
        }
        set {
            removeUnknownFields()
            // What another message could not read, this one may not be able to either; then there is nothing to keep.
            if !newValue.data.isEmpty { try? merge(serializedData: newValue.data, partial: true) }
        }
    }
}
