internal import LifelineMessages

extension Google_Protobuf_Struct: ExpressibleByDictionaryLiteral {
    /// A JSON object. If a key occurs more than once, its last value counts.
    public init(dictionaryLiteral elements: (String, Google_Protobuf_Value)...) {
        self.init(fields: Dictionary(elements) { _, last in last })
    }

    /// A JSON object with these values.
    public init(fields: [String: Google_Protobuf_Value]) { self = .with { $0.fields = fields } }

    /// The value of `key`. Setting nil removes the key.
    public subscript(key: String) -> Google_Protobuf_Value? {
        get { fieldsField[key] }
        set { fieldsField[key] = newValue }
    }
}

extension Google_Protobuf_ListValue: ExpressibleByArrayLiteral {
    /// A JSON array.
    public init(arrayLiteral elements: Google_Protobuf_Value...) { self.init(values: elements) }

    /// A JSON array of these values.
    public init(values: [Google_Protobuf_Value]) { self = .with { $0.values = values } }

    /// The value at an index, which must be below `values.count`.
    public subscript(index: Int) -> Google_Protobuf_Value {
        _read { yield valuesField[index] }
        _modify { yield &valuesField[index] }
    }
}

extension Google_Protobuf_Value: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByNilLiteral
{
    /// A JSON string.
    public init(stringLiteral value: String) { self.init(stringValue: value) }

    /// A JSON true or false.
    public init(booleanLiteral value: Bool) { self.init(boolValue: value) }

    /// A JSON number.
    public init(floatLiteral value: Double) { self.init(numberValue: value) }

    /// A JSON number.
    public init(integerLiteral value: Int64) { self.init(numberValue: Double(value)) }

    /// A JSON null.
    public init(nilLiteral: ()) { self = .with { $0.nullValue = .nullValue } }

    /// A JSON number.
    public init(numberValue: Double) { self = .with { $0.numberValue = numberValue } }

    /// A JSON string.
    public init(stringValue: String) { self = .with { $0.stringValue = stringValue } }

    /// A JSON true or false.
    public init(boolValue: Bool) { self = .with { $0.boolValue = boolValue } }

    /// A JSON object.
    public init(structValue: Google_Protobuf_Struct) { self = .with { $0.structValue = structValue } }

    /// A JSON array.
    public init(listValue: Google_Protobuf_ListValue) { self = .with { $0.listValue = listValue } }
}
