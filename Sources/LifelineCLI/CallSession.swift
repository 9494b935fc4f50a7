internal import Lifeline
internal import Logging
internal import SampleServices

extension CallOptions {
    typealias RoomClient = Sample_Room_V1_RoomClient

    /// Runs `body` over a session with the room, tells the user what becomes of the session meanwhile, and closes it
    /// when `body` is done or the user interrupts it, when the server has processed what was pushed.
    ///
    /// - Parameters:
    ///   - name: of the session.
    ///   - closeTimeout: how long the session may take to close.
    ///   - describe: what messages that are in doubt, or were not sent, are, in words.
    ///   - afterLoss: what becomes of those in doubt, to go on with behind these words.
    /// - Returns: The first message that was in doubt when a session was lost or ended, where there was one.
    /// - Throws: what `body` throws, `CommandFailure` when there is no hope of a connection, `SessionError` when the
    ///   server has ended the session, `Interrupted`.
    @discardableResult
    func withRoom(
        name: String = "",
        closeTimeout: Duration = .seconds(10),
        describe: @escaping @Sendable ([SessionMessageInDoubt]) -> String = CallWatcher.count,
        afterLoss: String = "",
        _ body: @escaping @Sendable (RoomClient) async throws -> Void
    ) async throws -> SessionMessageInDoubt? {
        var configuration = try configuration(name: name)
        configuration.closeTimeout = closeTimeout
        let client = SessionClient(
            to: try endpoint,
            configuration: configuration,
            // The watcher tells what there is to tell.
            logger: Logger(label: "lifeline") { _ in SwiftLogNoOpLogHandler() }
        )
        let watcher = CallWatcher(
            client: client,
            timeout: try connectionTimeout,
            isQuiet: quiet,
            describe: describe,
            afterLoss: afterLoss
        )
        let room = RoomClient(client)
        let interruption = await Interruption()
        try await withThrowingTaskGroup(of: Part.self) { group in
            group.addTask {
                try await client.run()
                return .client
            }
            group.addTask {
                try await watcher.watchConnection()
                return .watcher
            }
            group.addTask {
                try await watcher.watchTimeout()
                return .watcher
            }
            group.addTask {
                await watcher.watchSession()
                return .session
            }
            group.addTask {
                let result = await Result.of { try await interruptible(by: interruption) { try await body(room) } }
                watcher.willLeave()
                await client.close()
                try result.get()
                return .body
            }
            var ends: Set<Part> = []
            while !ends.isSuperset(of: [.body, .client, .session]), let part = try await group.next() {
                ends.insert(part)
            }
            group.cancelAll()
        }
        return watcher.undelivered
    }
}

private enum Part { case body, client, session, watcher }

extension Result where Success == Void, Failure == any Error {
    fileprivate static func of(_ body: () async throws -> Void) async -> Self {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}

/// Runs `body`, and cancels it when the user interrupts the command.
///
/// - Throws: what `body` throws; `Interrupted`.
private func interruptible(by interruption: Interruption, _ body: @escaping @Sendable () async throws -> Void)
    async throws
{
    try await withThrowingTaskGroup(of: Int32?.self) { group in
        group.addTask {
            try await body()
            return nil
        }
        group.addTask { await interruption.wait() }
        let signal = try await group.next() ?? nil
        group.cancelAll()
        guard let signal else { return }
        // What it throws comes of the cancelling.
        _ = await group.nextResult()
        throw Interrupted(signal: signal)
    }
}
