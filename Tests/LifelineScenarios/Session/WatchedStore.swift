internal import Lifeline
internal import LifelineTesting

/// A session store of a story that knows which of the peer's messages are processed, for good.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class WatchedStore: SessionStore, @unchecked Sendable {
    let database: WorldDatabase<[Int]>
    /// The numbers of the peer's processed messages, as committed.
    private(set) var processed = ReceivedNumbers()
    /// Called with each committed change.
    var onCommit: (SessionStoreChanges) -> Void = { _ in }
    var note: (String) -> Void = { _ in }
    /// Called when numbers that were committed are missing.
    var onLoss: () -> Void = {}

    init(_ database: WorldDatabase<[Int]>) { self.database = database }

    var id: SessionStoreID { database.id }

    func content(for peer: SessionStoreID?) async throws(StoreError) -> SessionStoreContent {
        let content = try await database.content(for: peer)
        for bytes in content.processed.values { take(bytes) }
        return content
    }

    func groups(
        for peer: SessionStoreID?,
        from number: UInt64,
        byteCount: Int
    ) async throws(StoreError) -> [SessionStoreGroup] {
        try await database.groups(for: peer, from: number, byteCount: byteCount)
    }

    func commit(_ changes: SessionStoreChanges, for peer: SessionStoreID?) async throws(StoreError) {
        let added = changes.added.map { "\($0.first)..<\($0.first + UInt64($0.count))" }
        note("commits \(added ?? "no messages"), removes \(changes.removed)")
        try await database.commit(changes, for: peer)
        for bytes in changes.processed.values { take(bytes) }
        onCommit(changes)
    }

    func removeGroups(
        addedUntil date: Int64,
        except peers: Set<SessionStoreID>
    ) async throws(StoreError) -> Int {
        try await database.removeGroups(addedUntil: date, except: peers)
    }

    private func take(_ bytes: [UInt8]) {
        guard let numbers = ReceivedNumbers(bytes: bytes) else { return onLoss() }
        // The highest number is far below this in a story.
        for number in 1...2_000 as ClosedRange<UInt64> where processed.contains(number) && !numbers.contains(number) {
            return onLoss()
        }
        processed = numbers
    }
}
