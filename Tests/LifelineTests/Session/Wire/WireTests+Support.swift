import Lifeline
import LifelineCore
import Testing

/// Valid frames of all kinds, without their length prefixes.
let sampleFrames: [[UInt8]] = {
    let metadata = ["name": "Zoë", "": "", "k": String(repeating: "v", count: 200)]
    var push: [UInt8] = []
    FieldWriter.metadataFields(metadata, field: 2, into: &push)
    var request: [UInt8] = []
    FieldWriter.metadataFields(metadata, field: 5, into: &request)
    var response: [UInt8] = []
    let details: [(typeURL: String, value: [UInt8])] = [("a/b", [1, 2, 3]), ("", [])]
    FieldWriter.statusFields(status: 14, message: "Überlastet.", details: details, into: &response)
    response += request
    let payload = [UInt8](repeating: 0xAB, count: 300)
    var frames = [
        frameBytes(.push, method: 7, fields: push, payload: payload),
        frameBytes(.push, method: 300, payload: [1]),
        frameBytes(.request, serial: 1, method: 2, timeout: 1_000, fields: request, payload: payload),
        frameBytes(.request, serial: 1, method: 2, hasParts: true),
        frameBytes(.requestPart, serial: 1_000, payload: payload),
        frameBytes(.requestEnd, serial: .max),
        frameBytes(.responsePart, serial: 5, payload: [0]),
        frameBytes(.response, serial: 6, fields: response),
        frameBytes(.urgentResponse, serial: 6, payload: payload),
        frameBytes(.method, method: 1, payload: [UInt8]("a.B/C".utf8)),
        frameBytes(.blank), frameBytes(.cancel, serial: 9),
        frameBytes(.unplacedPush, method: 1, payload: [1, 2]),
        frameBytes(.unplacedRequestPart, serial: 1, payload: [1, 2]),
        frameBytes(.unplacedResponsePart, serial: 1, payload: [1, 2]),
    ]
    var written: [UInt8] = []
    func add(_ write: (inout [UInt8]) -> Void) {
        written = []
        write(&written)
        frames.append(written)
    }
    add { Acknowledgement(ordinary: 300, urgent: 2, ranges: [302...302, 400...1_000]).write(to: &$0) }
    add { CreditGrant(target: .requestParts(serial: 4), bytes: 1 << 40).write(to: &$0) }
    add { sampleClientOpening.write(to: &$0) }
    add { sampleServerOpening.write(to: &$0) }
    add { SessionGoodbye(.draining, "Back soon.", pause: .seconds(2)).write(to: &$0) }
    add { HeartbeatFrame.write(kind: .ping, number: 77, to: &$0) }
    return frames.map(withoutPrefix)
}()

let sampleTerms = SessionTerms(
    window: SessionWindow(frameCount: 1_024, byteCount: 1 << 20),
    credit: 1 << 18,
    maximumRequestCount: 64,
    maximumFrameLength: 4 << 20
)

let sampleClientOpening = ClientOpening(
    credentials: SessionCredentials(id: SessionID(1, 2), token: SessionToken(3, 4)),
    attempt: 5,
    progress: OpeningProgress(processed: 6, received: 700, urgent: 8),
    terms: sampleTerms,
    name: "Zoë",
    metadata: ["a": "b", "c": ""],
    store: StoreOpening(id: SessionStoreID(SessionID(9, 10)), floor: 300)
)

let sampleServerOpening = ServerOpening(
    version: 1,
    credentials: SessionCredentials(id: SessionID(1, 2), token: SessionToken(3, 4)),
    isResumed: true,
    kept: .seconds(60),
    progress: OpeningProgress(processed: 1, received: 1, urgent: 0),
    terms: sampleTerms,
    metadata: ["motd": "Hello!"],
    store: StoreOpening(id: SessionStoreID(SessionID(11, 12)), floor: 0)
)

/// The bytes of a frame, with its length prefix.
func frameBytes(
    _ kind: FrameKind,
    serial: UInt32 = 0,
    method: UInt32 = 0,
    timeout: UInt32? = nil,
    hasParts: Bool = false,
    fields: [UInt8] = [],
    payload: [UInt8] = []
) -> [UInt8] {
    fields.withUnsafeBytes { fields in
        payload.withUnsafeBytes { payload in
            let frame = OutboundFrame(
                kind,
                serial: serial,
                method: method,
                timeoutMilliseconds: timeout,
                hasParts: hasParts,
                fields: fields,
                payload: payload
            )
            // Two bytes after the frame show that it does not write beyond its length.
            var bytes = [UInt8](repeating: 0xEE, count: frame.byteCount + 2)
            bytes.withUnsafeMutableBytes { frame.write(to: $0.baseAddress!) }
            #expect(bytes.suffix(2) == [0xEE, 0xEE])
            return Array(bytes.dropLast(2))
        }
    }
}

/// The bytes of a frame, with its length prefix.
func wireBytes(_ write: (inout [UInt8]) -> Void) -> [UInt8] {
    var bytes: [UInt8] = []
    write(&bytes)
    return bytes
}

/// A frame without its length prefix, which has to be correct.
func withoutPrefix(_ frame: [UInt8]) -> [UInt8] {
    frame.withUnsafeBytes { bytes in
        guard case .value(let length, let prefix) = Varint.decode(bytes) else { return [] }
        #expect(Int(length) == frame.count - prefix)
        return Array(frame.dropFirst(prefix))
    }
}

/// The body of a frame, which has to be of this kind.
func frameBody(_ kind: FrameKind, _ frame: [UInt8]) throws -> [UInt8] {
    try withoutPrefix(frame).withUnsafeBytes { bytes in
        let frame = try InboundFrame(parsing: bytes)
        #expect(frame.kind == kind)
        return [UInt8](frame.body)
    }
}

/// Runs `check` with a message that borrows the given bytes.
func withMessage<Result>(
    _ kind: FrameKind,
    _ body: [UInt8],
    _ check: (InboundMessage) throws -> Result
) throws -> Result {
    try body.withUnsafeBytes { try check(InboundMessage(kind, $0)) }
}

/// Reads all of a frame, as its kind requires. Returns whether it is valid.
@discardableResult
func readsWhole(_ frame: [UInt8]) -> Bool {
    frame.withUnsafeBytes { bytes in
        do {
            let frame = try InboundFrame(parsing: bytes)
            guard let kind = frame.kind else { return true }
            switch kind {
            case .hello: _ = try ClientOpening(parsing: frame.body)
            case .welcome: _ = try ServerOpening(parsing: frame.body)
            case .goodbye: _ = try SessionGoodbye(parsing: frame.body)
            case .ping, .pong: _ = try HeartbeatFrame.number(parsing: frame.body)
            case .acknowledgement: _ = try Acknowledgement(parsing: frame.body)
            case .credit: _ = try CreditGrant(parsing: frame.body)
            case .method: _ = try MethodName(parsing: frame.body)
            default:
                let message = try InboundMessage(kind, frame.body)
                _ = message.payload.reduce(0, &+)
                #expect(message.metadata.count <= message.metadataCount)
                #expect(message.details.count == message.detailCount)
                _ = (message.textString, message.exceedsEntryLimits)
            }
            return true
        } catch {
            return false
        }
    }
}
