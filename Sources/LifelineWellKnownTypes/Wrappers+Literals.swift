internal import LifelineMessages

extension Google_Protobuf_DoubleValue: ExpressibleByFloatLiteral {
    /// A present number.
    public init(floatLiteral value: Double) { self.init(value) }
}

extension Google_Protobuf_FloatValue: ExpressibleByFloatLiteral {
    /// A present number.
    public init(floatLiteral value: Float) { self.init(value) }
}

extension Google_Protobuf_Int64Value: ExpressibleByIntegerLiteral {
    /// A present number.
    public init(integerLiteral value: Int64) { self.init(value) }
}

extension Google_Protobuf_UInt64Value: ExpressibleByIntegerLiteral {
    /// A present number.
    public init(integerLiteral value: UInt64) { self.init(value) }
}

extension Google_Protobuf_Int32Value: ExpressibleByIntegerLiteral {
    /// A present number.
    public init(integerLiteral value: Int32) { self.init(value) }
}

extension Google_Protobuf_UInt32Value: ExpressibleByIntegerLiteral {
    /// A present number.
    public init(integerLiteral value: UInt32) { self.init(value) }
}

extension Google_Protobuf_BoolValue: ExpressibleByBooleanLiteral {
    /// A present truth value.
    public init(booleanLiteral value: Bool) { self.init(value) }
}

extension Google_Protobuf_StringValue: ExpressibleByStringLiteral {
    /// A present text.
    public init(stringLiteral value: String) { self.init(value) }
}
