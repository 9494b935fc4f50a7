public import Foundation
internal import LifelineMessages

/// Messages in a stream, each after its length.
public enum BinaryDelimited {
    /// An error of reading or writing a stream of messages.
    public enum Error: Swift.Error {
        /// The stream failed without an error of its own.
        case unknownStreamError
        /// The stream ends inside a message, or does not accept all of one.
        case truncated
    }

    /// Writes a message after its length.
    ///
    /// - Throws: `BinaryDelimited.Error`, the error of the stream, or `BinaryEncodingError`.
    public static func serialize(
        message: any SwiftProtobufMessage,
        to stream: OutputStream,
        partial: Bool = false
    ) throws {
        do {
            try message.withDelimitedBytes(partial: partial) { frame in
                let start = frame.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)
                let count = stream.write(start, maxLength: frame.count)
                if count < 0 { throw stream.streamError ?? Error.unknownStreamError }
                if count < frame.count { throw Error.truncated }
            }
        } catch let error as MessageError {
            throw error.asBinaryEncodingError
        }
    }

    /// Reads the next message.
    ///
    /// - Throws: `SwiftProtobufError` with the code `binaryStreamDecodingError` at the end of the stream;
    ///   `BinaryDelimited.Error`, the error of the stream, or the error of decoding.
    public static func parse<M: SwiftProtobufMessage>(
        messageType: M.Type,
        from stream: InputStream,
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) throws -> M {
        let bytes = try stream.readFrame()
        return try M(serializedBytes: bytes, extensions: extensions, partial: partial, options: options)
    }

    /// Reads the next message and merges it into `message`, which is unchanged after an error.
    ///
    /// - Throws: as ``parse(messageType:from:extensions:partial:options:)`` does.
    public static func merge<M: SwiftProtobufMessage>(
        into message: inout M,
        from stream: InputStream,
        extensions: (any ExtensionMap)? = nil,
        partial: Bool = false,
        options: BinaryDecodingOptions = BinaryDecodingOptions()
    ) throws {
        let bytes = try stream.readFrame()
        try message.merge(serializedBytes: bytes, extensions: extensions, partial: partial, options: options)
    }
}

extension InputStream {
    /// The most bytes to allocate before they arrive: the length before a message may be wrong.
    private static let pieceLength = 1 << 20

    /// The bytes of the next message.
    fileprivate func readFrame() throws -> [UInt8] {
        let length = try readLength()
        var bytes: [UInt8] = []
        while bytes.count < length {
            let piece = try [UInt8](unsafeUninitializedCapacity: min(length - bytes.count, Self.pieceLength)) {
                memory,
                count in
                count = try read(into: memory)
                if count == 0 { throw BinaryDelimited.Error.truncated }
            }
            bytes += piece
        }
        return bytes
    }

    /// The varint before a message.
    private func readLength() throws -> Int {
        var length: UInt64 = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            var byte: UInt8 = 0
            guard try withUnsafeMutableBytes(of: &byte, { try read(into: $0.assumingMemoryBound(to: UInt8.self)) }) > 0
            else {
                if shift == 0 { throw SwiftProtobufError.BinaryStreamDecoding.noBytesAvailable() }
                throw BinaryDelimited.Error.truncated
            }
            length |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 {
                guard length <= Int32.max else { throw BinaryDecodingError.malformedProtobuf }
                return Int(length)
            }
        }
        throw BinaryDecodingError.malformedProtobuf
    }

    private func read(into memory: UnsafeMutableBufferPointer<UInt8>) throws -> Int {
        let count = read(memory.baseAddress.unsafelyUnwrapped, maxLength: memory.count)
        if count < 0 { throw streamError ?? BinaryDelimited.Error.unknownStreamError }
        return count
    }
}
