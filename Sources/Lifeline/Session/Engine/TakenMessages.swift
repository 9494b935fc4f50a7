internal import Synchronization

/// Messages of an inbox that somebody has taken together, and processes one after the other.
///
/// Its user says how many are processed without a lock. The engine looks when it has something to do anyway, once the
/// tasks that the connection runs have run: so a loop that does not wait costs one lock for all of them, and of one
/// that waits no message counts as unprocessed meanwhile.
final class TakenMessages: Sendable {
    let inbox: SessionInbox
    let run: SessionInbox.Run
    private let processed: Atomic<Int>
    private let watched = Atomic<Bool>(false)
    /// Up to where the machine knows that they are processed. Touched only under the engine's lock.
    @exclusivity(unchecked) private nonisolated(unsafe) var finishedEnd: Int

    init(_ run: SessionInbox.Run, of inbox: SessionInbox) {
        self.inbox = inbox
        self.run = run
        processed = Atomic(run.head)
        finishedEnd = run.head
    }

    /// Those before this one are processed. Returns whether the engine will look by itself.
    @inline(__always)
    func setProcessed(_ end: Int) -> Bool {
        // One of the two sides sees what the other has done: each writes its own first, and then reads the other's.
        processed.store(end, ordering: .sequentiallyConsistent)
        return watched.load(ordering: .sequentiallyConsistent)
    }

    // MARK: Under the engine's lock

    /// Whether the engine will look by itself.
    func setWatched(_ isWatched: Bool) { watched.store(isWatched, ordering: .sequentiallyConsistent) }

    /// Those that were processed since the last call.
    func takeProcessed() -> Range<Int> {
        let end = processed.load(ordering: .sequentiallyConsistent)
        defer { finishedEnd = end }
        return finishedEnd..<end
    }
}
