internal import Lifeline
internal import Synchronization

/// The storage of the club's tables.
public protocol ClubDatabase: Sendable {
    /// Runs a transaction atomically.
    ///
    /// - Throws: the error of `body`, after which nothing has changed; `CancellationError` if the task was cancelled
    ///   before; an error of the database, after which the change may have happened or not.
    func run<Result: Sendable>(_ body: @Sendable (inout ClubTables) throws -> Result) async throws -> Result
}

extension ClubDatabase {
    /// Runs a transaction for a call. If the database fails, asks the caller to try again, which is safe because each
    /// change of the tables has a key.
    ///
    /// - Throws: `SessionStatus`: that of `body`, or `unavailable` for any other error; `CancellationError`.
    public func transaction<Result: Sendable>(
        _ body: @Sendable (inout ClubTables) throws -> Result
    ) async throws -> Result {
        do {
            return try await run(body)
        } catch  where !(error is SessionStatus || error is CancellationError) {
            throw SessionStatus(.unavailable, "The database has failed. It may have made the change nevertheless.")
        }
    }
}

/// Tables in memory. They are lost when the process ends.
public final class MemoryDatabase: ClubDatabase {
    private let content: Mutex<ClubTables>

    public init(_ tables: ClubTables) { content = Mutex(tables) }

    public var tables: ClubTables { content.withLock { $0 } }

    public func run<Result: Sendable>(
        _ body: @Sendable (inout ClubTables) throws -> Result
    ) async throws -> Result {
        try content.withLock { content in
            var changed = content
            let result = try body(&changed)
            content = changed
            return result
        }
    }
}
