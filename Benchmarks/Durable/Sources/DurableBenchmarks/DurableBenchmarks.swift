internal import Foundation
internal import GRDB
internal import Lifeline
internal import LifelineMessages
internal import LifelineStore
internal import Logging
internal import Synchronization

/// The text of `Benchmarks/durable --help`.
@main
enum DurableBenchmarks {
    private static let payload = RawMessage(bytes: [UInt8](repeating: 7, count: 300))
    private static let inFlight = 1_024

    static func main() async throws {
        let isQuick = CommandLine.arguments.contains("--quick")
        let folder = FileManager.default.temporaryDirectory.appending(path: "durable-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let count = isQuick ? 5_000 : 200_000
        let groupSize = try await measureRate(count, folder)
        try measurePlainRate(count, groupSize, folder)
        try await measureLatency(isQuick ? 20 : 500, folder)
        try await measureOpening(isQuick ? 10_000 : 1_000_000, folder)
    }

    // MARK: Many

    /// Returns the number of messages in the client's commits.
    private static func measureRate(_ count: Int, _ folder: URL) async throws -> Int {
        let store = CountingStore(
            try SQLiteSessionStore(path: folder.appending(path: "client").path, for: .client(of: endpoint(folder)))
        )
        var seconds = 0.0
        try await withSession(store, folder) { client in
            try await client.push("d.D/Take", payload, delivery: .durable, until: .processed)
            let started = ContinuousClock.now
            try await withThrowingDiscardingTaskGroup { group in
                for sender in 0..<inFlight {
                    group.addTask(executorPreference: client.executor) {
                        for _ in stride(from: sender, to: count, by: inFlight) {
                            try await client.push("d.D/Take", payload, delivery: .durable, until: .processed)
                        }
                    }
                }
            }
            seconds = (ContinuousClock.now - started) / .seconds(1)
        }
        let groups = store.addedCount.load(ordering: .relaxed)
        print(
            "durable pushes, \(inFlight) in flight, processed: \(Int(Double(count) / seconds)) a second,",
            terminator: " "
        )
        print("in \(groups) groups of the client's")
        return max(1, count / max(groups, 1))
    }

    private static func measurePlainRate(_ count: Int, _ groupSize: Int, _ folder: URL) throws {
        let database = try plainDatabase(folder, "plain")
        let data = Data(payload.bytes)
        let started = ContinuousClock.now
        var left = count
        while left > 0 {
            let size = min(groupSize, left)
            left -= size
            try database.write { db in
                let statement = try db.cachedStatement(sql: "INSERT INTO plain (bytes) VALUES (?)")
                for _ in 0..<size { try statement.execute(arguments: [data]) }
            }
        }
        let seconds = (ContinuousClock.now - started) / .seconds(1)
        print("rows of SQLite, \(groupSize) in a transaction: \(Int(Double(count) / seconds)) a second")
    }

    // MARK: One

    private static func measureLatency(_ count: Int, _ folder: URL) async throws {
        let database = try plainDatabase(folder, "alone")
        let data = Data(payload.bytes)
        let store = CountingStore(
            try SQLiteSessionStore(path: folder.appending(path: "single").path, for: .client(of: endpoint(folder)))
        )
        var (accepted, processed, plain, calls): ([Duration], [Duration], [Duration], [Duration]) = ([], [], [], [])
        try await withSession(store, folder) { client in
            // Alternates, because disks change from minute to minute.
            for _ in 0..<count {
                accepted.append(try await time { try await client.push("d.D/Take", payload, delivery: .durable) })
                processed.append(
                    try await time {
                        try await client.push("d.D/Take", payload, delivery: .durable, until: .processed)
                    }
                )
                calls.append(
                    try await time {
                        _ = try await client.call("d.D/Echo", payload, returning: RawMessage.self)
                    }
                )
                plain.append(
                    try await time {
                        try await database.write { db in
                            try db.execute(sql: "INSERT INTO plain (bytes) VALUES (?)", arguments: [data])
                        }
                    }
                )
            }
        }
        print("one alone, median: stored \(median(accepted)) µs, a row of SQLite \(median(plain)) µs;")
        print("    processed, and stored there, too, \(median(processed)) µs, a call \(median(calls)) µs")
    }

    private static func time(_ body: () async throws -> Void) async throws -> Duration {
        let started = ContinuousClock.now
        try await body()
        return .now - started
    }

    private static func median(_ times: [Duration]) -> Int { Int(times.sorted()[times.count / 2] / .microseconds(1)) }

    // MARK: A million that are kept

    private static func measureOpening(_ count: Int, _ folder: URL) async throws {
        let path = folder.appending(path: "kept").path
        do {
            // There is no server: all of them are kept.
            var configuration = SessionClientConfiguration()
            configuration.store = try SQLiteSessionStore(path: path, for: .client(of: endpoint(folder)))
            configuration.closeTimeout = .zero
            try await withSessionClient(to: endpoint(folder), configuration: configuration, logger: .quiet) { client in
                try await withThrowingDiscardingTaskGroup { group in
                    for sender in 0..<inFlight {
                        group.addTask {
                            for _ in stride(from: sender, to: count, by: inFlight) {
                                try await client.push("d.D/Take", payload, delivery: .durable)
                            }
                        }
                    }
                }
            }
        }
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        let before = memory()
        let progress = Progress()
        let (done, continuation) = AsyncStream.makeStream(of: Void.self)
        let store = try SQLiteSessionStore(path: path, for: .client(of: endpoint(folder)))
        try await withServer(folder) {
            if progress.took() == count { continuation.finish() }
        } body: {
            var configuration = SessionClientConfiguration()
            configuration.store = store
            try await withSessionClient(to: endpoint(folder), configuration: configuration, logger: .quiet) { _ in
                for await _ in done {}
            }
        }
        let seconds = (ContinuousClock.now - progress.started) / .seconds(1)
        let first = (progress.first ?? .zero) / .milliseconds(1)
        print("a store with \(count) kept messages, \(size >> 20) MiB: the first is processed after", terminator: " ")
        print("\(Int(first)) ms, all after \(Int(seconds)) s;", terminator: " ")
        print("memory of client and server \(progress.mostMemory >> 10) MiB, \(before >> 10) MiB before")
    }

    /// The progress of the server.
    private final class Progress: Sendable {
        private struct State {
            var count = 0
            var first: Duration?
            var mostMemory = 0
        }

        let started = ContinuousClock.now
        private let state = Mutex(State())

        var first: Duration? { state.withLock { $0.first } }
        var mostMemory: Int { state.withLock { $0.mostMemory } }

        /// Returns the number of taken messages.
        func took() -> Int {
            state.withLock { state in
                state.count += 1
                if state.count == 1 { state.first = .now - started }
                if state.count % 10_000 == 0 { state.mostMemory = max(state.mostMemory, memory()) }
                return state.count
            }
        }
    }

    /// In KiB.
    private static func memory() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return line?.split(separator: " ").compactMap { Int($0) }.first ?? 0
    }

    // MARK: The session

    private static func endpoint(_ folder: URL) -> Endpoint {
        .unix(path: folder.appending(path: "socket").path)
    }

    private struct Work: SessionService {
        let methods: [SessionMethod]
    }

    private static func withServer(
        _ folder: URL,
        _ take: @escaping @Sendable () -> Void,
        body: () async throws -> Void
    ) async throws {
        var configuration = SessionServerConfiguration()
        configuration.store = try SQLiteSessionStore(
            path: folder.appending(path: "server-\(UUID().uuidString)").path,
            for: .server
        )
        let methods: [SessionMethod] = [
            .push("d.D/Take") { (_: RawMessage, _) in take() },
            .unary("d.D/Echo") { (message: RawMessage, _) in message },
        ]
        try await withSessionServer(
            listeningOn: endpoint(folder),
            configuration: configuration,
            services: [Work(methods: methods)],
            logger: .quiet
        ) { _ in try await body() }
    }

    private static func withSession(
        _ store: CountingStore,
        _ folder: URL,
        _ body: (SessionClient) async throws -> Void
    ) async throws {
        try await withServer(folder) {
        } body: {
            var configuration = SessionClientConfiguration()
            configuration.store = store
            try await withSessionClient(
                to: endpoint(folder),
                configuration: configuration,
                logger: .quiet,
                body
            )
        }
    }

    /// A database that synchronizes each commit, like the stores.
    private static func plainDatabase(_ folder: URL, _ name: String) throws -> DatabaseQueue {
        let database = try DatabaseQueue(path: folder.appending(path: name).path)
        try database.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE plain (bytes BLOB)")
        }
        return database
    }
}

/// Forwards to a store, and counts the groups that are added.
final class CountingStore: SessionStore {
    private let store: SQLiteSessionStore
    let addedCount = Atomic(0)

    var id: SessionStoreID { store.id }

    init(_ store: SQLiteSessionStore) { self.store = store }

    func content(for peer: SessionStoreID?) async throws(StoreError) -> SessionStoreContent {
        try await store.content(for: peer)
    }

    func groups(
        for peer: SessionStoreID?,
        from number: UInt64,
        byteCount: Int
    ) async throws(StoreError) -> [SessionStoreGroup] {
        try await store.groups(for: peer, from: number, byteCount: byteCount)
    }

    func removeGroups(addedUntil date: Int64, except peers: Set<SessionStoreID>) async throws(StoreError) -> Int {
        try await store.removeGroups(addedUntil: date, except: peers)
    }

    func commit(_ changes: SessionStoreChanges, for peer: SessionStoreID?) async throws(StoreError) {
        if changes.added != nil { addedCount.add(1, ordering: .relaxed) }
        try await store.commit(changes, for: peer)
    }
}

extension Logger {
    /// Logs only errors.
    static var quiet: Logger {
        var logger = Logger(label: "durable")
        logger.logLevel = .error
        return logger
    }
}
