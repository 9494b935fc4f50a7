import Lifeline
import LifelineWellKnownTypes

/// A generated message of one `bytes` field.
typealias TestMessage = Google_Protobuf_BytesValue

extension TestMessage {
    init(_ payload: some Sequence<UInt8>) {
        self.init(Array(payload))
    }

    /// A message that carries a number.
    init(number: Int) {
        self.init(String(number).utf8)
    }

    var payload: [UInt8] { value }

    var number: Int? { Int(String(decoding: value, as: UTF8.self)) }

    /// The delimited form, for raw peers.
    var delimitedBytes: [UInt8] {
        get throws { try withDelimitedBytes { Array($0) } }
    }
}
