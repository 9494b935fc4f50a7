public import Lifeline
internal import LifelineCore
internal import LifelineMessages

/// A database on the disk of a host. Committed transactions survive a kill of the process. A transaction that was being
/// committed is there as a whole, or not at all.
///
/// It replaces the database of a program, and holds any value. It is also a store of sessions for durable messages
/// (`SessionServerConfiguration.store`, `SessionClientConfiguration.store`), and can mark a message as processed in a
/// transaction of the program.
///
/// With the disk faults of `Faults`, a commit takes long or throws `StoreError`. After `full`, nothing has changed.
/// After `failed`, the change may have happened or not, as when the connection to a real database is lost. A correct
/// program looks it up, or makes only changes that are safe to repeat.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
public final class WorldDatabase<Content: Sendable>: WorldDisk, @unchecked Sendable {
    private let host: WorldHost
    private let sessions: SimulatedSessionStore
    /// The content after the last commit.
    public private(set) var content: Content
    /// The number of committed transactions.
    public private(set) var transactionCount = 0
    /// The longest time of a commit. Default: 5 ms.
    public var longestCommit = Duration.milliseconds(5)
    /// Makes the change of the running commit.
    private var commit: (() -> Void)?
    /// Transactions that wait for the running one.
    private var waiters: [CheckedContinuation<Void, Never>] = []
    private var isBusy = false
    /// Work for sessions, in the order of the requests.
    private var storeWork: [Int: CheckedContinuation<Result<[SessionStoreGroup], StoreError>, Never>] = [:]
    private var storeWorkCount = 0
    /// Counts kills. Transactions of a killed process, whose tasks still end, have no effect.
    private var generation = 0

    init(_ content: Content, on host: WorldHost) {
        (self.content, self.host) = (content, host)
        sessions = SimulatedSessionStore(id: .random())
        sessions.duration = { [weak self] in self?.commitTime() ?? .zero }
        sessions.failure = { [weak host] work in
            guard case .commit = work else { return nil }
            return host?.takeDiskFailure()?.error.code
        }
    }

    /// Changes the content, after all earlier transactions. Returns when the change is on the disk.
    ///
    /// - Parameters:
    ///   - message: the message to mark as processed, `SessionContext.durableMessage`. The handler of a call returns
    ///     the reply from the transaction, and then returns it itself.
    ///   - body: changes the content; nothing changes if it throws.
    /// - Throws: what `body` throws; `StoreError` when the disk fails; `SessionError` when the reply cannot be encoded;
    ///   `CancellationError` when the task was cancelled before.
    public func transaction<Value: Sendable>(
        marking message: SessionDurableMessage? = nil,
        _ body: @Sendable (inout Content) throws -> Value
    ) async throws -> Value {
        try Task.checkCancellation()
        let generation = generation
        try await waitForTurn(of: generation)
        defer { if generation == self.generation { endTurn() } }
        var changed = content
        let value = try body(&changed)
        let reply = try (value as? any DelimitedMessage).flatMap { reply in
            try message.flatMap { $0.isCall ? try $0.replyBytes(reply) : nil }
        }
        let result = changed
        commit = { [unowned self] in
            content = result
            transactionCount += 1
            if let message { sessions.mark(message.number, of: message.sender, reply: reply) }
        }
        await wait(commitTime())
        guard generation == self.generation else { throw CancellationError() }
        let (finish, failure) = (commit.take(), host.takeDiskFailure())
        if failure == nil || failure == .afterCommit { finish?() }
        if let failure { throw failure.error }
        message?.wasMarked()
        return value
    }

    private func waitForTurn(of generation: Int) async throws {
        if isBusy { await withCheckedContinuation { waiters.append($0) } }
        guard generation == self.generation else { throw CancellationError() }
        isBusy = true
    }

    private func endTurn() {
        isBusy = !waiters.isEmpty
        if isBusy { waiters.removeFirst().resume() }
    }

    private func commitTime() -> Duration {
        let now = host.simulation.now
        return host.simulation.random.duration(upTo: host.disk.longestCommit(longestCommit, at: now))
    }

    /// Waits, whether or not the task is cancelled, because a disk does not stop.
    private func wait(_ time: Duration) async {
        // Unsafe, because the end of a story drops what it still waits for.
        await withUnsafeContinuation { continuation in
            // In the name of the caller.
            host.world?.schedule(at: host.simulation.now + time, as: host.world?.current) { continuation.resume() }
        }
    }

    /// The process of the host was killed.
    func processWasKilled() {
        generation += 1
        if let commit = commit.take() {
            switch host.takeDiskFailure() {
            case nil: if Bool.random(using: &host.simulation.random) { commit() }
            case .afterCommit: commit()
            case .full, .beforeCommit: break
            }
        }
        sessions.killed { Bool.random(using: &host.simulation.random) }
        // Their tasks belong to the killed process, and end with the story.
        let killed = waiters
        (waiters, isBusy) = ([], false)
        for waiter in killed { waiter.resume() }
        let lost = storeWork.sorted { $0.key < $1.key }
        storeWork = [:]
        for (_, work) in lost {
            work.resume(returning: .failure(StoreError(code: .failed, message: "The process was killed.")))
        }
    }
}

/// A disk that learns of kills of its host's process.
protocol WorldDisk: AnyObject {
    func processWasKilled()
}

extension WorldDatabase: SessionStore {
    public var id: SessionStoreID { sessions.id }

    private func perform(
        _ work: SessionMachine.StoreWork,
        for peer: SessionStoreID?
    ) async throws(StoreError) -> [SessionStoreGroup] {
        let result = await withCheckedContinuation { continuation in
            storeWorkCount += 1
            let number = storeWorkCount
            storeWork[number] = continuation
            sessions.begin(work, for: peer, now: host.simulation.now) { [weak self] result in
                self?.storeWork.removeValue(forKey: number)?.resume(returning: result)
            }
            advanceLater()
        }
        return try result.get()
    }

    private func advanceLater() {
        guard let due = sessions.nextDeadline else { return }
        host.process.schedule(at: due) { [self] in
            sessions.advanced(to: host.simulation.now)
            advanceLater()
        }
    }

    public func content(for peer: SessionStoreID?) async throws(StoreError) -> SessionStoreContent {
        sessions.content(for: peer)
    }

    /// Lifeline always passes the same `byteCount`.
    public func groups(
        for peer: SessionStoreID?,
        from number: UInt64,
        byteCount: Int
    ) async throws(StoreError) -> [SessionStoreGroup] {
        try await perform(.read(from: number), for: peer)
    }

    public func commit(_ changes: SessionStoreChanges, for peer: SessionStoreID?) async throws(StoreError) {
        _ = try await perform(.commit(changes), for: peer)
    }

    public func removeGroups(
        addedUntil date: Int64,
        except peers: Set<SessionStoreID>
    ) async throws(StoreError) -> Int {
        sessions.removeGroups(addedUntil: date, except: peers)
    }
}
