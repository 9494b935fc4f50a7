internal import LifelineRuntime
internal import Synchronization

/// Opens with the number of a call whose request has parts, once the call has begun; with nil when it never will.
final class CallStart: Sendable {
    /// The number of the call; 0, which no request has, before it has begun. Separate from the latch, because each part
    /// reads it.
    private let id = Atomic<SessionMachine.RequestID>(0)
    private let latch = Latch<SessionMachine.RequestID?>()

    func open(with id: SessionMachine.RequestID?) {
        guard latch.open(with: id), let id else { return }
        self.id.store(id, ordering: .releasing)
    }

    /// The number of the call; nil before it has begun.
    @inline(__always)
    var begunID: SessionMachine.RequestID? {
        let id = id.load(ordering: .acquiring)
        return id == 0 ? nil : id
    }

    /// Waits for the number, whether or not the task is cancelled.
    nonisolated(nonsending) func wait() async -> SessionMachine.RequestID? { await latch.waitUninterrupted() }
}
