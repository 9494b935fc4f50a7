internal import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// Gathers frames and offers them to the connection together, with one lock for all of them.
@usableFromInline struct OutgoingBatch {
    @usableFromInline let outlet: FrameOutlet
    @usableFromInline let byteLimit: Int
    private let expectedCount: Int
    @usableFromInline var frames: [UInt8] = []
    @usableFromInline var frameCount = 0
    /// The place in line of a frame that was not gathered, because it is long or alone.
    private var pending: PendingSend?
    /// The number of accepted messages.
    private(set) var acceptedCount = 0

    /// - Parameters:
    ///   - byteLimit: the number of bytes to gather before they are offered.
    ///   - expectedCount: the smallest number of messages.
    init(outlet: FrameOutlet, byteLimit: Int, expectedCount: Int) {
        self.outlet = outlet
        self.byteLimit = byteLimit
        self.expectedCount = expectedCount
    }

    /// Whether to `send()` now.
    @usableFromInline var isFull: Bool { frames.count >= byteLimit || pending != nil }

    /// Takes the frames of as many adjacent messages in memory as fit; a long one alone. Called when nothing waits to
    /// be sent. Unlike iterating, it copies no message.
    ///
    /// - Parameter index: the index of the first message; afterwards that of the first message not taken.
    /// - Throws: as `take(_:)` and encoding do. The messages before the failed one are taken.
    @inlinable mutating func takeFrames<Sent: DelimitedMessage>(
        of messages: UnsafeBufferPointer<Sent>,
        from index: inout Int
    ) throws {
        let outlet = outlet
        if index == messages.count - 1 {
            // A single message need not be gathered.
            try Sent.withDelimitedBytes(of: messages.baseAddress.unsafelyUnwrapped + index, partial: false) { frame in
                try outlet.check(frame)
                try offer(frame)
            }
            index += 1
            return
        }
        let first = index
        var gatheredCount = 0
        var failure: (any Error)?
        frames = [UInt8](unsafeUninitializedCapacity: index < messages.count ? byteLimit : 0) { memory, byteCount in
            var rest = UnsafeMutableRawBufferPointer(memory)
            do {
                while index < messages.count {
                    let message = messages.baseAddress.unsafelyUnwrapped + index
                    let frameLength: Int? = try Sent.withDelimitedBytes(of: message, partial: false) { frame in
                        if frame.count > rest.count {
                            // A long message need not be encoded again when no message stands before it.
                            if index == first, try take(frame) { index += 1 }
                            return nil
                        }
                        try outlet.check(frame)
                        rest.copyMemory(from: frame)
                        return frame.count
                    }
                    guard let frameLength else { return }
                    rest = UnsafeMutableRawBufferPointer(rebasing: rest[frameLength...])
                    index += 1
                    byteCount += frameLength
                    gatheredCount += 1
                }
            } catch {
                failure = error
            }
        }
        frameCount = gatheredCount
        if let failure { throw failure }
    }

    /// Takes a frame, if it fits. A long frame is offered at once when nothing was gathered before it, so that it is
    /// copied only once.
    ///
    /// - Returns: whether the frame was taken; if not, offer it again after `send()`.
    /// - Throws: `FramingError` when it is over the limit; `ConnectionError` when the connection takes no more frames.
    @usableFromInline mutating func take(_ frame: UnsafeRawBufferPointer) throws -> Bool {
        try outlet.check(frame)
        if frame.count >= byteLimit {
            guard frameCount == 0 else { return false }
            try offer(frame)
            return true
        }
        guard frame.count <= byteLimit - frames.count else { return false }
        if frames.isEmpty { frames.reserveCapacity(min(expectedCount, byteLimit / frame.count + 1) * frame.count) }
        frames.append(contentsOf: frame)
        frameCount += 1
        return true
    }

    /// Offers a frame at once. Called when nothing was gathered before it.
    @usableFromInline mutating func offer(_ frame: UnsafeRawBufferPointer) throws {
        try Task.checkCancellation()
        pending = try outlet.transport.offer(frame)
        if pending == nil { acceptedCount += 1 }
    }

    /// Sends the taken frames. Returns when they are accepted.
    ///
    /// - Throws: `CancellationError` when the task is cancelled, `ConnectionError` when the connection takes no more
    ///   frames. In both cases none of them was accepted.
    @usableFromInline nonisolated(nonsending) mutating func send() async throws {
        if let pending = pending.take() {
            try await outlet.transport.wait(for: pending)
            acceptedCount += 1
        }
        guard frameCount > 0 else { return }
        try Task.checkCancellation()
        if let pending = try frames.withUnsafeBytes({ try outlet.transport.offer($0, count: frameCount) }) {
            // The queue has the frames.
            frames = []
            try await outlet.transport.wait(for: pending)
        }
        acceptedCount += frameCount
        frameCount = 0
        frames.removeAll(keepingCapacity: true)
    }
}
