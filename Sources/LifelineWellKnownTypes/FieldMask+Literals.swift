internal import LifelineMessages

extension Google_Protobuf_FieldMask {
    /// A mask with these paths: names of fields as in the .proto file, such as `author.display_name`. They are not
    /// checked.
    public init(protoPaths: [String]) { self = .with { $0.paths = .init(protoPaths) } }

    /// A mask with these paths: names of fields as in the .proto file, such as `author.display_name`. They are not
    /// checked.
    public init(protoPaths: String...) { self.init(protoPaths: protoPaths) }

    /// A mask with these paths: names of fields as in JSON, such as `author.displayName`. Nil if one has an underscore,
    /// which names in JSON do not have.
    public init?(jsonPaths: String...) {
        // A mask is one string in JSON, and so is this wrapper.
        let paths = Google_Protobuf_StringValue(jsonPaths.joined(separator: ","))
        guard let json = try? paths.jsonUTF8Bytes(), let mask = try? Self(jsonUTF8Bytes: json) else { return nil }
        self = mask
    }
}

extension Google_Protobuf_FieldMask: ExpressibleByArrayLiteral {
    /// A mask with these paths: names of fields as in the .proto file. They are not checked.
    public init(arrayLiteral paths: String...) { self.init(protoPaths: paths) }
}
