import Lifeline

/// A message of one `bytes` field with number 1, written by hand.
struct TestMessage: Message {
    var payload: [UInt8] = []

    init() {}

    init(_ payload: some Sequence<UInt8>) {
        self.payload = Array(payload)
    }

    static let protoMessageName = "test.TestMessage"

    var debugDescription: String { "payload: \(payload.count) bytes" }

    init(serializedBytes bytes: UnsafeRawBufferPointer, options: DecodingOptions) throws(MessageError) {
        if bytes.isEmpty { return }
        let malformed = MessageError(code: .malformed, message: "This is no test.TestMessage.")
        guard bytes[0] == 0x0A else { throw malformed }
        var length = 0
        var offset = 1
        while true {
            guard offset < min(bytes.count, 5) else { throw malformed }
            length |= Int(bytes[offset] & 0x7F) << (7 * (offset - 1))
            offset += 1
            if bytes[offset - 1] < 0x80 { break }
        }
        guard bytes.count - offset == length else { throw malformed }
        payload = Array(bytes[offset...])
    }

    func withDelimitedBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
        let field = payload.isEmpty ? [] : [0x0A] + TestMessage.prefix(payload.count) + payload
        return try (TestMessage.prefix(field.count) + field).withUnsafeBytes(body)
    }

    /// The delimited form, for raw peers.
    var delimitedBytes: [UInt8] {
        get throws { try withDelimitedBytes { Array($0) } }
    }

    private static func prefix(_ length: Int) -> [UInt8] {
        length < 128 ? [UInt8(length)] : [UInt8(length & 127) | 128] + prefix(length >> 7)
    }
}

extension TestMessage {
    /// A message that carries a number.
    init(number: Int) {
        self.init(String(number).utf8)
    }

    var number: Int? { Int(String(decoding: payload, as: UTF8.self)) }
}
