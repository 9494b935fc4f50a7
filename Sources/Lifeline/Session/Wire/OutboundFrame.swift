/// A frame that carries a message or stands for one. It borrows its content until it is written.
package struct OutboundFrame {
    /// The tags of the kind's fields, each one byte; 0 for a field that the kind does not have.
    private typealias Layout = (serialTag: UInt8, methodTag: UInt8, payloadTag: UInt8)

    package let kind: FrameKind
    private let serial: UInt32
    private let method: UInt32
    private let timeoutMilliseconds: UInt32?
    private let hasParts: Bool
    private let fields: UnsafeRawBufferPointer
    private let payload: UnsafeRawBufferPointer
    private let layout: Layout
    private let bodyCount: Int
    private let frameCount: Int
    /// The length of the whole frame, including its length prefix.
    package let byteCount: Int

    /// Makes a frame of a kind with a place, or of a kind that is sent at most once.
    ///
    /// - Parameters:
    ///   - kind: the kind, which must have a field for each of the other arguments that is given
    ///   - serial: the request's serial
    ///   - method: the method's number
    ///   - timeoutMilliseconds: a request's timeout, written so that `patchTimeout` can change it; nil for none
    ///   - hasParts: whether parts of a request follow
    ///   - fields: more fields of the kind, such as metadata, which are already encoded
    ///   - payload: the payload, or a method's name; left out if it is empty
    package init(
        _ kind: FrameKind,
        serial: UInt32 = 0,
        method: UInt32 = 0,
        timeoutMilliseconds: UInt32? = nil,
        hasParts: Bool = false,
        fields: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        payload: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) {
        let layout = Self.layout(of: kind)
        precondition(kind == .request || (timeoutMilliseconds == nil && !hasParts), "only requests have these fields")
        precondition(serial == 0 || layout.serialTag != 0, "the kind has no serial")
        precondition(method == 0 || layout.methodTag != 0, "the kind has no method")
        precondition(payload.isEmpty || layout.payloadTag != 0, "the kind has no payload")
        self.kind = kind
        self.serial = serial
        self.method = method
        self.timeoutMilliseconds = timeoutMilliseconds
        self.hasParts = hasParts
        self.fields = fields
        self.payload = payload
        self.layout = layout
        var count = fields.count
        // Each tag is one byte.
        if timeoutMilliseconds != nil { count += 1 + FieldWriter.paddedLength }
        if serial != 0 { count += 1 + FieldWriter.length(of: UInt64(serial)) }
        if method != 0 { count += 1 + FieldWriter.length(of: UInt64(method)) }
        if hasParts { count += 2 }
        if !payload.isEmpty { count += 1 + FieldWriter.length(of: UInt64(payload.count)) + payload.count }
        bodyCount = count
        frameCount = (kind.rawValue < 16 ? 1 : 2) + FieldWriter.length(of: UInt64(count)) + count
        byteCount = FieldWriter.length(of: UInt64(frameCount)) + frameCount
    }

    /// Writes the frame to memory that has room for `byteCount` bytes.
    package func write(to memory: UnsafeMutableRawPointer) {
        var writer = FieldWriter(memory)
        writer.varint(UInt64(frameCount))
        writer.tag(.delimited(kind.rawValue))
        writer.varint(UInt64(bodyCount))
        if let timeoutMilliseconds {
            writer.byte(Self.timeoutTag)
            writer.paddedVarint(timeoutMilliseconds)
        }
        if serial != 0 {
            writer.byte(layout.serialTag)
            writer.varint(UInt64(serial))
        }
        if method != 0 {
            writer.byte(layout.methodTag)
            writer.varint(UInt64(method))
        }
        if hasParts {
            writer.byte(Self.hasPartsTag)
            writer.byte(1)
        }
        writer.bytes(fields)
        if !payload.isEmpty {
            writer.byte(layout.payloadTag)
            writer.varint(UInt64(payload.count))
            writer.bytes(payload)
        }
    }

    /// Changes the timeout of a request that `write` wrote with one.
    ///
    /// - Parameter frame: the frame, beginning with its length
    package static func patchTimeout(in frame: UnsafeMutableRawBufferPointer, milliseconds: UInt32) {
        let request = FieldReader.Tag.delimited(FrameKind.request.rawValue).rawValue
        let start = lengthEnd(in: frame, from: 0)
        precondition(start < frame.count && UInt32(frame[start]) == request, "the frame is no request")
        let body = lengthEnd(in: frame, from: start + 1)
        precondition(
            frame.count - body > FieldWriter.paddedLength && frame[body] == timeoutTag
                && (1..<FieldWriter.paddedLength).allSatisfy { frame[body + $0] >= 0x80 },
            "the request was written without a timeout"
        )
        guard let memory = frame.baseAddress else { return }
        var writer = FieldWriter(memory + body + 1)
        writer.paddedVarint(milliseconds)
    }
}

extension OutboundFrame {
    private static let timeoutTag: UInt8 = 1 << 3
    private static let hasPartsTag: UInt8 = 4 << 3

    @inline(__always) private static func layout(of kind: FrameKind) -> Layout {
        switch kind {
        case .push, .unplacedPush: (0, 1 << 3, 3 << 3 | 2)
        case .request: (2 << 3, 3 << 3, 6 << 3 | 2)
        case .requestPart, .responsePart, .unplacedRequestPart, .unplacedResponsePart: (1 << 3, 0, 2 << 3 | 2)
        case .response, .urgentResponse: (1 << 3, 0, 6 << 3 | 2)
        case .method: (0, 1 << 3, 2 << 3 | 2)
        case .requestEnd, .cancel: (1 << 3, 0, 0)
        case .blank: (0, 0, 0)
        default: preconditionFailure("the kind \(kind.rawValue) carries no message")
        }
    }

    /// Returns the offset after a varint.
    private static func lengthEnd(in frame: UnsafeMutableRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index < frame.count, frame[index] >= 0x80 { index += 1 }
        return index + 1
    }
}
