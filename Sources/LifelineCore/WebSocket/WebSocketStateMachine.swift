/// The rules of an open WebSocket (RFC 6455, sections 5 to 7): the allowed frames and messages, and which side has
/// closed.
///
/// It gets each frame whole, with its payload unmasked, and keeps none of them.
package struct WebSocketStateMachine {
    /// The role of this side.
    package enum Role: Sendable {
        /// This side masks its frames, and the peer does not.
        case client
        /// The peer masks its frames, and this side does not.
        case server
    }

    /// The kind of a message.
    package enum Kind: Sendable, Equatable {
        case text
        case binary
    }

    /// A frame without its payload.
    package struct Header: Sendable, Equatable {
        package var isFinal: Bool
        package var hasReservedBits: Bool
        /// The opcode, 0 to 15.
        package var opcode: UInt8
        package var isMasked: Bool

        package init(isFinal: Bool, hasReservedBits: Bool = false, opcode: UInt8, isMasked: Bool) {
            self.isFinal = isFinal
            self.hasReservedBits = hasReservedBits
            self.opcode = opcode
            self.isMasked = isMasked
        }

        fileprivate var firstByte: UInt8 { (isFinal ? 0x80 : 0) | (hasReservedBits ? 0x40 : 0) | opcode }
    }

    private enum Input {
        /// Can go to: message, ended.
        case idle
        /// A message of several frames is under way. Can go to: idle, ended.
        case message(Kind, byteCount: Int, UTF8Validator)
        /// The peer has closed, or has violated the protocol: later frames are dropped. Can go to: no other state.
        case ended
    }

    private let rules: WebSocketFrameRules
    private let maximumMessageLength: Int?
    private var input = Input.idle
    /// Whether a Close frame was sent, after which nothing more may be sent.
    private var hasSentClose = false
    /// Whether the peer has closed in order, for any reason.
    private(set) package var hasPeerClosed = false

    /// - Parameter maximumMessageLength: the most bytes of a message; nil when frames are bounded elsewhere, and
    ///   messages need no bound.
    package init(rules: WebSocketFrameRules, maximumMessageLength: Int?) {
        self.rules = rules
        self.maximumMessageLength = maximumMessageLength
    }

    /// Whether frames may still be sent.
    package var maySend: Bool { !hasSentClose }

    /// The way in which the peer has closed.
    package enum PeerEnd: Equatable {
        /// In order, after whole messages.
        case regular
        /// In order, but inside a message of the user, whose received part is lost. (For frames, the assembler checks
        /// where they end.)
        case insideMessage
        /// Because of an error on its side.
        case failed(WebSocketClosure)
    }

    /// The handling of a frame.
    package enum FrameAction: Equatable {
        /// The payload continues a message, and ends it when `isLast`.
        case deliver(Kind, isLast: Bool)
        /// Send the payload back in a Pong.
        case answerPing
        /// Nothing.
        case none
        /// The peer has closed: send the Close, if there is one, and end the input.
        case peerClosed(answer: [UInt8]?, PeerEnd)
        /// The peer has violated the protocol: send the Close, if there is one, and give up the connection.
        case violated(answer: [UInt8]?, WebSocketClosure)
    }

    /// Receives a frame.
    package mutating func received(_ header: Header, payload: UnsafeRawBufferPointer) -> FrameAction {
        if case .ended = input { return .none }
        do throws(WebSocketClosure) {
            try rules.check(header.firstByte, header.isMasked ? 0x80 : 0)
            guard header.opcode >= 0x8 else { return try receivedData(header, payload) }
            if payload.count > 125 { throw .protocolError("a control frame is too long") }
            switch header.opcode {
            case 0x8: return try receivedClose(payload)
            case 0x9: return hasSentClose ? .none : .answerPing
            // Only the Pong is left.
            default: return .none
            }
        } catch {
            return violated(error)
        }
    }

    /// Notes that a malformed or too large frame was received.
    package mutating func violated(_ closure: WebSocketClosure) -> FrameAction {
        if case .ended = input { return .none }
        input = .ended
        return .violated(answer: close(closure.code, closure.reason), closure)
    }

    /// Notes that the connection below ended. Returns whether that is an error, because the peer has not closed.
    package mutating func transportEnded() -> Bool {
        if case .ended = input { return false }
        input = .ended
        return true
    }

    /// Ends this side. Returns the payload of the Close to send; nil when one was sent.
    package mutating func endRequested() -> [UInt8]? { close(.normal, "") }

    // MARK: -

    private mutating func receivedData(
        _ header: Header,
        _ payload: UnsafeRawBufferPointer
    ) throws(WebSocketClosure) -> FrameAction {
        var (kind, byteCount, validator): (Kind, Int, UTF8Validator)
        switch (header.opcode, input) {
        case (0x0, .message(let begun, let count, let state)): (kind, byteCount, validator) = (begun, count, state)
        case (0x0, _): throw .protocolError("a frame continues a message, and none has begun")
        case (0x1, .idle): (kind, byteCount, validator) = (.text, 0, UTF8Validator())
        case (0x2, .idle): (kind, byteCount, validator) = (.binary, 0, UTF8Validator())
        // Only text and binary are left.
        default: throw .protocolError("a message begins inside another one")
        }
        if kind == .text {
            guard validator.accepts(payload), !header.isFinal || validator.isAtBoundary else {
                throw WebSocketClosure(.invalidPayload, reason: "a text is not UTF-8")
            }
        }
        // Each payload fits into a ByteBuffer, so the sum is far below the limit of Int.
        byteCount += payload.count
        if let maximumMessageLength, byteCount > maximumMessageLength { throw .tooBig(limit: maximumMessageLength) }
        input = header.isFinal ? .idle : .message(kind, byteCount: byteCount, validator)
        return .deliver(kind, isLast: header.isFinal)
    }

    private mutating func receivedClose(_ payload: UnsafeRawBufferPointer) throws(WebSocketClosure) -> FrameAction {
        guard !payload.isEmpty else { return peerClosed(answer: [], .regular) }
        guard payload.count >= 2 else { throw .protocolError("a close code has one byte") }
        let code = WebSocketCloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.mayBeSent else { throw .protocolError("the close code \(code) must not be sent") }
        guard let reason = String(validating: payload[2...], as: UTF8.self) else {
            throw WebSocketClosure(.invalidPayload, reason: "the reason of a close is not UTF-8")
        }
        let end = code.isRegularEnd ? PeerEnd.regular : .failed(WebSocketClosure(code, reason: reason))
        return peerClosed(answer: Array(payload[..<2]), end)
    }

    private mutating func peerClosed(answer payload: [UInt8], _ end: PeerEnd) -> FrameAction {
        var end = end
        if case .message = input, rules.receivesMessages, end == .regular { end = .insideMessage }
        (input, hasPeerClosed) = (.ended, true)
        return .peerClosed(answer: answer(payload), end)
    }

    private mutating func answer(_ payload: [UInt8]) -> [UInt8]? {
        if hasSentClose { return nil }
        hasSentClose = true
        return payload
    }

    private mutating func close(_ code: WebSocketCloseCode, _ reason: String) -> [UInt8]? {
        answer([UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + reason.utf8.prefix(123))
    }
}

extension WebSocketClosure {
    static func protocolError(_ what: String) -> WebSocketClosure {
        WebSocketClosure(.protocolError, reason: what)
    }

    static var textWhereFramesAreTaken: WebSocketClosure {
        WebSocketClosure(.unsupportedData, reason: "only binary messages are accepted here")
    }

    package static func tooBig(limit: Int) -> WebSocketClosure {
        WebSocketClosure(.messageTooBig, reason: "a message is over the limit of \(limit) bytes")
    }

    /// The closure for a frame that the codec cannot read.
    package static var noFrame: WebSocketClosure { .protocolError("the bytes are not a frame") }
}
