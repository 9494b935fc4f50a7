public import Lifeline
internal import LifelineCore
internal import LifelineMessages

/// A database on the disk of a host: what was committed to it is there after the process was killed. One that was being
/// committed then is there as a whole, or not at all.
///
/// It stands for the database of a program, and holds any value. It is a store of sessions as well
/// (`SessionServerConfiguration.store`, `SessionClientConfiguration.store`), for durable messages, and can mark one as
/// processed in a transaction of the program's own.
///
/// With the disk faults of `Faults`, a commit takes long or throws `StoreError`. After `full`, nothing has changed.
/// After
/// `failed`, the change may have happened or not, as when the connection to a real database is lost. A correct program
/// looks it up, or makes only changes that are safe to repeat.
///
/// Unchecked, as all that belongs to a world: only the world's thread uses it.
public final class WorldDatabase<Content: Sendable>: WorldDisk, @unchecked Sendable {
    private let host: WorldHost
    private let sessions: SimulatedSessionStore
    /// The content as it was committed last.
    public private(set) var content: Content
    /// How many transactions were committed.
    public private(set) var transactionCount = 0
    /// How long a commit takes at most. Default: 5 ms.
    public var longestCommit = Duration.milliseconds(5)
    /// Makes the change that is being committed.
    private var commit: (() -> Void)?
    /// Transactions that wait for their turn.
    private var waiters: [CheckedContinuation<Void, Never>] = []
    private var isBusy = false
    /// Work for sessions, by the order in which it was asked for.
    private var storeWork: [Int: CheckedContinuation<Result<[SessionStoreGroup], StoreError>, Never>] = [:]
    private var storeWorkCount = 0
    /// Counts kills: what a killed process does with it when its tasks are ended counts no more.
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

    /// Changes the content, after the transactions that were begun before. Returns when the change is on the disk.
    ///
    /// - Parameters:
    ///   - message: is marked as processed with the change: `SessionContext.durableMessage`. The handler of a call
    ///     returns the reply from the transaction, and then from itself.
    ///   - body: nothing is changed where it throws.
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

    /// Waits, whether or not the task is cancelled: a disk does not stop.
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
        _ = sessions.killed { Bool.random(using: &host.simulation.random) }
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

/// A disk, which is told that the process of its host was killed.
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
            sessions.begin(work, for: peer, now: host.simulation.now) { [weak self] result, _ in
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

    /// `byteCount` is what Lifeline asks for, always the same.
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
