package import LifelineCore
internal import LifelineMessages
internal import LifelineProtos

/// What goes with the opening of a connection that the machine need not know.
package struct SessionOpeningDetails: Sendable {
    /// How the session is to be found at the server; may be empty. A server says nothing here.
    var name = ""
    var metadata: SessionMetadata = [:]
    /// How long the server keeps the session without a connection. A client says nothing here.
    var keptDuration = Duration.zero

    package init(name: String = "", metadata: SessionMetadata = [:], keptDuration: Duration = .zero) {
        (self.name, self.metadata, self.keptDuration) = (name, metadata, keptDuration)
    }
}

extension SessionFrame<SessionPayload> {
    /// The bytes that a frame may have beside the content that it counts for: see docs/session-protocol.md.
    static var maximumOverhead: Int { 256 }
    /// Those that hardly any frame exceeds: no more than that needs to be looked at.
    static var usualOverhead: Int { 32 }
    /// Those that this side writes at most, besides what a payload's `append` does: numbers, tags and lengths.
    static var maximumWrittenOverhead: Int { 64 }

    /// Appends the frame, with its length in front.
    package func append(to buffer: inout [UInt8], _ details: SessionOpeningDetails, now: MonotonicTime) {
        switch self {
        case .message(let place, let acknowledgement, let message):
            message.append(to: &buffer, place, acknowledgement, now: now)
        case .hello(let hello):
            buffer.append(.with { $0.hello = Lifeline_Session_V1_Hello(hello, details) })
        case .welcome(let welcome):
            buffer.append(.with { $0.welcome = Lifeline_Session_V1_Welcome(welcome, details) })
        case .goodbye(let goodbye):
            buffer.append(.with { $0.goodbye = Lifeline_Session_V1_Goodbye(goodbye) })
        }
    }
}

extension SessionMessage<SessionPayload> {
    /// The payload is written once, from where it was encoded to where it is sent from.
    fileprivate func append(
        to buffer: inout [UInt8],
        _ place: SessionPlace?,
        _ acknowledgement: SessionAcknowledgement,
        now: MonotonicTime
    ) {
        // What came from the peer is never sent to it: only its place would be.
        var payload: OutgoingPayload?
        if case .outgoing(let outgoing)? = content { payload = outgoing }
        let kindField: UInt32
        var serialField: UInt32 = 1
        var (serial, timeout): (UInt32, UInt64) = (0, 0)
        switch kind {
        case .request(let number, let deadline) where payload != nil:
            (kindField, serial) = (5, number)
            timeout = deadline.map { $0.timeoutMilliseconds(now: now) } ?? 0
        case .response(let number, _) where payload != nil:
            (kindField, serial) = (6, number)
        case .push(let number) where payload != nil:
            (kindField, serialField, serial) = (7, 2, number)
        case .cancel(let number):
            (kindField, serial) = (10, number)
        case .blank, .request, .response, .push:
            kindField = 0
        }
        let fields = FrameFields(place, acknowledgement)
        let length =
            [UInt8].fieldLength(serialField, UInt64(serial)) + [UInt8].fieldLength(3, timeout)
            + (payload?.encodedLength ?? 0)
        let frameLength = fields.length + (kindField == 0 ? 0 : [UInt8].fieldLength(kindField, byteCount: length))
        buffer.append(addingCapacity: Varint.encodedLength(of: UInt64(frameLength)) + frameLength) { span in
            span.appendVarint(UInt64(frameLength))
            fields.append(to: &span)
            guard kindField != 0 else { return }
            span.appendTag(kindField, .lengthDelimited)
            span.appendVarint(UInt64(length))
            span.appendField(serialField, UInt64(serial))
            span.appendField(3, timeout)
            payload?.append(to: &span)
        }
    }
}

extension [UInt8] {
    /// Appends a frame that carries nothing of the user's but the metadata of an opening.
    fileprivate mutating func append(_ frame: Lifeline_Session_V1_Frame) {
        // It has no required field, and is far from 2 GiB: a machine has no metadata of that size.
        try? frame.withDelimitedBytes { append(contentsOf: $0) }
    }
}

extension Lifeline_Session_V1_Hello {
    fileprivate init(_ hello: SessionHello, _ details: SessionOpeningDetails) {
        self.init()
        minimumVersion = hello.minimumVersion
        maximumVersion = hello.maximumVersion
        if let session = hello.session {
            sessionID = session.id.bytes
            token = session.token.bytes
        }
        attempt = hello.attempt
        processed = hello.progress.processed.ordinary
        urgentProcessed = hello.progress.processed.urgent
        received = hello.progress.received
        window = Lifeline_Session_V1_Window(hello.window)
        maximumRequests = UInt32(clamping: hello.maximumRequestCount)
        maximumFrame = UInt32(clamping: hello.maximumFrameLength)
        name = details.name
        metadata = MapField(details.metadata)
    }
}

extension Lifeline_Session_V1_Welcome {
    fileprivate init(_ welcome: SessionWelcome, _ details: SessionOpeningDetails) {
        self.init()
        version = welcome.version
        sessionID = welcome.session.id.bytes
        token = welcome.session.token.bytes
        resumed = welcome.isResumed
        processed = welcome.progress.processed.ordinary
        urgentProcessed = welcome.progress.processed.urgent
        received = welcome.progress.received
        window = Lifeline_Session_V1_Window(welcome.window)
        maximumRequests = UInt32(clamping: welcome.maximumRequestCount)
        maximumFrame = UInt32(clamping: welcome.maximumFrameLength)
        keptMilliseconds = details.keptDuration.wholeMilliseconds
        metadata = MapField(details.metadata)
    }
}

extension Lifeline_Session_V1_Goodbye {
    fileprivate init(_ goodbye: SessionGoodbye) {
        self.init()
        code = Code(rawValue: Int(goodbye.code?.rawValue ?? 0)) ?? .unspecified
        message = goodbye.message
        pauseMilliseconds = goodbye.pause.wholeMilliseconds
    }
}

extension Lifeline_Session_V1_Window {
    fileprivate init(_ window: SessionWindow) {
        self.init()
        frames = UInt32(clamping: window.frameCount)
        bytes = UInt64(window.byteCount)
    }
}

extension Duration {
    /// In whole milliseconds, rounded up; 0 for what is below.
    fileprivate var wholeMilliseconds: UInt64 {
        let nanoseconds = UInt64(max(saturatedNanoseconds, 0))
        return nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)
    }

    /// From the wire: more than 365 days count as 365 days.
    init(milliseconds: UInt64) {
        self = min(.milliseconds(Int64(clamping: milliseconds)), .longest)
    }
}
