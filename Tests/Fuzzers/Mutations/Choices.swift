/// The choices of a run, read from the fuzzer's bytes. After their end everything is 0.
struct Choices {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    var isEmpty: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// A number below `bound`, which is 1 to 256.
    mutating func below(_ bound: Int) -> Int { Int(byte()) % bound }

    mutating func word() -> UInt64 {
        (0..<8).reduce(0) { word, _ in word << 8 | UInt64(byte()) }
    }
}
