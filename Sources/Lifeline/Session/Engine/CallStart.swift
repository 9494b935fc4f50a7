internal import LifelineRuntime
internal import Synchronization

/// Opens when a call with parts of its own has begun, with its number; with nil when it never will.
final class CallStart: Sendable {
    /// 0, which no request has: it has not begun. Apart from the latch, as each part looks at it.
    private let id = Atomic<SessionMachine.RequestID>(0)
    private let latch = Latch<SessionMachine.RequestID?>()

    func open(with id: SessionMachine.RequestID?) {
        guard latch.open(with: id), let id else { return }
        self.id.store(id, ordering: .releasing)
    }

    /// The number of the call where it has begun.
    @inline(__always)
    var begunID: SessionMachine.RequestID? {
        let id = id.load(ordering: .acquiring)
        return id == 0 ? nil : id
    }

    /// Waits for it, whether or not the task is cancelled.
    nonisolated(nonsending) func wait() async -> SessionMachine.RequestID? { await latch.waitUninterrupted() }
}
