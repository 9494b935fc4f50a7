public import LifelineMessages

extension Google_Protobuf_Struct {
    /// A JSON object with these values.
    public init(fields: [String: Google_Protobuf_Value]) { self.init(fields: MapField(fields)) }

    /// A JSON object with the values of another one's ``fields``.
    public init(fields: MapField<String, Google_Protobuf_Value>) { self = .with { $0.fields = fields } }

    /// The value of `key`. Setting nil removes the key; a JSON null is `Google_Protobuf_Value(nilLiteral: ())`.
    public subscript(key: String) -> Google_Protobuf_Value? {
        get { fields[key] }
        set { fields[key] = newValue }
    }
}

extension Google_Protobuf_ListValue {
    /// A JSON array of these values.
    public init(values: some Sequence<Google_Protobuf_Value>) { self = .with { $0.values = .init(values) } }

    /// The value at an index, which must be below `values.count`.
    public subscript(index: Int) -> Google_Protobuf_Value {
        _read { yield values[index] }
        _modify { yield &values[index] }
    }
}

extension Google_Protobuf_Value {
    /// A JSON number. NaN and the infinities cannot be written as JSON.
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
