internal import Synchronization

/// Messages of an inbox that somebody has taken together, and processes one after the other.
///
/// Its reader takes each, and says how many are processed, without a lock. The engine looks when it has something to do
/// anyway, once the tasks that the connection runs have run: so a loop that does not wait costs one lock for all of
/// them, and where one waits, those before the one in its hands are acknowledged. What was not handed out the engine
/// can take back at any time, for another reader.
final class TakenMessages: Sendable {
    let inbox: SessionInbox
    let run: SessionInbox.Run
    /// How many were handed out, or taken back.
    private let handedOut: Atomic<Int>
    private let processed: Atomic<Int>
    private let watched = Atomic<Bool>(false)
    /// Up to where the machine knows that they are processed. Touched only under the engine's lock.
    @exclusivity(unchecked) private nonisolated(unsafe) var finishedEnd: Int

    init(_ run: SessionInbox.Run, of inbox: SessionInbox) {
        self.inbox = inbox
        self.run = run
        handedOut = Atomic(run.head)
        processed = Atomic(run.head)
        finishedEnd = run.head
    }

    /// Hands out the next one; nil where there is none left.
    @inline(__always)
    func handOutNext() -> Int? {
        let index = handedOut.add(1, ordering: .sequentiallyConsistent).oldValue
        return index < run.entries.count ? index : nil
    }

    /// Those before this one are processed. Returns whether the engine will look by itself.
    @inline(__always)
    func setProcessed(_ end: Int) -> Bool {
        // One of the two sides sees what the other has done: each writes its own first, and then reads the other's.
        processed.store(end, ordering: .sequentiallyConsistent)
        return watched.load(ordering: .sequentiallyConsistent)
    }

    // MARK: Under the engine's lock

    /// Takes back those that were not handed out; nil where there are none.
    func takeBack() -> Range<Int>? {
        let count = run.entries.count
        let first = handedOut.exchange(count, ordering: .sequentiallyConsistent)
        return first < count ? first..<count : nil
    }

    /// Whether the engine will look by itself.
    func setWatched(_ isWatched: Bool) { watched.store(isWatched, ordering: .sequentiallyConsistent) }

    /// Those that were processed since the last call.
    func takeProcessed() -> Range<Int> {
        let end = processed.load(ordering: .sequentiallyConsistent)
        defer { finishedEnd = end }
        return finishedEnd..<end
    }
}
