internal import LifelineMessages

extension Google_Protobuf_DoubleValue {
    /// A present number.
    public init(_ value: Double) { self = .with { $0.value = value } }
}

extension Google_Protobuf_FloatValue {
    /// A present number.
    public init(_ value: Float) { self = .with { $0.value = value } }
}

extension Google_Protobuf_Int64Value {
    /// A present number.
    public init(_ value: Int64) { self = .with { $0.value = value } }
}

extension Google_Protobuf_UInt64Value {
    /// A present number.
    public init(_ value: UInt64) { self = .with { $0.value = value } }
}

extension Google_Protobuf_Int32Value {
    /// A present number.
    public init(_ value: Int32) { self = .with { $0.value = value } }
}

extension Google_Protobuf_UInt32Value {
    /// A present number.
    public init(_ value: UInt32) { self = .with { $0.value = value } }
}

extension Google_Protobuf_BoolValue {
    /// A present truth value.
    public init(_ value: Bool) { self = .with { $0.value = value } }
}

extension Google_Protobuf_StringValue {
    /// A present text.
    public init(_ value: String) { self = .with { $0.value = value } }
}

extension Google_Protobuf_BytesValue {
    /// Present bytes.
    public init(_ value: [UInt8]) { self = .with { $0.value = value } }
}
