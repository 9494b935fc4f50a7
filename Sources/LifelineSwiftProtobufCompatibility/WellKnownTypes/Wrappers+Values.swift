public import FoundationEssentials
internal import LifelineMessages

extension Google_Protobuf_DoubleValue: ExpressibleByFloatLiteral {
    /// Wraps a value.
    public init(_ value: Double) { self = .with { $0.value = value } }
    public init(floatLiteral value: Double) { self.init(value) }
}

extension Google_Protobuf_FloatValue: ExpressibleByFloatLiteral {
    /// Wraps a value.
    public init(_ value: Float) { self = .with { $0.value = value } }
    public init(floatLiteral value: Float) { self.init(value) }
}

extension Google_Protobuf_Int64Value: ExpressibleByIntegerLiteral {
    /// Wraps a value.
    public init(_ value: Int64) { self = .with { $0.value = value } }
    public init(integerLiteral value: Int64) { self.init(value) }
}

extension Google_Protobuf_UInt64Value: ExpressibleByIntegerLiteral {
    /// Wraps a value.
    public init(_ value: UInt64) { self = .with { $0.value = value } }
    public init(integerLiteral value: UInt64) { self.init(value) }
}

extension Google_Protobuf_Int32Value: ExpressibleByIntegerLiteral {
    /// Wraps a value.
    public init(_ value: Int32) { self = .with { $0.value = value } }
    public init(integerLiteral value: Int32) { self.init(value) }
}

extension Google_Protobuf_UInt32Value: ExpressibleByIntegerLiteral {
    /// Wraps a value.
    public init(_ value: UInt32) { self = .with { $0.value = value } }
    public init(integerLiteral value: UInt32) { self.init(value) }
}

extension Google_Protobuf_BoolValue: ExpressibleByBooleanLiteral {
    /// Wraps a value.
    public init(_ value: Bool) { self = .with { $0.value = value } }
    public init(booleanLiteral value: Bool) { self.init(value) }
}

extension Google_Protobuf_StringValue: ExpressibleByStringLiteral {
    /// Wraps a value.
    public init(_ value: String) { self = .with { $0.value = value } }
    public init(stringLiteral value: String) { self.init(value) }
}

extension Google_Protobuf_BytesValue {
    /// Wraps a value.
    public init(_ value: Data) { self = .with { $0.value = value } }
}
