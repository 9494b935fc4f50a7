internal import Lifeline
public import LifelineFleet
internal import LifelineRuntime
public import Logging
internal import NIOConcurrencyHelpers
internal import NIOCore

/// An engine whose groups are in Redis, so that servers on several machines serve the same ones.
///
///     let engine = try RedisFleetEngine(RedisConfiguration(url: "redis://cache.example.org"))
///     let fleet = Fleet(engine: engine)
///
/// Run the fleet together with its server, in a `ServiceGroup` for example: `Fleet.run()` compares its groups with
/// Redis.
///
/// **What Redis keeps.** After a restart that lost data, or after it was emptied, Redis begins a new epoch of each
/// group: members are told that they may have missed messages, even if they have not. Histories only continue with
/// `appendonly yes` and `appendfsync always`. The engine reads these settings of Redis, and logs them. It needs Redis
/// 7.
///
/// **Keys and channels** are named `lifeline:{GROUP}:state`, `…:log` and `…:news`, with the prefix of the engine. The
/// members of a group are in `lifeline:{GROUP}:nodes` and `…:members:NODE`, and their changes are published on
/// `…:presence`. The keys of one group are in one slot of a cluster. A group without pushes is forgotten after
/// `groupLifetime`. The lease of a node is the key `lifeline:{NODE}:lease`, and its channel `…:told`; a session is the
/// key `lifeline:{SESSION}:session`.
public final class RedisFleetEngine: FleetEngine {
    private struct State {
        var nodes: [String: FleetNode] = [:]
        /// The names of the nodes that follow a group, by the group's channel.
        var followers: [ExactName: Set<String>] = [:]
        /// The scripts for the last run of the server; nil before the first.
        var scripts: GroupScripts?
    }

    let names: GroupKeys
    private let groupLifetime: Duration
    private let logger: Logger
    let client: RedisClient
    private let state: NIOLockedValueBox<State>

    /// Makes an engine, which connects when it is first used.
    ///
    /// - Parameters:
    ///   - prefix: the prefix of all keys and channels. Fleets with different prefixes share nothing.
    ///   - groupLifetime: the time after its last message at which a group is forgotten. Default: a day.
    ///   - logger: receives the events of connections, and the persistence settings of Redis.
    /// - Throws: `RedisError` `invalidConfiguration`.
    public init(
        _ configuration: RedisConfiguration,
        prefix: String = "lifeline",
        groupLifetime: Duration = .seconds(86_400),
        logger: Logger = Logger(label: "lifeline.redis")
    ) throws(RedisError) {
        let state = NIOLockedValueBox(State())
        let names = GroupKeys(prefix: prefix)
        (self.names, self.groupLifetime, self.logger, self.state) = (names, groupLifetime, logger, state)
        client = try RedisClient(configuration, logger: logger) { event in
            switch event {
            case .message(let channel, let payload):
                if let node = names.node(ofChannel: channel) {
                    let listener = state.withLockedValue { $0.nodes[node] }
                    listener?.receive(.told([UInt8](payload.readableBytesView)))
                    return
                }
                let news =
                    if let group = names.group(ofChannel: channel) {
                        FleetNews(payload, of: group)
                    } else if let group = names.group(ofPresenceChannel: channel) {
                        PresenceChange(encodedNews: [UInt8](payload.readableBytesView))
                            .map { FleetNews.presence($0, in: group) }
                    } else {
                        FleetNews?.none
                    }
                guard let news else { return }
                for node in Self.followers(of: channel, state) { node.receive(news) }
            case .connected(afterGap: true):
                for node in state.withLockedValue({ $0.nodes.values }) { node.receive(.interrupted) }
            case .connected, .disconnected:
                break
            }
        }
    }

    private static func followers(of channel: String, _ state: NIOLockedValueBox<State>) -> [FleetNode] {
        state.withLockedValue { state in
            (state.followers[ExactName(channel)] ?? []).compactMap { state.nodes[$0] }
        }
    }

    public func attach(_ node: FleetNode) { state.withLockedValue { $0.nodes[node.name] = node } }

    public func detach(_ node: String) {
        let channels = state.withLockedValue { state in
            state.nodes[node] = nil
            return state.followers.filter { $0.value.contains(node) }.map(\.key)
        }
        for channel in channels { unfollow(channel, node) }
    }

    /// Logs how Redis keeps its data, and listens to other nodes until the task is cancelled.
    public func run(_ node: String) async throws {
        let channel = names.channel(ofNode: node)
        do {
            try await client.subscribe(to: [channel])
        } catch {
            // While Redis is unreachable, the client goes on trying.
            logger.warning("The node cannot listen to others yet", metadata: ["error": "\(error)"])
        }
        defer { Task { [client] in try? await client.unsubscribe(from: [channel]) } }
        do {
            let persistence = try await RedisPersistence(of: client)
            logger.info("What Redis has after a restart", metadata: ["data": "\(persistence)"])
        } catch {
            logger.warning("It is not known what Redis has after a restart", metadata: ["error": "\(error)"])
        }
        try await Latch<Void>().wait()
    }

    // MARK: Messages

    public func append(
        _ message: [UInt8],
        to group: String,
        keeping history: GroupHistory
    ) async throws -> GroupPosition {
        let value = try await run({ $0.append }, names.keys(of: group)) {
            [
                .bytes(ByteBuffer(bytes: message)), .text(self.names.channel(of: group)),
                .number(Int64(max(history.maximumCount, 0))), .number(Int64(max(history.maximumByteCount, 0))),
                .number(history.maximumAge.milliseconds), .number(self.groupLifetime.milliseconds),
            ]
        }
        guard let position = value.elements.flatMap({ GroupPosition($0[...]) }) else { throw RedisError.badReply }
        return position
    }

    public func follow(_ group: String, _ node: String) async throws -> GroupPage {
        try await follow(channel: names.channel(of: group), node) { try await self.read(group, after: 0) }
    }

    /// Delivers the messages of a channel to a node, and calls `body` once they come.
    func follow<Result>(channel: String, _ node: String, _ body: () async throws -> Result) async throws -> Result {
        let channel = ExactName(channel)
        state.withLockedValue { _ = $0.followers[channel, default: []].insert(node) }
        do {
            try await client.subscribe(to: [channel.name])
            return try await body()
        } catch {
            unfollow(channel, node)
            throw error
        }
    }

    public func unfollow(_ group: String, _ node: String) async {
        await unfollow(channel: names.channel(of: group), node)
    }

    func unfollow(channel: String, _ node: String) async { await unfollow(ExactName(channel), node).value }

    /// In another task, because the one that has followed may be cancelled.
    @discardableResult
    private func unfollow(_ channel: ExactName, _ node: String) -> Task<Void, Never> {
        let isLast = state.withLockedValue { state in
            state.followers[channel]?.remove(node)
            guard state.followers[channel]?.isEmpty == true else { return false }
            state.followers[channel] = nil
            return true
        }
        return Task {
            guard isLast else { return }
            // The subscription ends in any case.
            try? await client.unsubscribe(from: [channel.name])
            // Another node may follow it since, and has missed messages for a moment.
            guard state.withLockedValue({ $0.followers[channel] != nil }) else { return }
            try? await client.subscribe(to: [channel.name])
            for node in Self.followers(of: channel.name, state) { node.receive(.interrupted) }
        }
    }

    public func read(_ group: String, after offset: UInt64) async throws -> GroupPage {
        // The greatest number that is exact in Lua.
        let offset = Int64(min(offset, 1 << 53))
        let value = try await run({ $0.read }, names.keys(of: group)) { [.number(offset)] }
        guard let page = GroupPage(value) else { throw RedisError.badReply }
        return page
    }

    public func newest(of groups: [String]) async throws -> [GroupPosition] {
        try await each(of: groups) { try await self.newest(of: $0) }
    }

    /// Makes a separate request for each item, because they are in different slots of a cluster. Only a few at once,
    /// because other calls wait.
    func each<Result: Sendable>(
        of names: [String],
        _ ask: @escaping @Sendable (String) async throws -> Result
    ) async throws -> [Result] {
        var results: [Result] = []
        for start in stride(from: 0, to: names.count, by: 256) {
            let chunk = names[start..<min(start + 256, names.count)]
            results += try await withThrowingTaskGroup { tasks in
                for (index, name) in chunk.enumerated() { tasks.addTask { (index, try await ask(name)) } }
                let answers: [Int: Result] = try await tasks.reduce(into: [:]) { $0[$1.0] = $1.1 }
                return chunk.indices.compactMap { answers[$0 - start] }
            }
        }
        return results
    }

    private func newest(of group: String) async throws -> GroupPosition {
        let lifetime = groupLifetime.milliseconds
        let value = try await run({ $0.newest }, names.keys(of: group)) { [.number(lifetime)] }
        guard let position = value.elements.flatMap({ GroupPosition($0[...]) }) else { throw RedisError.badReply }
        return position
    }

    // MARK: Scripts

    /// Runs a script for the present run of the server.
    ///
    /// A restarted server does not know the scripts, or refuses them because they were made for another run. Then they
    /// are made again.
    func run(
        _ script: (GroupScripts) -> RedisScript,
        _ keys: [RedisArgument],
        _ arguments: () -> [RedisArgument]
    ) async throws -> RedisValue {
        let rest = [.number(Int64(keys.count))] + keys + arguments()
        // Only one of the scripts, because copying all is costly.
        if let known = state.withLockedValue({ $0.scripts.map(script) }) {
            do {
                return try await client.send(RedisCommand("EVALSHA", [.text(known.digest)] + rest))
            } catch let error as RedisError where ["NOSCRIPT", GroupScripts.otherRun].contains(error.replyCode) {}
        }
        let scripts = GroupScripts(for: try await RedisPersistence(of: client))
        let value = try await client.send(RedisCommand("EVAL", [.text(script(scripts).source)] + rest))
        state.withLockedValue { $0.scripts = scripts }
        return value
    }
}

extension Duration {
    /// The duration in milliseconds, from 0 to a thousand years.
    var milliseconds: Int64 {
        Int64(min(max((self / .milliseconds(1)).rounded(.up), 0), 31_536_000_000_000))
    }
}

extension RedisError {
    static let badReply = RedisError(
        code: .protocolViolation,
        message: "A script of the engine has an unexpected reply. Does another program use its keys?"
    )
}
