/// How much of a read is received at once, before the tasks that it wakes, and other connections, have their turn.
package struct PartLimit: Sendable, Hashable {
    /// The frames that begin within so many bytes are received, at least one.
    package let byteCount: Int
    /// So many frames are received at most, behind one that earlier reads began; at least one.
    package let frameCount: Int

    package init(byteCount: Int = .max, frameCount: Int = .max) {
        self.byteCount = max(byteCount, 1)
        self.frameCount = max(frameCount, 1)
    }

    /// All of a read.
    package static let unlimited = PartLimit()
}
