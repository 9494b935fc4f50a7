// For names that are qualified with the module of swift-protobuf, such as `SwiftProtobuf.Message`.
public enum SwiftProtobuf {
    public typealias Message = SwiftProtobufMessage
    public typealias Enum = SwiftProtobufEnum
    public typealias AsyncMessageSequence = LifelineSwiftProtobufCompatibility.AsyncMessageSequence

    public typealias AnyUnpackError = LifelineSwiftProtobufCompatibility.AnyUnpackError
    public typealias BinaryDecodingError = LifelineSwiftProtobufCompatibility.BinaryDecodingError
    public typealias BinaryDecodingOptions = LifelineSwiftProtobufCompatibility.BinaryDecodingOptions
    public typealias BinaryDelimited = LifelineSwiftProtobufCompatibility.BinaryDelimited
    public typealias BinaryEncodingError = LifelineSwiftProtobufCompatibility.BinaryEncodingError
    public typealias BinaryEncodingOptions = LifelineSwiftProtobufCompatibility.BinaryEncodingOptions
    public typealias ExtensionMap = LifelineSwiftProtobufCompatibility.ExtensionMap
    public typealias FieldMaskError = LifelineSwiftProtobufCompatibility.FieldMaskError
    public typealias JSONDecodingError = LifelineSwiftProtobufCompatibility.JSONDecodingError
    public typealias JSONDecodingOptions = LifelineSwiftProtobufCompatibility.JSONDecodingOptions
    public typealias JSONEncodingError = LifelineSwiftProtobufCompatibility.JSONEncodingError
    public typealias JSONEncodingOptions = LifelineSwiftProtobufCompatibility.JSONEncodingOptions
    public typealias SimpleExtensionMap = LifelineSwiftProtobufCompatibility.SimpleExtensionMap
    public typealias SwiftProtobufContiguousBytes = LifelineSwiftProtobufCompatibility.SwiftProtobufContiguousBytes
    public typealias SwiftProtobufError = LifelineSwiftProtobufCompatibility.SwiftProtobufError
    public typealias TextFormatDecodingError = LifelineSwiftProtobufCompatibility.TextFormatDecodingError
    public typealias TextFormatDecodingOptions = LifelineSwiftProtobufCompatibility.TextFormatDecodingOptions
    public typealias TextFormatEncodingOptions = LifelineSwiftProtobufCompatibility.TextFormatEncodingOptions
    public typealias UnknownStorage = LifelineSwiftProtobufCompatibility.UnknownStorage

    public typealias Google_Protobuf_Any = LifelineSwiftProtobufCompatibility.Google_Protobuf_Any
    public typealias Google_Protobuf_Api = LifelineSwiftProtobufCompatibility.Google_Protobuf_Api
    public typealias Google_Protobuf_BoolValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_BoolValue
    public typealias Google_Protobuf_BytesValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_BytesValue
    public typealias Google_Protobuf_DoubleValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_DoubleValue
    public typealias Google_Protobuf_Duration = LifelineSwiftProtobufCompatibility.Google_Protobuf_Duration
    public typealias Google_Protobuf_Empty = LifelineSwiftProtobufCompatibility.Google_Protobuf_Empty
    public typealias Google_Protobuf_Enum = LifelineSwiftProtobufCompatibility.Google_Protobuf_Enum
    public typealias Google_Protobuf_EnumValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_EnumValue
    public typealias Google_Protobuf_Field = LifelineSwiftProtobufCompatibility.Google_Protobuf_Field
    public typealias Google_Protobuf_FieldMask = LifelineSwiftProtobufCompatibility.Google_Protobuf_FieldMask
    public typealias Google_Protobuf_FloatValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_FloatValue
    public typealias Google_Protobuf_Int32Value = LifelineSwiftProtobufCompatibility.Google_Protobuf_Int32Value
    public typealias Google_Protobuf_Int64Value = LifelineSwiftProtobufCompatibility.Google_Protobuf_Int64Value
    public typealias Google_Protobuf_ListValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_ListValue
    public typealias Google_Protobuf_Method = LifelineSwiftProtobufCompatibility.Google_Protobuf_Method
    public typealias Google_Protobuf_Mixin = LifelineSwiftProtobufCompatibility.Google_Protobuf_Mixin
    public typealias Google_Protobuf_NullValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_NullValue
    public typealias Google_Protobuf_Option = LifelineSwiftProtobufCompatibility.Google_Protobuf_Option
    public typealias Google_Protobuf_SourceContext = LifelineSwiftProtobufCompatibility.Google_Protobuf_SourceContext
    public typealias Google_Protobuf_StringValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_StringValue
    public typealias Google_Protobuf_Struct = LifelineSwiftProtobufCompatibility.Google_Protobuf_Struct
    public typealias Google_Protobuf_Syntax = LifelineSwiftProtobufCompatibility.Google_Protobuf_Syntax
    public typealias Google_Protobuf_Timestamp = LifelineSwiftProtobufCompatibility.Google_Protobuf_Timestamp
    public typealias Google_Protobuf_Type = LifelineSwiftProtobufCompatibility.Google_Protobuf_Type
    public typealias Google_Protobuf_UInt32Value = LifelineSwiftProtobufCompatibility.Google_Protobuf_UInt32Value
    public typealias Google_Protobuf_UInt64Value = LifelineSwiftProtobufCompatibility.Google_Protobuf_UInt64Value
    public typealias Google_Protobuf_Value = LifelineSwiftProtobufCompatibility.Google_Protobuf_Value

    // descriptor.proto
    public typealias Google_Protobuf_DescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_DescriptorProto
    public typealias Google_Protobuf_Edition = LifelineSwiftProtobufCompatibility.Google_Protobuf_Edition
    public typealias Google_Protobuf_EnumDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_EnumDescriptorProto
    public typealias Google_Protobuf_EnumOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_EnumOptions
    public typealias Google_Protobuf_EnumValueDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_EnumValueDescriptorProto
    public typealias Google_Protobuf_EnumValueOptions = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_EnumValueOptions
    public typealias Google_Protobuf_ExtensionRangeOptions = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_ExtensionRangeOptions
    public typealias Google_Protobuf_FeatureSet = LifelineSwiftProtobufCompatibility.Google_Protobuf_FeatureSet
    public typealias Google_Protobuf_FeatureSetDefaults = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_FeatureSetDefaults
    public typealias Google_Protobuf_FieldDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_FieldDescriptorProto
    public typealias Google_Protobuf_FieldOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_FieldOptions
    public typealias Google_Protobuf_FileDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_FileDescriptorProto
    public typealias Google_Protobuf_FileDescriptorSet = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_FileDescriptorSet
    public typealias Google_Protobuf_FileOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_FileOptions
    public typealias Google_Protobuf_GeneratedCodeInfo = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_GeneratedCodeInfo
    public typealias Google_Protobuf_MessageOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_MessageOptions
    public typealias Google_Protobuf_MethodDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_MethodDescriptorProto
    public typealias Google_Protobuf_MethodOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_MethodOptions
    public typealias Google_Protobuf_OneofDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_OneofDescriptorProto
    public typealias Google_Protobuf_OneofOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_OneofOptions
    public typealias Google_Protobuf_ServiceDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_ServiceDescriptorProto
    public typealias Google_Protobuf_ServiceOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_ServiceOptions
    public typealias Google_Protobuf_SourceCodeInfo = LifelineSwiftProtobufCompatibility.Google_Protobuf_SourceCodeInfo
    public typealias Google_Protobuf_SymbolVisibility = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_SymbolVisibility
    public typealias Google_Protobuf_UninterpretedOption = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_UninterpretedOption

    public static var defaultAnyTypeURLPrefix: String { LifelineSwiftProtobufCompatibility.defaultAnyTypeURLPrefix }
}
