internal import LifelineMessages
internal import LifelineWellKnownTypes
internal import Synchronization

/// The text before the name of a type in the `typeURL` of a `google.protobuf.Any`.
public let defaultAnyTypeURLPrefix = "type.googleapis.com"

extension Google_Protobuf_Any {
    /// Encodes a message into an `Any`, immediately.
    ///
    /// - Throws: `BinaryEncodingError`.
    public init(
        message: any SwiftProtobufMessage,
        partial: Bool = false,
        typePrefix: String = defaultAnyTypeURLPrefix
    ) throws {
        do throws(MessageError) {
            self = try Self(packing: message, partial: partial, typePrefix: typePrefix)
        } catch {
            throw error.asBinaryEncodingError
        }
    }

    private init(
        packing message: some SwiftProtobufMessage,
        partial: Bool,
        typePrefix: String
    ) throws(MessageError) {
        self = try LifelineWellKnownTypes.Google_Protobuf_Any(
            message: message,
            partial: partial,
            typePrefix: typePrefix
        ).twin()
    }

    /// Whether this holds an `M`.
    public func isA<M: SwiftProtobufMessage>(_ type: M.Type) -> Bool {
        twin(as: LifelineWellKnownTypes.Google_Protobuf_Any.self).isA(type)
    }
}

extension SwiftProtobufMessage {
    /// The message that an `Any` holds. Proto2 `required` fields may be absent.
    ///
    /// - Throws: `AnyUnpackError.typeMismatch` if it is of another type, or the error of decoding.
    public init(
        unpackingAny any: Google_Protobuf_Any,
        extensions: (any ExtensionMap)? = nil,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) throws {
        guard any.isA(Self.self) else { throw AnyUnpackError.typeMismatch }
        try self.init(serializedBytes: any.value, extensions: extensions, partial: true, options: options)
    }
}

// MARK: - The types of messages that an Any may hold in JSON and text format

extension Google_Protobuf_Any {
    private static let registry = Mutex(
        MessageRegistry([
            Google_Protobuf_Any.self, Google_Protobuf_Api.self, Google_Protobuf_BoolValue.self,
            Google_Protobuf_BytesValue.self, Google_Protobuf_DoubleValue.self, Google_Protobuf_Duration.self,
            Google_Protobuf_Empty.self, Google_Protobuf_Enum.self, Google_Protobuf_EnumValue.self,
            Google_Protobuf_Field.self, Google_Protobuf_FieldMask.self, Google_Protobuf_FloatValue.self,
            Google_Protobuf_Int32Value.self, Google_Protobuf_Int64Value.self, Google_Protobuf_ListValue.self,
            Google_Protobuf_Method.self, Google_Protobuf_Mixin.self, Google_Protobuf_Option.self,
            Google_Protobuf_SourceContext.self, Google_Protobuf_StringValue.self, Google_Protobuf_Struct.self,
            Google_Protobuf_Timestamp.self, Google_Protobuf_Type.self, Google_Protobuf_UInt32Value.self,
            Google_Protobuf_UInt64Value.self, Google_Protobuf_Value.self,
        ])
    )

    /// Registers a type, so that an `Any` with it can be written and read as JSON and as text.
    ///
    /// - Returns: False if another type with its name was registered before.
    @discardableResult public static func register(messageType: any SwiftProtobufMessage.Type) -> Bool {
        registry.withLock { registry in
            if let known = registry[messageType.protoMessageName] { return known == messageType }
            registry.add(MessageRegistry([messageType]))
            return true
        }
    }

    /// The registered type of the message with a name.
    public static func messageType(forMessageName name: String) -> (any SwiftProtobufMessage.Type)? {
        registered[name] as? any SwiftProtobufMessage.Type
    }

    /// The registered type of the message with a URL.
    public static func messageType(forTypeURL url: String) -> (any SwiftProtobufMessage.Type)? {
        messageType(forMessageName: String(url[(url.lastIndex(of: "/").map(url.index(after:)) ?? url.startIndex)...]))
    }

    static var registered: MessageRegistry { registry.withLock { $0 } }

    /// The registered types, and extensions.
    static func registered(and extensions: (any ExtensionMap)?) -> MessageRegistry {
        var types = registered
        if let extensions { types.add(extensions._registry) }
        return types
    }
}
