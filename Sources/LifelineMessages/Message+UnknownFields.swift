internal import CProtobufC

extension Message {
    /// The fields that the message type does not know, with their tags, as they were in the input. Encoding the message
    /// writes them again, after all others. Extensions are among them.
    public var unknownFields: [UInt8] { _message.untyped.unknownFields }

    /// Removes the fields that the message type does not know, including extensions, but not those of submessages.
    public mutating func removeUnknownFields() {
        _message.untyped.removeUnknownFields(as: Self._table)
    }
}

extension _UntypedReference {
    var hasUnknownFields: Bool { base.n_unknown_fields > 0 }

    /// The bytes of unknown fields, without the tags of some.
    var unknownByteCount: Int {
        defer { extendLifetime(self) }
        let fields = UnsafeBufferPointer(start: base.unknown_fields, count: Int(base.n_unknown_fields))
        return fields.reduce(0) { $0 + $1.len }
    }

    mutating func removeUnknownFields(as table: UnsafePointer<_MessageTable>) {
        guard hasUnknownFields else { return }
        let fields = mutableFields(as: table)
        fields.assumingMemoryBound(to: ProtobufCMessage.self).pointee.n_unknown_fields = 0
    }

    /// Makes the encoded unknown fields of some message those of this one.
    package mutating func setUnknownFields(
        _ bytes: UnsafeBufferPointer<UInt8>,
        as table: UnsafePointer<_MessageTable>
    ) {
        let fields = mutableFields(as: table)
        withStorage { $0.setUnknownFields(of: fields, to: bytes) }
    }

    /// The base that every struct of protobuf-c begins with.
    private var base: ProtobufCMessage {
        defer { extendLifetime(self) }
        return fields.assumingMemoryBound(to: ProtobufCMessage.self).pointee
    }

    var unknownFields: [UInt8] {
        defer { extendLifetime(self) }
        var bytes: [UInt8] = []
        for field in UnsafeBufferPointer(start: base.unknown_fields, count: Int(base.n_unknown_fields)) {
            let tag = UInt64(field.tag) << 3 | UInt64(field.wire_type.rawValue)
            bytes += [UInt8](unsafeUninitializedCapacity: 10) { memory, count in
                count = writeVarint(tag, to: UnsafeMutableRawBufferPointer(memory))
            }
            bytes.append(contentsOf: UnsafeBufferPointer(start: field.data, count: field.len))
        }
        return bytes
    }
}
