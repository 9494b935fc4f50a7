internal import LifelineMessages

extension Google_Protobuf_Value: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// A JSON string.
    public init(stringLiteral value: String) { self = .with { $0.stringValue = value } }

    /// A JSON true or false.
    public init(booleanLiteral value: Bool) { self = .with { $0.boolValue = value } }

    /// A JSON number.
    public init(floatLiteral value: Double) { self = .with { $0.numberValue = value } }

    /// A JSON number.
    public init(integerLiteral value: Int) { self = .with { $0.numberValue = Double(value) } }

    /// A JSON null.
    public init(nilLiteral: ()) { self = .with { $0.nullValue = .nullValue } }

    /// A JSON array.
    public init(arrayLiteral elements: Self...) { self = .with { $0.listValue.values = .init(elements) } }

    /// A JSON object.
    public init(dictionaryLiteral elements: (String, Self)...) {
        self = .with { $0.structValue.fields = .init(elements) }
    }
}
