internal import Synchronization

/// Messages of an inbox that a reader has taken together, and processes one after the other.
///
/// The reader takes each message, and notes how many are processed, without a lock. The engine reads that number when
/// it has other work, after the connection's tasks have run. So a loop that does not wait costs one lock for all
/// messages. When a loop waits, the messages before its present one are acknowledged. The engine can take back messages
/// that were not handed out at any time, for another reader.
final class TakenMessages: Sendable {
    let inbox: SessionInbox
    let run: SessionInbox.Run
    /// The number of messages that were handed out or taken back.
    private let handedOut: Atomic<Int>
    private let processed: Atomic<Int>
    private let watched = Atomic<Bool>(false)
    /// The end of the messages that the machine has as processed. Accessed only under the engine's lock.
    @exclusivity(unchecked) private nonisolated(unsafe) var finishedEnd: Int

    init(_ run: SessionInbox.Run, of inbox: SessionInbox) {
        self.inbox = inbox
        self.run = run
        handedOut = Atomic(run.head)
        processed = Atomic(run.head)
        finishedEnd = run.head
    }

    /// Hands out the next message; nil if none is left.
    @inline(__always)
    func handOutNext() -> Int? {
        let index = handedOut.add(1, ordering: .sequentiallyConsistent).oldValue
        return index < run.entries.count ? index : nil
    }

    /// Notes that the messages before this one are processed. Returns whether the engine will notice by itself.
    @inline(__always)
    func setProcessed(_ end: Int) -> Bool {
        // Each side writes its own value first, and then reads the other's, so at least one of them sees the other's
        // write.
        processed.store(end, ordering: .sequentiallyConsistent)
        return watched.load(ordering: .sequentiallyConsistent)
    }

    // MARK: Under the engine's lock

    /// Takes back the messages that were not handed out; nil if there are none.
    func takeBack() -> Range<Int>? {
        let count = run.entries.count
        let first = handedOut.exchange(count, ordering: .sequentiallyConsistent)
        return first < count ? first..<count : nil
    }

    /// Sets whether the engine will notice processed messages by itself.
    func setWatched(_ isWatched: Bool) { watched.store(isWatched, ordering: .sequentiallyConsistent) }

    /// Returns the messages that were processed since the last call.
    func takeProcessed() -> Range<Int> {
        let end = processed.load(ordering: .sequentiallyConsistent)
        defer { finishedEnd = end }
        return finishedEnd..<end
    }
}
