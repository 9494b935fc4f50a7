public import Synchronization

/// What is left of the batch that a loop over single messages has begun. It belongs to the connection, and not to the loop, so
/// that a loop which is left loses nothing.
///
/// Inlinable, so that a message is handed out by code for its very type: what is generic costs some 200 ns for each.
@usableFromInline final class BatchRest<Element: Sendable>: Sendable {
    /// The next one is the last, so that taking it moves no other.
    @usableFromInline let reversed = Mutex<[Element]>([])

    @usableFromInline init() {}

    /// The next message: of the rest, or of the batch that `nextBatch` waits for; nil at the end, where there is none.
    @inlinable nonisolated(nonsending) func next(
        _ nextBatch: nonisolated(nonsending) () async throws -> [Element]?
    ) async throws -> Element? {
        while true {
            try Task.checkCancellation()
            if let next = reversed.withLock({ $0.popLast() }) { return next }
            guard var batch = try await nextBatch() else { return nil }
            batch.reverse()
            // Nothing else is there, unless two tasks iterate.
            reversed.withLock { $0 = $0.isEmpty ? batch : batch + $0 }
        }
    }

    /// All that is left, in order.
    func takeAll() -> [Element] {
        let rest = reversed.withLock { reversed in
            defer { reversed = [] }
            return reversed
        }
        return rest.reversed()
    }
}
