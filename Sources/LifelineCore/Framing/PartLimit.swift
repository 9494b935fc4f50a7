/// The part of a read that is received at once, before the tasks that it wakes, and other connections, get their turn.
package struct PartLimit: Sendable, Hashable {
    /// Frames that begin within this many bytes are received, at least one.
    package let byteCount: Int
    /// The most frames that are received after one that earlier reads began; at least one.
    package let frameCount: Int

    package init(byteCount: Int = .max, frameCount: Int = .max) {
        self.byteCount = max(byteCount, 1)
        self.frameCount = max(frameCount, 1)
    }

    /// No limit: a whole read at once.
    package static let unlimited = PartLimit()
}
