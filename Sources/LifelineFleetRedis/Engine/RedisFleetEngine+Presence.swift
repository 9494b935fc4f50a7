public import LifelineFleet
internal import NIOCore

extension RedisFleetEngine {
    /// The most bytes of news with its content. Longer news only reports that there is a change.
    private static let newsLimit = 16 << 10

    public func updatePresence(
        _ change: PresenceChange,
        of group: String,
        keepingFor lifetime: Duration
    ) async throws -> UInt64 {
        let news = change.encodedNews(limit: Self.newsLimit)
        var arguments: [RedisArgument] = [
            .text(change.node), .text(change.base.map { "\($0)" } ?? ""), .text("\(change.version)"),
            .number(max(lifetime.milliseconds, 1)), .text(names.presenceChannel(of: group)),
            .bytes(ByteBuffer(bytes: news)), .number(Int64(change.present.count)),
        ]
        for member in change.present {
            arguments += [.text(member.name), .bytes(ByteBuffer(bytes: member.encodedAttributes))]
        }
        arguments += change.absent.map { .text($0) }
        let keys = names.presenceKeys(of: group, at: change.node)
        let value = try await client.run(PresenceScripts.update, keys: keys, arguments: arguments)
        guard case .integer(let number) = value, let version = UInt64(exactly: number) else {
            throw RedisError.badReply
        }
        return version
    }

    public func watchPresence(of group: String, _ node: String) async throws {
        try await follow(channel: names.presenceChannel(of: group), node) {}
    }

    public func unwatchPresence(of group: String, _ node: String) async {
        await unfollow(channel: names.presenceChannel(of: group), node)
    }

    public func presenceVersions(
        of groups: [String],
        keeping node: String,
        for lifetime: Duration
    ) async throws -> [[String: UInt64]] {
        let arguments: [RedisArgument] = [.text(node), .number(max(lifetime.milliseconds, 1))]
        return try await each(of: groups) { group in
            let keys = self.names.presenceKeys(of: group, at: node)
            let value = try await self.client.run(PresenceScripts.versions, keys: keys, arguments: arguments)
            guard let elements = value.elements, elements.count.isMultiple(of: 2) else { throw RedisError.badReply }
            var versions: [String: UInt64] = [:]
            for index in stride(from: 0, to: elements.count, by: 2) {
                guard let node = elements[index].text, case .integer(let number) = elements[index + 1],
                    let version = UInt64(exactly: number)
                else { throw RedisError.badReply }
                versions[node] = version
            }
            return versions
        }
    }

    public func presence(of group: String, at node: String) async throws -> PresencePage {
        let keys = names.presenceKeys(of: group, at: node)
        let value = try await client.run(PresenceScripts.read, keys: keys, arguments: [.text(node)])
        guard let page = PresencePage(value) else { throw RedisError.badReply }
        return page
    }
}
