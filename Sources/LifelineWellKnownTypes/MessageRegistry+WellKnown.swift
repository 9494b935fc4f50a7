public import LifelineMessages

extension MessageRegistry {
    /// The messages of the package `google.protobuf` that ship with protobuf.
    public static let wellKnownTypes = MessageRegistry([
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
}
