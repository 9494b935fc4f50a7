package import Lifeline
package import LifelineCore

/// The session store behind a world's databases. Writes take time, may fail, and may be there or not after a kill.
///
/// Each commit happens as a whole or not at all, as in a database. Torn, lost or reordered writes are below that level:
/// `scripts/kills --power-loss` tests them on files.
package final class SimulatedSessionStore {
    private struct Peer {
        var groups: [SessionStoreGroup] = []
        var next: UInt64 = 1
        var date: Int64 = 0
    }

    private struct Pending {
        let due: MonotonicTime
        let work: SessionMachine.StoreWork
        let peer: SessionStoreID?
        let failure: StoreError.Code?
        let done: (Result<[SessionStoreGroup], StoreError>) -> Void
    }

    package let id: SessionStoreID
    private var peers: [SessionStoreID?: Peer] = [:]
    private var processed: [SessionStoreID: [UInt8]] = [:]
    private var marked: [SessionStoreID: [SessionStoreMark]] = [:]
    private var pending: [Pending] = []
    /// A commit that failed while it was synchronized, and is on the disk nevertheless: the next process finds it
    /// there, unless something else was written in its place.
    private var unsynchronized: Pending?
    /// The duration of the next piece of work.
    package var duration: () -> Duration = { .zero }
    /// The failure of a piece of work; nil if it succeeds. `full`: writes find no room. `failed`: the disk fails, and a
    /// commit may be there nevertheless after the process was killed.
    package var failure: (SessionMachine.StoreWork) -> StoreError.Code? = { _ in nil }
    package init(id: SessionStoreID) { self.id = id }

    /// The time at which the next piece of work is done.
    package var nextDeadline: MonotonicTime? { pending.map(\.due).min() }

    /// A handler has written its effect, and marks the message with it.
    ///
    /// - Parameter reply: that of a call, as `SessionMachine.replyBytes` has made it.
    package func mark(_ number: UInt64, of sender: SessionStoreID, reply: [UInt8]? = nil) {
        // The handler may try a transaction again that has happened. The first mark counts.
        if marked[sender]?.contains(where: { $0.number == number }) == true { return }
        marked[sender, default: []].append(SessionStoreMark(number: number, reply: reply))
    }

    package func content(for peer: SessionStoreID?) -> SessionStoreContent {
        let kept = peers[peer] ?? Peer()
        return SessionStoreContent(
            first: kept.groups.first?.first ?? kept.next,
            next: kept.next,
            byteCount: kept.groups.reduce(0) { $0 + $1.bytes.count },
            date: kept.date,
            processed: peer.map { peer in processed.filter { $0.key == peer } } ?? processed,
            marked: peer.map { peer in marked.filter { $0.key == peer } } ?? marked
        )
    }

    /// Begins a piece of work, and says when it is done.
    func begin(
        _ work: SessionMachine.StoreWork,
        for peer: SessionStoreID?,
        now: MonotonicTime,
        done: @escaping (Result<[SessionStoreGroup], StoreError>) -> Void
    ) {
        pending.append(Pending(due: now + duration(), work: work, peer: peer, failure: failure(work), done: done))
    }

    func removeGroups(addedUntil date: Int64, except kept: Set<SessionStoreID>) -> Int {
        var count = 0
        for (name, peer) in peers where !(name.map(kept.contains) ?? false) {
            let old = peer.groups.filter { $0.added <= date }
            count += old.reduce(0) { $0 + $1.count }
            peers[name]?.groups.removeAll { $0.added <= date }
        }
        return count
    }

    /// Does what is due.
    package func advanced(to now: MonotonicTime) {
        while let index = pending.indices.filter({ pending[$0].due <= now }).min(by: {
            pending[$0].due < pending[$1].due
        }) {
            let work = pending.remove(at: index)
            if let code = work.failure {
                if code == .failed, case .commit = work.work { unsynchronized = work }
                work.done(.failure(StoreError(code: code, message: "The simulated disk fails.")))
            } else {
                work.done(.success(perform(work)))
            }
        }
    }

    /// The process is killed, or the power goes: what was being written is on the disk as a whole, or not at all.
    ///
    /// - Parameter isWritten: which of them is there, asked for each.
    package func killed(isWritten: () -> Bool) {
        for work in pending where work.failure == nil && isWritten() { _ = perform(work) }
        pending = []
        if let work = unsynchronized.take(), isWritten() { _ = perform(work) }
    }

    private func perform(_ work: Pending) -> [SessionStoreGroup] {
        switch work.work {
        case .read(let number):
            var byteCount = 0
            return (peers[work.peer]?.groups ?? []).filter { $0.first >= number }.prefix { group in
                defer { byteCount += group.bytes.count }
                return byteCount < Outbox.pageByteCount
            }
        case .commit(let changes):
            unsynchronized = nil
            var peer = peers[work.peer] ?? Peer()
            if let group = changes.added {
                peer.groups.append(group)
                peer.next = group.first + UInt64(group.count)
            }
            peer.date = changes.date ?? peer.date
            peer.groups.removeAll { changes.removed.contains($0.first) }
            peers[work.peer] = peer
            processed.merge(changes.processed) { $1 }
            for (sender, numbers) in changes.unmarked { marked[sender]?.removeAll { numbers.contains($0.number) } }
            return []
        }
    }
}
