internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// Pushes of sessions that were lost and that nobody has taken yet: they count against no window, so that a server that loses
/// its sessions again and again could fill the memory. Where they exceed what one session takes, the next one waits.
final class LeftoverPushes: Sendable {
    private struct State {
        var frameCount = 0
        var byteCount = 0
        /// Opens when there is room; nil while nobody waits for that.
        var room: Latch<Void>?
    }

    private let limit: SessionWindow
    private let state = NIOLockedValueBox(State())

    init(limit: SessionWindow) { self.limit = limit }

    /// Whether somebody waits for room.
    var isHeldUp: Bool { state.withLockedValue { $0.room != nil } }

    /// A session was lost.
    ///
    /// - Parameter sizes: those of its pushes, in bytes.
    func add(_ sizes: [Int]) {
        state.withLockedValue { state in
            state.frameCount += sizes.count
            state.byteCount += sizes.reduce(0, +)
        }
    }

    /// Somebody has taken these.
    func remove(_ sizes: [Int]) {
        if sizes.isEmpty { return }
        let room = state.withLockedValue { state -> Latch<Void>? in
            state.frameCount -= sizes.count
            state.byteCount -= sizes.reduce(0, +)
            return isExceeded(by: state) ? nil : state.room.take()
        }
        room?.open(with: ())
    }

    /// Waits until they are within the limit.
    ///
    /// - Parameter whenHeldUp: called first where they are not.
    /// - Throws: `CancellationError`.
    func waitForRoom(whenHeldUp: () -> Void) async throws {
        let room = state.withLockedValue { state -> Latch<Void>? in
            guard isExceeded(by: state) else { return nil }
            let room = state.room ?? Latch()
            state.room = room
            return room
        }
        guard let room else { return }
        whenHeldUp()
        try await room.wait()
    }

    private func isExceeded(by state: State) -> Bool {
        state.frameCount > limit.frameCount || state.byteCount > limit.byteCount
    }
}
