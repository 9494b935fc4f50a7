internal import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// Frames that are gathered, and offered to the connection together: one lock for all of them, and not one each.
@usableFromInline struct OutgoingBatch {
    @usableFromInline let outlet: FrameOutlet
    @usableFromInline let byteLimit: Int
    private let expectedCount: Int
    @usableFromInline var frames: [UInt8] = []
    @usableFromInline var frameCount = 0
    /// Where the frame is in line that was not gathered, since it is long or alone.
    private var pending: PendingSend?
    /// How many messages were accepted.
    private(set) var acceptedCount = 0

    /// - Parameters:
    ///   - byteLimit: how many bytes are gathered before they are offered.
    ///   - expectedCount: how many messages there are at least.
    init(outlet: FrameOutlet, byteLimit: Int, expectedCount: Int) {
        self.outlet = outlet
        self.byteLimit = byteLimit
        self.expectedCount = expectedCount
    }

    /// Whether to `send()` now.
    @usableFromInline var isFull: Bool { frames.count >= byteLimit || pending != nil }

    /// Takes the frames of messages that lie side by side in memory, as many as fit; one that is long alone. Called
    /// when nothing waits to be sent. It copies no message, as iterating would.
    ///
    /// - Parameter index: of the first; afterwards that behind those that were taken.
    /// - Throws: as `take(_:)` does, and what encoding throws. Those before that message are taken.
    @inlinable mutating func takeFrames<Sent: DelimitedMessage>(
        of messages: UnsafeBufferPointer<Sent>,
        from index: inout Int
    ) throws {
        let outlet = outlet
        if index == messages.count - 1 {
            // Alone, it need not be gathered.
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
                            // Long ones need not be encoded again where nothing stands before them.
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

    /// Takes a frame, if it fits. One that is long is offered at once, so that it is copied once: when nothing was
    /// gathered before it.
    ///
    /// - Returns: whether it was taken; else it is to be brought again after `send()`.
    /// - Throws: `FramingError` when it is over the limit; `ConnectionError` when the connection takes nothing any
    ///   more.
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

    /// Returns when what was taken is accepted.
    ///
    /// - Throws: `CancellationError` when the task is cancelled, `ConnectionError` when the connection takes nothing
    ///   any more: nothing of it was accepted then.
    @usableFromInline nonisolated(nonsending) mutating func send() async throws {
        if let pending = pending.take() {
            try await outlet.transport.wait(for: pending)
            acceptedCount += 1
        }
        guard frameCount > 0 else { return }
        try Task.checkCancellation()
        if let pending = try frames.withUnsafeBytes({ try outlet.transport.offer($0, count: frameCount) }) {
            // The queue has them.
            frames = []
            try await outlet.transport.wait(for: pending)
        }
        acceptedCount += frameCount
        frameCount = 0
        frames.removeAll(keepingCapacity: true)
    }
}
