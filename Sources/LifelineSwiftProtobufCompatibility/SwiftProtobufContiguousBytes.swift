public import FoundationEssentials

/// A type that messages are encoded to and decoded from: `[UInt8]` and `Data`.
public protocol SwiftProtobufContiguousBytes {
    /// Makes a value of this many equal bytes.
    init(repeating: UInt8, count: Int)
    /// Makes a value with the bytes of a sequence.
    init<S: Sequence>(_ sequence: S) where S.Element == UInt8

    /// The number of bytes.
    var count: Int { get }

    /// Calls `body` with the bytes.
    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R
    /// Calls `body` with the bytes, which it may change.
    mutating func withUnsafeMutableBytes<R>(_ body: (UnsafeMutableRawBufferPointer) throws -> R) rethrows -> R
}

extension [UInt8]: SwiftProtobufContiguousBytes {}
extension Data: SwiftProtobufContiguousBytes {}
