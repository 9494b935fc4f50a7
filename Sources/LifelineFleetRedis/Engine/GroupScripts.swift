internal import LifelineCore
internal import LifelineFleet
internal import NIOCore

/// The scripts for groups in Redis. Each is one step for Redis: a message gets its offset, is kept, and is published to
/// the nodes, or none of that happens.
///
/// The state of a group is a hash: its epoch, its newest offset, the bytes of its log, the longest age of its messages,
/// and the run of the server that wrote it last. The log is a list, whose last element is the newest message. An
/// element begins with its time, in milliseconds of Redis' clock, as 8 bytes.
///
/// A run of the server that finds the state of an earlier run begins an epoch, because the last messages may be
/// missing, unless the server is known to lose none. The scripts contain the name of the run, so a restarted server
/// does not know them, and refuses one that was made for an earlier run.
struct GroupScripts: Sendable {
    /// The error code of a script that was made for another run of the server.
    static let otherRun = "LIFELINERUN"

    let append: RedisScript
    let read: RedisScript
    let newest: RedisScript
    let sessions: SessionScripts

    init(for persistence: RedisPersistence) {
        let run = persistence.run.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
        sessions = SessionScripts(run: run, keepsAll: persistence.kind == .all)
        // Microseconds, so that a later epoch is greater. They are exact in Lua's numbers for 200 years.
        let load = """
            local state, log = KEYS[1], KEYS[2]
            local time = redis.call('TIME')
            local now = time[1] * 1000 + math.floor(time[2] / 1000)
            local found = redis.call('HMGET', state, 'epoch', 'offset', 'bytes', 'age', 'run')
            local epoch, offset, bytes = tonumber(found[1]), tonumber(found[2]), tonumber(found[3])
            local age = tonumber(found[4] or 0)
            if found[5] ~= '\(run)' then
                if not string.find(redis.call('INFO', 'server'), 'run_id:\(run)', 1, true) then
                    return redis.error_reply('\(Self.otherRun) This script was made for another run of the server.')
                end
                if not epoch or \(persistence.kind != .all) then
                    epoch = math.max(time[1] * 1000000 + time[2], (epoch or 0) + 1)
                    offset, bytes, age = 0, 0, 0
                    redis.call('DEL', log)
                end
                redis.call('HSET', state, 'epoch', string.format('%.0f', epoch), 'offset', offset, 'bytes', bytes,
                    'age', age, 'run', '\(run)')
                redis.call('PEXPIRE', state, 300000)
            end

            """
        append = RedisScript(
            load + """
                local payload, channel = ARGV[1], ARGV[2]
                local count_limit, byte_limit = tonumber(ARGV[3]), tonumber(ARGV[4])
                local age_limit, lifetime = tonumber(ARGV[5]), tonumber(ARGV[6])
                local count = redis.call('LLEN', log)
                if count == 0 then bytes = 0 end
                while count > 0 do
                    if count < count_limit and bytes + #payload <= byte_limit then
                        if now - struct.unpack('>I8', redis.call('LINDEX', log, 0)) <= age_limit then break end
                    end
                    bytes = bytes - #redis.call('LPOP', log) + 8
                    count = count - 1
                end
                offset = offset + 1
                redis.call('HSET', state, 'offset', offset, 'bytes', bytes + #payload, 'age', ARGV[5])
                redis.call('PEXPIRE', state, string.format('%.0f', math.max(age_limit, lifetime, 1000)))
                redis.call('RPUSH', log, struct.pack('>I8', now) .. payload)
                redis.call('PEXPIRE', log, string.format('%.0f', math.max(age_limit, 1)))
                if count_limit == 0 then redis.call('DEL', log) end
                redis.call('PUBLISH', channel, struct.pack('>I8I8', epoch, offset) .. payload)
                return {epoch, offset}
                """
        )
        read = RedisScript(
            load + """
                local count = redis.call('LLEN', log)
                local first = offset - count + 1
                local from = math.min(math.max(tonumber(ARGV[1]) + 1 - first, 0), count)
                return {epoch, offset, first + from, now, age, redis.call('LRANGE', log, from, -1)}
                """
        )
        // A group with followers is not forgotten.
        newest = RedisScript(
            load + """
                redis.call('PEXPIRE', state, ARGV[1], 'GT')
                return {epoch, offset}
                """
        )
    }
}

extension RedisValue {
    var elements: [RedisValue]? { if case .array(let elements) = self { elements } else { nil } }

    /// A string, or a status.
    var text: String? {
        switch self {
        case .bytes(let bytes): String(decoding: bytes.readableBytesView, as: UTF8.self)
        case .status(let text): text
        case .error, .integer, .array, .null: nil
        }
    }

    fileprivate var number: UInt64? { if case .integer(let number) = self { UInt64(exactly: number) } else { nil } }
}

extension GroupPosition {
    /// Makes a position from two numbers.
    init?(_ numbers: ArraySlice<RedisValue>) {
        guard numbers.count == 2, let epoch = numbers.first?.number, let offset = numbers.last?.number else {
            return nil
        }
        self.init(epoch: epoch, offset: offset)
    }
}

extension GroupPage {
    /// Makes a page from the reply of the script `read`.
    init?(_ value: RedisValue) {
        guard let elements = value.elements, elements.count == 6, let newest = GroupPosition(elements[0..<2]),
            let first = elements[2].number, let now = elements[3].number, let age = elements[4].number,
            let entries = elements[5].elements, first > 0, first - 1 + UInt64(entries.count) == newest.offset
        else { return nil }
        var messages: [Message] = []
        for (index, entry) in entries.enumerated() {
            guard case .bytes(var bytes) = entry, let time = bytes.readInteger(as: UInt64.self) else { return nil }
            let messageAge = now > time ? now - time : 0
            if messageAge > age { continue }
            messages.append(
                Message(
                    offset: first + UInt64(index),
                    age: .milliseconds(messageAge),
                    bytes: [UInt8](bytes.readableBytesView)
                )
            )
        }
        self.init(newest: newest, messages: messages)
    }
}

extension FleetNews {
    /// Makes news from a payload on a group's channel; nil for malformed ones.
    init?(_ payload: ByteBuffer, of group: String) {
        var payload = payload
        guard let epoch = payload.readInteger(as: UInt64.self), let offset = payload.readInteger(as: UInt64.self) else {
            return nil
        }
        self = .message([UInt8](payload.readableBytesView), at: GroupPosition(epoch: epoch, offset: offset), in: group)
    }
}
