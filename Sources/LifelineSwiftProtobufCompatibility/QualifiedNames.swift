/// Names that are qualified with the module of swift-protobuf, such as `SwiftProtobuf.Message`.
public enum SwiftProtobuf {
    /// `Message`, by its qualified name.
    public typealias Message = SwiftProtobufMessage
    /// `Enum`, by its qualified name.
    public typealias Enum = SwiftProtobufEnum
    /// `AsyncMessageSequence`, by its qualified name.
    public typealias AsyncMessageSequence = LifelineSwiftProtobufCompatibility.AsyncMessageSequence

    /// `AnyUnpackError`, by its qualified name.
    public typealias AnyUnpackError = LifelineSwiftProtobufCompatibility.AnyUnpackError
    /// `BinaryDecodingError`, by its qualified name.
    public typealias BinaryDecodingError = LifelineSwiftProtobufCompatibility.BinaryDecodingError
    /// `BinaryDecodingOptions`, by its qualified name.
    public typealias BinaryDecodingOptions = LifelineSwiftProtobufCompatibility.BinaryDecodingOptions
    /// `BinaryDelimited`, by its qualified name.
    public typealias BinaryDelimited = LifelineSwiftProtobufCompatibility.BinaryDelimited
    /// `BinaryEncodingError`, by its qualified name.
    public typealias BinaryEncodingError = LifelineSwiftProtobufCompatibility.BinaryEncodingError
    /// `BinaryEncodingOptions`, by its qualified name.
    public typealias BinaryEncodingOptions = LifelineSwiftProtobufCompatibility.BinaryEncodingOptions
    /// `ExtensionMap`, by its qualified name.
    public typealias ExtensionMap = LifelineSwiftProtobufCompatibility.ExtensionMap
    /// `FieldMaskError`, by its qualified name.
    public typealias FieldMaskError = LifelineSwiftProtobufCompatibility.FieldMaskError
    /// `JSONDecodingError`, by its qualified name.
    public typealias JSONDecodingError = LifelineSwiftProtobufCompatibility.JSONDecodingError
    /// `JSONDecodingOptions`, by its qualified name.
    public typealias JSONDecodingOptions = LifelineSwiftProtobufCompatibility.JSONDecodingOptions
    /// `JSONEncodingError`, by its qualified name.
    public typealias JSONEncodingError = LifelineSwiftProtobufCompatibility.JSONEncodingError
    /// `JSONEncodingOptions`, by its qualified name.
    public typealias JSONEncodingOptions = LifelineSwiftProtobufCompatibility.JSONEncodingOptions
    /// `SimpleExtensionMap`, by its qualified name.
    public typealias SimpleExtensionMap = LifelineSwiftProtobufCompatibility.SimpleExtensionMap
    /// `SwiftProtobufContiguousBytes`, by its qualified name.
    public typealias SwiftProtobufContiguousBytes = LifelineSwiftProtobufCompatibility.SwiftProtobufContiguousBytes
    /// `SwiftProtobufError`, by its qualified name.
    public typealias SwiftProtobufError = LifelineSwiftProtobufCompatibility.SwiftProtobufError
    /// `TextFormatDecodingError`, by its qualified name.
    public typealias TextFormatDecodingError = LifelineSwiftProtobufCompatibility.TextFormatDecodingError
    /// `TextFormatDecodingOptions`, by its qualified name.
    public typealias TextFormatDecodingOptions = LifelineSwiftProtobufCompatibility.TextFormatDecodingOptions
    /// `TextFormatEncodingOptions`, by its qualified name.
    public typealias TextFormatEncodingOptions = LifelineSwiftProtobufCompatibility.TextFormatEncodingOptions
    /// `UnknownStorage`, by its qualified name.
    public typealias UnknownStorage = LifelineSwiftProtobufCompatibility.UnknownStorage

    /// `Google_Protobuf_Any`, by its qualified name.
    public typealias Google_Protobuf_Any = LifelineSwiftProtobufCompatibility.Google_Protobuf_Any
    /// `Google_Protobuf_Api`, by its qualified name.
    public typealias Google_Protobuf_Api = LifelineSwiftProtobufCompatibility.Google_Protobuf_Api
    /// `Google_Protobuf_BoolValue`, by its qualified name.
    public typealias Google_Protobuf_BoolValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_BoolValue
    /// `Google_Protobuf_BytesValue`, by its qualified name.
    public typealias Google_Protobuf_BytesValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_BytesValue
    /// `Google_Protobuf_DoubleValue`, by its qualified name.
    public typealias Google_Protobuf_DoubleValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_DoubleValue
    /// `Google_Protobuf_Duration`, by its qualified name.
    public typealias Google_Protobuf_Duration = LifelineSwiftProtobufCompatibility.Google_Protobuf_Duration
    /// `Google_Protobuf_Empty`, by its qualified name.
    public typealias Google_Protobuf_Empty = LifelineSwiftProtobufCompatibility.Google_Protobuf_Empty
    /// `Google_Protobuf_Enum`, by its qualified name.
    public typealias Google_Protobuf_Enum = LifelineSwiftProtobufCompatibility.Google_Protobuf_Enum
    /// `Google_Protobuf_EnumValue`, by its qualified name.
    public typealias Google_Protobuf_EnumValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_EnumValue
    /// `Google_Protobuf_Field`, by its qualified name.
    public typealias Google_Protobuf_Field = LifelineSwiftProtobufCompatibility.Google_Protobuf_Field
    /// `Google_Protobuf_FieldMask`, by its qualified name.
    public typealias Google_Protobuf_FieldMask = LifelineSwiftProtobufCompatibility.Google_Protobuf_FieldMask
    /// `Google_Protobuf_FloatValue`, by its qualified name.
    public typealias Google_Protobuf_FloatValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_FloatValue
    /// `Google_Protobuf_Int32Value`, by its qualified name.
    public typealias Google_Protobuf_Int32Value = LifelineSwiftProtobufCompatibility.Google_Protobuf_Int32Value
    /// `Google_Protobuf_Int64Value`, by its qualified name.
    public typealias Google_Protobuf_Int64Value = LifelineSwiftProtobufCompatibility.Google_Protobuf_Int64Value
    /// `Google_Protobuf_ListValue`, by its qualified name.
    public typealias Google_Protobuf_ListValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_ListValue
    /// `Google_Protobuf_Method`, by its qualified name.
    public typealias Google_Protobuf_Method = LifelineSwiftProtobufCompatibility.Google_Protobuf_Method
    /// `Google_Protobuf_Mixin`, by its qualified name.
    public typealias Google_Protobuf_Mixin = LifelineSwiftProtobufCompatibility.Google_Protobuf_Mixin
    /// `Google_Protobuf_NullValue`, by its qualified name.
    public typealias Google_Protobuf_NullValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_NullValue
    /// `Google_Protobuf_Option`, by its qualified name.
    public typealias Google_Protobuf_Option = LifelineSwiftProtobufCompatibility.Google_Protobuf_Option
    /// `Google_Protobuf_SourceContext`, by its qualified name.
    public typealias Google_Protobuf_SourceContext = LifelineSwiftProtobufCompatibility.Google_Protobuf_SourceContext
    /// `Google_Protobuf_StringValue`, by its qualified name.
    public typealias Google_Protobuf_StringValue = LifelineSwiftProtobufCompatibility.Google_Protobuf_StringValue
    /// `Google_Protobuf_Struct`, by its qualified name.
    public typealias Google_Protobuf_Struct = LifelineSwiftProtobufCompatibility.Google_Protobuf_Struct
    /// `Google_Protobuf_Syntax`, by its qualified name.
    public typealias Google_Protobuf_Syntax = LifelineSwiftProtobufCompatibility.Google_Protobuf_Syntax
    /// `Google_Protobuf_Timestamp`, by its qualified name.
    public typealias Google_Protobuf_Timestamp = LifelineSwiftProtobufCompatibility.Google_Protobuf_Timestamp
    /// `Google_Protobuf_Type`, by its qualified name.
    public typealias Google_Protobuf_Type = LifelineSwiftProtobufCompatibility.Google_Protobuf_Type
    /// `Google_Protobuf_UInt32Value`, by its qualified name.
    public typealias Google_Protobuf_UInt32Value = LifelineSwiftProtobufCompatibility.Google_Protobuf_UInt32Value
    /// `Google_Protobuf_UInt64Value`, by its qualified name.
    public typealias Google_Protobuf_UInt64Value = LifelineSwiftProtobufCompatibility.Google_Protobuf_UInt64Value
    /// `Google_Protobuf_Value`, by its qualified name.
    public typealias Google_Protobuf_Value = LifelineSwiftProtobufCompatibility.Google_Protobuf_Value

    // descriptor.proto
    /// `Google_Protobuf_DescriptorProto`, by its qualified name.
    public typealias Google_Protobuf_DescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_DescriptorProto
    /// `Google_Protobuf_Edition`, by its qualified name.
    public typealias Google_Protobuf_Edition = LifelineSwiftProtobufCompatibility.Google_Protobuf_Edition
    /// `Google_Protobuf_EnumDescriptorProto`, by its qualified name.
    public typealias Google_Protobuf_EnumDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_EnumDescriptorProto
    /// `Google_Protobuf_EnumOptions`, by its qualified name.
    public typealias Google_Protobuf_EnumOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_EnumOptions
    /// `Google_Protobuf_EnumValueDescriptorProto`, by its qualified name.
    public typealias Google_Protobuf_EnumValueDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_EnumValueDescriptorProto
    /// `Google_Protobuf_EnumValueOptions`, by its qualified name.
    public typealias Google_Protobuf_EnumValueOptions = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_EnumValueOptions
    /// `Google_Protobuf_ExtensionRangeOptions`, by its qualified name.
    public typealias Google_Protobuf_ExtensionRangeOptions = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_ExtensionRangeOptions
    /// `Google_Protobuf_FeatureSet`, by its qualified name.
    public typealias Google_Protobuf_FeatureSet = LifelineSwiftProtobufCompatibility.Google_Protobuf_FeatureSet
    /// `Google_Protobuf_FeatureSetDefaults`, by its qualified name.
    public typealias Google_Protobuf_FeatureSetDefaults = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_FeatureSetDefaults
    /// `Google_Protobuf_FieldDescriptorProto`, by its qualified name.
    public typealias Google_Protobuf_FieldDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_FieldDescriptorProto
    /// `Google_Protobuf_FieldOptions`, by its qualified name.
    public typealias Google_Protobuf_FieldOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_FieldOptions
    /// `Google_Protobuf_FileDescriptorProto`, by its qualified name.
    public typealias Google_Protobuf_FileDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_FileDescriptorProto
    /// `Google_Protobuf_FileDescriptorSet`, by its qualified name.
    public typealias Google_Protobuf_FileDescriptorSet = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_FileDescriptorSet
    /// `Google_Protobuf_FileOptions`, by its qualified name.
    public typealias Google_Protobuf_FileOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_FileOptions
    /// `Google_Protobuf_GeneratedCodeInfo`, by its qualified name.
    public typealias Google_Protobuf_GeneratedCodeInfo = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_GeneratedCodeInfo
    /// `Google_Protobuf_MessageOptions`, by its qualified name.
    public typealias Google_Protobuf_MessageOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_MessageOptions
    /// `Google_Protobuf_MethodDescriptorProto`, by its qualified name.
    public typealias Google_Protobuf_MethodDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_MethodDescriptorProto
    /// `Google_Protobuf_MethodOptions`, by its qualified name.
    public typealias Google_Protobuf_MethodOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_MethodOptions
    /// `Google_Protobuf_OneofDescriptorProto`, by its qualified name.
    public typealias Google_Protobuf_OneofDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_OneofDescriptorProto
    /// `Google_Protobuf_OneofOptions`, by its qualified name.
    public typealias Google_Protobuf_OneofOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_OneofOptions
    /// `Google_Protobuf_ServiceDescriptorProto`, by its qualified name.
    public typealias Google_Protobuf_ServiceDescriptorProto = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_ServiceDescriptorProto
    /// `Google_Protobuf_ServiceOptions`, by its qualified name.
    public typealias Google_Protobuf_ServiceOptions = LifelineSwiftProtobufCompatibility.Google_Protobuf_ServiceOptions
    /// `Google_Protobuf_SourceCodeInfo`, by its qualified name.
    public typealias Google_Protobuf_SourceCodeInfo = LifelineSwiftProtobufCompatibility.Google_Protobuf_SourceCodeInfo
    /// `Google_Protobuf_SymbolVisibility`, by its qualified name.
    public typealias Google_Protobuf_SymbolVisibility = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_SymbolVisibility
    /// `Google_Protobuf_UninterpretedOption`, by its qualified name.
    public typealias Google_Protobuf_UninterpretedOption = LifelineSwiftProtobufCompatibility
        .Google_Protobuf_UninterpretedOption

    /// The beginning of the type URL of a `google.protobuf.Any`: `type.googleapis.com`.
    public static var defaultAnyTypeURLPrefix: String { LifelineSwiftProtobufCompatibility.defaultAnyTypeURLPrefix }
}
