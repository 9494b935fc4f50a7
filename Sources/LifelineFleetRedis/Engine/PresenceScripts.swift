internal import LifelineFleet
internal import NIOCore

/// The scripts for the members of groups in Redis.
///
/// A group has a hash of its nodes: the version of each node's members, and the time until which they are kept, in
/// milliseconds of Redis' clock. The members of a node are another hash. Both expire when no node has compared them for
/// long.
enum PresenceScripts {
    private static let load = """
        local nodes, members, node = KEYS[1], KEYS[2], ARGV[1]
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local function version_of(entry)
            local version, deadline = string.match(entry or '', '^(%d+) (%d+)$')
            if version and tonumber(deadline) > now then return tonumber(version) end
            return 0
        end
        local function keep(version, lifetime)
            redis.call('HSET', nodes, node, string.format('%.0f %.0f', version, now + lifetime))
            if redis.call('PTTL', nodes) < lifetime then redis.call('PEXPIRE', nodes, lifetime) end
            redis.call('PEXPIRE', members, lifetime)
        end

        """

    /// Its arguments: the node, the base or nothing, the version, the lifetime, the channel and its news, the number of
    /// present members, their names and attributes, and the names of absent members.
    static let update = RedisScript(
        load + """
            local base, version, lifetime, count = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[7])
            local known = version_of(redis.call('HGET', nodes, node))
            if base == '' then
                if version <= known then return known end
                redis.call('DEL', members)
            elseif known == 0 or tonumber(base) ~= known then
                return known
            end
            for index = 8, 7 + 2 * count, 2 do redis.call('HSET', members, ARGV[index], ARGV[index + 1]) end
            for index = 8 + 2 * count, #ARGV do redis.call('HDEL', members, ARGV[index]) end
            keep(version, lifetime)
            redis.call('PUBLISH', ARGV[5], ARGV[6])
            return version
            """
    )

    /// Its arguments: the node whose members are kept, and the lifetime.
    static let versions = RedisScript(
        load + """
            local reply, found = {}, redis.call('HGETALL', nodes)
            for index = 1, #found, 2 do
                local version = version_of(found[index + 1])
                if version == 0 then
                    redis.call('HDEL', nodes, found[index])
                else
                    if found[index] == node then keep(version, tonumber(ARGV[2])) end
                    reply[#reply + 1] = found[index]
                    reply[#reply + 1] = version
                end
            end
            return reply
            """
    )

    /// Its argument: the node.
    static let read = RedisScript(
        load + """
            local version = version_of(redis.call('HGET', nodes, node))
            if version == 0 then return {0, {}} end
            return {version, redis.call('HGETALL', members)}
            """
    )
}

extension PresencePage {
    /// Makes a page from the reply of the script `read`.
    init?(_ value: RedisValue) {
        guard let elements = value.elements, elements.count == 2, case .integer(let number) = elements[0],
            let version = UInt64(exactly: number), let entries = elements[1].elements, entries.count.isMultiple(of: 2)
        else { return nil }
        var members: [GroupMember] = []
        for index in stride(from: 0, to: entries.count, by: 2) {
            guard let name = entries[index].text, case .bytes(let attributes) = entries[index + 1],
                let member = GroupMember(name, encodedAttributes: [UInt8](attributes.readableBytesView))
            else { return nil }
            members.append(member)
        }
        self.init(version: version, members: members)
    }
}
