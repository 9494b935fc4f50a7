public import FoundationEssentials

/// A type that messages are encoded to and decoded from: `[UInt8]` and `Data`.
public protocol SwiftProtobufContiguousBytes {
    init(repeating: UInt8, count: Int)
    init<S: Sequence>(_ sequence: S) where S.Element == UInt8

    var count: Int { get }

    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R
    mutating func withUnsafeMutableBytes<R>(_ body: (UnsafeMutableRawBufferPointer) throws -> R) rethrows -> R
}

extension [UInt8]: SwiftProtobufContiguousBytes {}
extension Data: SwiftProtobufContiguousBytes {}
