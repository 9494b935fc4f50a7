internal import NIOCore

/// Reads frames like most users of SwiftNIO.
struct VarintFrameDecoder: ByteToMessageDecoder {
    typealias InboundOut = ByteBuffer

    mutating func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        var ahead = buffer
        guard let length = try ahead.readVarint(), let payload = ahead.readSlice(length: length) else {
            return .needMoreData
        }
        buffer = ahead
        context.fireChannelRead(wrapInboundOut(payload))
        return .continue
    }
}

/// Writes frames in the same way.
struct VarintFrameEncoder: MessageToByteEncoder {
    typealias OutboundIn = ByteBuffer

    func encode(data: ByteBuffer, out: inout ByteBuffer) {
        var length = data.readableBytes
        while length >= 0x80 {
            out.writeInteger(UInt8(truncatingIfNeeded: length) | 0x80)
            length >>= 7
        }
        out.writeInteger(UInt8(length))
        out.writeImmutableBuffer(data)
    }
}

struct MalformedLength: Error {}

extension ByteBuffer {
    fileprivate mutating func readVarint() throws -> Int? {
        var value = 0
        for shift in stride(from: 0, through: 28, by: 7) {
            guard let byte: UInt8 = readInteger() else { return nil }
            value |= Int(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw MalformedLength()
    }
}
