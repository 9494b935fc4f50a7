internal import LifelineCore

/// The content of a head line, besides the length of the frame's content.
package struct HeadLine: Sendable, Hashable {
    /// The type of the content, which the application defines.
    package var type: String

    /// Makes the head of a frame.
    package init(type: String) {
        self.type = type
    }
}

// Writing, in the shortest form: `{"type":"…","size":0}` and CRLF.
extension HeadLine {
    private static let beforeType: StaticString = #"{"type":""#
    private static let beforeSize: StaticString = #"","size":"#
    private static let afterSize: StaticString = "}\r\n"

    /// Returns the number of bytes that `write` writes.
    func writtenLength(contentLength: Int) -> Int {
        let fixed = Self.beforeType.utf8CodeUnitCount + Self.beforeSize.utf8CodeUnitCount
        let digits = "\(contentLength)".utf8.count + Self.afterSize.utf8CodeUnitCount
        return type.utf8.reduce(fixed + digits) { $0 + Self.escapedLength(of: $1) }
    }

    /// Writes the head line to `destination`, which must have room for it.
    func write(contentLength: Int, into destination: UnsafeMutableRawBufferPointer) {
        var writer = Writer(destination: destination)
        writer.write(Self.beforeType)
        for byte in type.utf8 { writer.writeEscaped(byte) }
        writer.write(Self.beforeSize)
        for byte in "\(contentLength)".utf8 { writer.write(byte) }
        writer.write(Self.afterSize)
    }

    /// Returns the length of an escaped byte. Quotation marks, reverse solidi, and bytes below the space must be
    /// escaped. Text beyond ASCII stays unchanged.
    private static func escapedLength(of byte: UInt8) -> Int {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): 2
        case 0x00...0x1F: 6
        default: 1
        }
    }

    private struct Writer {
        let destination: UnsafeMutableRawBufferPointer
        var count = 0

        mutating func write(_ byte: UInt8) {
            destination[count] = byte
            count += 1
        }

        mutating func write(_ text: StaticString) {
            text.withUTF8Buffer { for byte in $0 { write(byte) } }
        }

        mutating func writeEscaped(_ byte: UInt8) {
            switch HeadLine.escapedLength(of: byte) {
            case 1: return write(byte)
            case 2: write(UInt8(ascii: "\\"))
            default:
                write(#"\u00"#)
                let digit = byte & 0x0F
                write(UInt8(ascii: "0") + byte >> 4)
                return write(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            }
            write(byte)
        }
    }
}
