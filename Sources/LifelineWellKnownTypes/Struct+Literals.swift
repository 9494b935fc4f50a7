internal import LifelineMessages

extension Google_Protobuf_Struct: ExpressibleByDictionaryLiteral {
    /// A JSON object. If a key occurs more than once, its last value counts.
    public init(dictionaryLiteral elements: (String, Google_Protobuf_Value)...) {
        self = .with { $0.fields = .init(elements) }
    }
}

extension Google_Protobuf_ListValue: ExpressibleByArrayLiteral {
    /// A JSON array.
    public init(arrayLiteral elements: Google_Protobuf_Value...) { self.init(values: elements) }
}

extension Google_Protobuf_Value: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// A JSON string.
    public init(stringLiteral value: String) { self.init(stringValue: value) }

    /// A JSON true or false.
    public init(booleanLiteral value: Bool) { self.init(boolValue: value) }

    /// A JSON number.
    public init(floatLiteral value: Double) { self.init(numberValue: value) }

    /// A JSON number.
    public init(integerLiteral value: Int) { self.init(numberValue: Double(value)) }

    /// A JSON null.
    public init(nilLiteral: ()) { self = .with { $0.nullValue = .nullValue } }

    /// A JSON array.
    public init(arrayLiteral elements: Self...) { self = .with { $0.listValue.values = .init(elements) } }

    /// A JSON object. If a key occurs more than once, its last value counts.
    public init(dictionaryLiteral elements: (String, Self)...) {
        self = .with { $0.structValue.fields = .init(elements) }
    }
}
