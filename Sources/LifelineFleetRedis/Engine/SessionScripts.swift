/// The scripts for sessions in Redis: the node of each, and the states of those on their way. Each is one step for
/// Redis.
///
/// A session is a hash: its node, the highest attempt, its proof, the run of the server that wrote it last, and its
/// state until a node has confirmed that it was taken. Attempts are decimal numbers of 20 digits, so that they compare
/// as texts: Lua's numbers are too small for them.
///
/// A run of the server that finds a session of an earlier run forgets it, unless the server is known to lose no data:
/// the session may have been taken since, and would exist twice.
struct SessionScripts: Sendable {
    let claim: RedisScript
    let park: RedisScript
    let take: RedisScript
    let confirm: RedisScript
    let forget: RedisScript

    /// - Parameter keepsAll: whether the server keeps all data over a restart.
    init(run: String, keepsAll: Bool) {
        let load = """
            local key, node, attempt = KEYS[1], ARGV[1], ARGV[2]
            local found = redis.call('HMGET', key, 'node', 'attempt', 'proof', 'state', 'run')
            if found[1] and found[5] ~= '\(run)' then
                if not string.find(redis.call('INFO', 'server'), 'run_id:\(run)', 1, true) then
                    return redis.error_reply('\(GroupScripts.otherRun) This script was made for another run of the server.')
                end
                if \(keepsAll) then
                    redis.call('HSET', key, 'run', '\(run)')
                else
                    redis.call('DEL', key)
                    found = {}
                end
            end

            """
        claim = RedisScript(
            load + """
                if found[1] and (found[1] ~= node or found[4]) then return 0 end
                if found[2] and found[2] > attempt then attempt = found[2] end
                redis.call('HSET', key, 'node', node, 'attempt', attempt, 'proof', ARGV[3], 'run', '\(run)')
                redis.call('PEXPIRE', key, ARGV[4])
                return 1
                """
        )
        park = RedisScript(
            load + """
                if found[1] and (found[1] ~= node or found[2] > attempt) then return 0 end
                redis.call('HSET', key, 'node', node, 'attempt', attempt, 'proof', ARGV[3], 'run', '\(run)',
                    'state', ARGV[5])
                redis.call('PEXPIRE', key, ARGV[4])
                return 1
                """
        )
        take = RedisScript(
            load + """
                if not found[1] or found[3] ~= ARGV[3] then return {'unknown'} end
                local asks_again = found[1] == node and found[2] == attempt
                if attempt <= found[2] and not asks_again then return {'stale'} end
                if not found[4] then return {'owned', found[1]} end
                redis.call('HSET', key, 'node', node, 'attempt', attempt)
                return {'state', found[4]}
                """
        )
        confirm = RedisScript(
            load + """
                if not found[1] then return -1 end
                if found[1] ~= node or found[2] ~= attempt then return 0 end
                redis.call('HDEL', key, 'state')
                redis.call('PEXPIRE', key, ARGV[4])
                return 1
                """
        )
        forget = RedisScript(
            load + """
                if found[1] == node and not found[4] then redis.call('DEL', key) end
                return 1
                """
        )
    }
}
