internal import LifelineCore

/// Writes protobuf fields to memory that has room for them.
package struct FieldWriter {
    /// The length of a padded varint, which can hold any 32 bits.
    package static let paddedLength = 5

    /// The position after the last written byte.
    package private(set) var position: UnsafeMutableRawPointer

    @inline(__always) package init(_ memory: UnsafeMutableRawPointer) {
        position = memory
    }

    @inline(__always) package mutating func byte(_ byte: UInt8) {
        position.storeBytes(of: byte, as: UInt8.self)
        position += 1
    }

    @inline(__always) package mutating func varint(_ value: UInt64) {
        if value < 0x80 {
            byte(UInt8(truncatingIfNeeded: value))
        } else {
            position += Varint.encode(value, to: position)
        }
    }

    /// Writes a varint that takes five bytes for any value.
    package mutating func paddedVarint(_ value: UInt32) {
        for index in 0..<UInt32(Self.paddedLength - 1) { byte(UInt8(truncatingIfNeeded: value &>> (7 * index)) | 0x80) }
        byte(UInt8(truncatingIfNeeded: value &>> 28))
    }

    @inline(__always) package mutating func tag(_ tag: FieldReader.Tag) { varint(UInt64(tag.rawValue)) }

    @inline(__always) package mutating func bytes(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        position.copyMemory(from: source, byteCount: bytes.count)
        position += bytes.count
    }

    /// Returns the length of a varint.
    @inline(__always) package static func length(of value: UInt64) -> Int {
        value < 0x80 ? 1 : Varint.encodedLength(of: value)
    }
}

// MARK: - Into an array

extension FieldWriter {
    package static func appendVarint(_ value: UInt64, to bytes: inout [UInt8]) {
        if value < 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: value))
        } else {
            bytes.append(contentsOf: Varint.encoded(value))
        }
    }

    package static func appendTag(_ tag: FieldReader.Tag, to bytes: inout [UInt8]) {
        appendVarint(UInt64(tag.rawValue), to: &bytes)
    }

    /// Appends a number. Leaves out 0, the default of readers.
    package static func appendField(_ field: UInt32, _ value: UInt64, to bytes: inout [UInt8]) {
        guard value != 0 else { return }
        appendTag(.varint(field), to: &bytes)
        appendVarint(value, to: &bytes)
    }

    /// Appends bytes, even if there are none.
    package static func appendField(_ field: UInt32, _ value: [UInt8], to bytes: inout [UInt8]) {
        appendTag(.delimited(field), to: &bytes)
        appendVarint(UInt64(value.count), to: &bytes)
        bytes.append(contentsOf: value)
    }

    /// Appends a text, even an empty one.
    package static func appendField(_ field: UInt32, _ text: String, to bytes: inout [UInt8]) {
        appendTag(.delimited(field), to: &bytes)
        appendVarint(UInt64(text.utf8.count), to: &bytes)
        bytes.append(contentsOf: text.utf8)
    }

    /// Appends a message whose fields `body` appends.
    package static func appendMessage(_ field: UInt32, to bytes: inout [UInt8], _ body: (inout [UInt8]) -> Void) {
        appendTag(.delimited(field), to: &bytes)
        appendDelimited(to: &bytes, body)
    }

    /// Appends a frame with its length prefix. `body` appends the fields of its kind.
    package static func appendFrame(_ kind: FrameKind, to bytes: inout [UInt8], _ body: (inout [UInt8]) -> Void) {
        appendDelimited(to: &bytes) { appendMessage(kind.rawValue, to: &$0, body) }
    }

    private static func appendDelimited(to bytes: inout [UInt8], _ body: (inout [UInt8]) -> Void) {
        let start = bytes.count
        // The length of nearly all such frames takes one byte.
        bytes.append(0)
        body(&bytes)
        let count = bytes.count - start - 1
        if count < 0x80 {
            bytes[start] = UInt8(truncatingIfNeeded: count)
        } else {
            bytes.replaceSubrange(start...start, with: Varint.encoded(UInt64(count)))
        }
    }
}

// MARK: - Fields of messages

extension FieldWriter {
    /// Appends metadata as the fields of a message, sorted by key.
    package static func metadataFields(
        _ metadata: [String: String],
        field: UInt32,
        into bytes: inout [UInt8]
    ) {
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
            appendMessage(field, to: &bytes) { entry in
                appendField(1, key, to: &entry)
                appendField(2, value, to: &entry)
            }
        }
    }

    /// Appends the fields of a response that describe the request's failure.
    package static func statusFields(
        status: UInt32,
        message: String,
        details: [(typeURL: String, value: [UInt8])],
        into bytes: inout [UInt8]
    ) {
        appendField(2, UInt64(status), to: &bytes)
        if !message.isEmpty { appendField(3, message, to: &bytes) }
        for detail in details {
            appendMessage(4, to: &bytes) { any in
                if !detail.typeURL.isEmpty { appendField(1, detail.typeURL, to: &any) }
                if !detail.value.isEmpty { appendField(2, detail.value, to: &any) }
            }
        }
    }
}
