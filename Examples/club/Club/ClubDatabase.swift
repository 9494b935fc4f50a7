internal import Synchronization

/// Stands for a database: what it has outlives the server's process.
public final class ClubDatabase: Sendable {
    private let content: Mutex<(tables: ClubTables, transactionCount: Int)>
    private let maximumLatency: Duration

    /// - Parameter maximumLatency: how long the way to the database takes, and the way back, at most. Default: no time.
    public init(_ tables: ClubTables, maximumLatency: Duration = .zero) {
        content = Mutex((tables, 0))
        self.maximumLatency = maximumLatency
    }

    /// Its present content, without the way there.
    public var tables: ClubTables { content.withLock { $0.tables } }

    /// How many transactions have happened.
    public var transactionCount: Int { content.withLock { $0.transactionCount } }

    /// Runs a transaction: all of it happens, at one moment, or nothing of it.
    ///
    /// It goes on when the task is cancelled, since nobody would know then whether it has happened.
    ///
    /// - Throws: what `body` throws, when nothing has happened.
    public func transaction<Result: Sendable>(
        _ body: (inout ClubTables) throws -> Result
    ) async throws -> Result {
        await travel()
        let result = try content.withLock { content in
            var changed = content.tables
            let result = try body(&changed)
            content = (changed, content.transactionCount + 1)
            return result
        }
        await travel()
        return result
    }

    private func travel() async {
        guard maximumLatency > .zero else { return }
        let time = maximumLatency * Double.random(in: 0...1)
        // In a task of its own, which is not cancelled with this one.
        await Task { try? await Task.sleep(for: time) }.value
    }
}
