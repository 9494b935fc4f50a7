internal import LifelineCore
internal import LifelineTransport

/// Receives the frames of one of a session's connections. Called on its event loop, one call at a time.
protocol SessionFrameSink: Sendable {
    /// Receives frames. Returns whether the connection stays open.
    func receive(_ frames: inout FrameRun.Iterator) -> Bool
    /// Notes that all frames of one read were received.
    func batchEnded()
    /// Notes that no more frames come. The end was in order when `error` is nil.
    func finish(throwing error: ConnectionError?)
}

/// Passes on the frames of one of a session's connections in place, and answers the heartbeat's.
struct SessionReceiver<Sink: SessionFrameSink>: FrameReceiver {
    let inbox: Sink
    private var replies: [UInt8] = []

    init(_ sink: Sink) { inbox = sink }

    var answersPings: Bool { true }

    /// 128 KiB, because the session acknowledges each part; and 1,024 frames, which take the session some hundred
    /// microseconds.
    var partLimit: PartLimit { PartLimit(byteCount: 128 << 10, frameCount: 1_024) }

    mutating func receive(_ run: FrameRun) {
        var frames = run.makeIterator()
        // A goodbye is the last frame.
        guard inbox.receive(&frames) else { return }
        for frame in run { answer(frame) }
    }

    /// Answers a ping. The session reports a frame that cannot be read.
    @inline(__always)
    private mutating func answer(_ frame: UnsafeRawBufferPointer) {
        // Most frames begin with another kind.
        guard let first = frame.first, first >= 0x80 || first & 7 != 2 || UInt32(first >> 3) == FrameKind.ping.rawValue
        else { return }
        guard let frame = try? InboundFrame(parsing: frame), frame.kind == .ping,
            let number = try? HeartbeatFrame.number(parsing: frame.body)
        else { return }
        HeartbeatFrame.write(kind: .pong, number: number, to: &replies)
    }

    mutating func finishBatch() -> ReadDemand {
        inbox.batchEnded()
        return .more
    }

    mutating func takeReplies() -> [UInt8] {
        defer { replies = [] }
        return replies
    }

    func pingFrame(number: UInt64) -> [UInt8]? {
        var frame: [UInt8] = []
        HeartbeatFrame.write(kind: .ping, number: number, to: &frame)
        return frame
    }

    mutating func finish(throwing error: ConnectionError?) {
        inbox.finish(throwing: error)
    }
}
