#if Store
internal import GRDB
internal import Synchronization

/// Combines writes that are requested during another write into one transaction, so that they are synchronized
/// together.
final class GroupedWrites: Sendable {
    private struct Write {
        /// Writes, and keeps the result for `end`.
        let body: @Sendable (Database) throws -> Void
        /// Resumes the waiting task; with an error when nothing was written.
        let end: @Sendable ((any Error)?) -> Void
    }

    /// The result of a write, until it is synchronized.
    private final class Kept<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
    }

    private struct State {
        var waiting: [Write] = []
        var isWriting = false
    }

    private let database: DatabaseQueue
    private let state = Mutex(State())

    init(_ database: DatabaseQueue) { self.database = database }

    /// Writes in a transaction. When it returns, the transaction is synchronized.
    func write<Result: Sendable>(_ body: @escaping @Sendable (Database) throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            let result = Kept<Result>()
            let write = Write { db in
                let value = try body(db)
                result.value.withLock { $0 = value }
            } end: { error in
                if let error { return continuation.resume(throwing: error) }
                guard let value = result.value.withLock({ $0 }) else { preconditionFailure("A write has no result.") }
                continuation.resume(returning: value)
            }
            let begins = state.withLock { state in
                state.waiting.append(write)
                defer { state.isWriting = true }
                return !state.isWriting
            }
            if begins { begin() }
        }
    }

    /// Starts all waiting writes, after other work on the database.
    private func begin() {
        database.asyncWriteWithoutTransaction { db in
            let writes = self.state.withLock { state in
                defer { state.waiting = [] }
                return state.waiting
            }
            self.write(writes, db)
            let isMore = self.state.withLock { state in
                state.isWriting = !state.waiting.isEmpty
                return state.isWriting
            }
            if isMore { self.begin() }
        }
    }

    private func write(_ writes: [Write], _ db: Database) {
        var errors = [(any Error)?](repeating: nil, count: writes.count)
        do {
            try db.inTransaction(.immediate) {
                for (index, write) in writes.enumerated() {
                    do {
                        // A write that throws does not undo the others.
                        try db.inSavepoint {
                            try write.body(db)
                            return .commit
                        }
                    } catch {
                        // Some disk errors have rolled back everything.
                        guard db.isInsideTransaction else { throw error }
                        errors[index] = error
                    }
                }
                return .commit
            }
        } catch {
            errors = errors.map { $0 ?? error }
        }
        for (write, error) in zip(writes, errors) { write.end(error) }
    }
}
#endif
