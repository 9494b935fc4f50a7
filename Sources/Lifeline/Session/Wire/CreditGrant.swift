/// A grant of credit for more messages of a pushed method or a stream.
package struct CreditGrant: Equatable, Sendable {
    /// The method or stream whose credit grows.
    package enum Target: Hashable, Sendable {
        /// Pushes of a method, by the number that the receiver of the grant gave it.
        case method(UInt32)
        /// Parts of a request that the receiver of the grant made.
        case requestParts(serial: UInt32)
        /// Parts of the response to a request that the sender of the grant made.
        case responseParts(serial: UInt32)
    }

    package var target: Target
    /// All bytes granted since the session, or the request, began.
    package var bytes: UInt64

    package init(target: Target, bytes: UInt64) {
        self.target = target
        self.bytes = bytes
    }

    /// Parses the message of a credit frame.
    ///
    /// - Throws: `.undecodable` for malformed protobuf, and for a grant without a target or with several
    package init(parsing body: UnsafeRawBufferPointer) throws(SessionViolation) {
        var (method, request, response, bytes) = (UInt32(0), UInt32(0), UInt32(0), UInt64(0))
        var reader = FieldReader(body)
        while let tag = reader.next() {
            switch tag {
            case .varint(1): method = reader.uint32()
            case .varint(2): request = reader.uint32()
            case .varint(3): response = reader.uint32()
            case .varint(4): bytes = reader.varint()
            default: reader.skip(tag)
            }
        }
        try reader.finish()
        switch (method, request, response) {
        case (1..., 0, 0): target = .method(method)
        case (0, 1..., 0): target = .requestParts(serial: request)
        case (0, 0, 1...): target = .responseParts(serial: response)
        case (0, 0, 0): throw .undecodable("Its credit is for nothing.")
        default: throw .undecodable("Its credit is for several things.")
        }
        self.bytes = bytes
    }

    /// Appends the frame with its length prefix.
    package func write(to bytes: inout [UInt8]) {
        let (field, number): (UInt32, UInt32) =
            switch target {
            case .method(let number): (1, number)
            case .requestParts(let serial): (2, serial)
            case .responseParts(let serial): (3, serial)
            }
        FieldWriter.appendFrame(.credit, to: &bytes) { body in
            FieldWriter.appendField(field, UInt64(number), to: &body)
            FieldWriter.appendField(4, self.bytes, to: &body)
        }
    }
}

/// A method's name, and the number that later frames of its sender use for it. `OutboundFrame` writes it.
package struct MethodName: Equatable, Sendable {
    package static let maximumByteCount = 256

    package var number: UInt32
    /// `package.Service/Method`.
    package var name: String

    package init(number: UInt32, name: String) {
        self.number = number
        self.name = name
    }

    /// Parses the message of a method frame.
    ///
    /// - Throws: `.undecodable` for malformed protobuf, and for a name that is not 1 to 256 bytes of UTF-8
    package init(parsing body: UnsafeRawBufferPointer) throws(SessionViolation) {
        var number: UInt32 = 0
        var name = UnsafeRawBufferPointer(start: nil, count: 0)
        var reader = FieldReader(body)
        while let tag = reader.next() {
            switch tag {
            case .varint(1): number = reader.uint32()
            case .delimited(2): name = try reader.text()
            default: reader.skip(tag)
            }
        }
        try reader.finish()
        guard (1...Self.maximumByteCount).contains(name.count) else {
            throw .undecodable("Its method's name has \(name.count) bytes, not 1 to \(Self.maximumByteCount).")
        }
        self.init(number: number, name: String(decoding: name, as: UTF8.self))
    }
}
