public import LifelineMessages

extension Google_Protobuf_Any {
    /// A message of any type, with its type's name.
    ///
    /// - Parameter typePrefix: What stands before the name in `typeURL`; peers look only at what follows the last "/".
    /// - Throws: `MessageError` as `serializedBytes(partial:)` does.
    public init(
        packing message: some Message,
        typePrefix: String = "type.googleapis.com",
        partial: Bool = false
    ) throws(MessageError) {
        self.init()
        typeURL = "\(typePrefix)/\(type(of: message).protoMessageName)"
        value = try message.serializedBytes(partial: partial)
    }

    /// Whether this holds an `M`.
    public func isA<M: Message>(_: M.Type) -> Bool {
        typeURL.split(separator: "/", omittingEmptySubsequences: false).last.map(String.init) == M.protoMessageName
    }

    /// The message that this holds.
    ///
    /// - Throws: `MessageError`: `typeMismatch` when it is of another type, or what decoding throws.
    public func unpacked<M: Message>(
        as: M.Type = M.self,
        options: DecodingOptions = DecodingOptions()
    ) throws(MessageError) -> M {
        guard isA(M.self) else {
            throw MessageError(
                code: .typeMismatch,
                message:
                    "This google.protobuf.Any holds a \(typeURL.textFormatLiteral), not a \(M.protoMessageName). "
                    + "Ask isA(_:) first."
            )
        }
        return try M(serializedBytes: value, options: options)
    }
}
