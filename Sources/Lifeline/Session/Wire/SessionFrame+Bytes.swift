package import LifelineCore
internal import LifelineMessages
internal import LifelineProtos

extension SessionFrame<SessionPayload> {
    /// Reads a frame, without the length in front: for who drives a machine without the runtime, such as a simulation.
    package init(decoding bytes: UnsafeRawBufferPointer, now: MonotonicTime) throws(SessionViolation) {
        let frame: Lifeline_Session_V1_Frame
        do {
            frame = try Lifeline_Session_V1_Frame(serializedBytes: bytes, partial: false)
        } catch {
            throw .undecodable("\(error)")
        }
        try self.init(frame, byteCount: bytes.count, now: now)
    }
}

extension SessionPayload {
    /// The user's encoded message.
    package var payload: [UInt8] {
        switch self {
        case .outgoing(let payload): payload.payload
        case .request(let request): request.payload
        case .response(let response): response.payload
        case .push(let push): push.payload
        }
    }
}
