import LifelineCore
import NIOCore

@testable import LifelineFleetRedis

typealias CommandMachineEnd = RedisMachineEnd<CommandPipeline<Int>>
typealias SubscriptionMachineEnd = RedisMachineEnd<SubscriptionTable<Int>>

/// A machine in simulated time, whose waiters are numbers, and a record of its decisions.
struct RedisMachineEnd<Role: RedisRole> where Role.Waiter == Int {
    typealias Machine = RedisMachine<Role>

    var machine: Machine
    var now = MonotonicTime(nanoseconds: 0)
    /// The decisions since the last `takeNotes`.
    private var notes: [String] = []
    private var lastWaiter = 0

    private init(_ configure: (inout RedisConfiguration) -> Void, makeRole: (RedisConfiguration) -> Role) {
        var configuration = RedisConfiguration(endpoint: .tcp(host: "h", port: 1))
        configuration.backoff.jitter = 0
        configure(&configuration)
        machine = Machine(configuration, role: makeRole(configuration), seed: 1)
    }

    mutating func takeNotes() -> [String] {
        defer { notes = [] }
        return notes
    }

    /// Records the actions.
    mutating func note(_ actions: RedisActions<Int>) {
        if actions.disconnects { notes.append("disconnect") }
        if let attempt = actions.connects { notes.append("connect \(attempt)") }
        if actions.bytes.readableBytes > 0 {
            notes.append("write " + commands(in: actions.bytes).joined(separator: ", "))
        }
        for event in actions.events { notes.append(describe(event)) }
        for (waiter, result) in actions.results { notes.append("\(waiter): \(describe(result))") }
    }

    /// Makes a request of the role with the next number as waiter. Returns the number for `cancel`.
    fileprivate mutating func ask(
        turns: Bool,
        _ body: (inout Role, _ waiter: Int) throws(RedisError) -> UInt64?
    ) -> UInt64? {
        lastWaiter += 1
        do throws(RedisError) {
            let id = try body(&machine.role, lastWaiter)
            if turns { turn() }
            return id
        } catch {
            notes.append("\(lastWaiter): \(error.code)")
            return nil
        }
    }

    mutating func turn() { note(machine.turn(now: now)) }

    mutating func opened(_ attempt: UInt64? = nil) {
        let actions = machine.opened(attempt ?? machine.connection.attempt, now: now)
        if let actions { note(actions) } else { notes.append("stale") }
    }

    mutating func receive(_ wire: String..., attempt: UInt64? = nil) {
        var parser = RESPParser(limits: RedisReplyLimits())
        var replies: [RedisValue] = []
        var failure: RESPError?
        do throws(RESPError) {
            for line in wire { try parser.parse(ByteBuffer(string: line + "\r\n"), into: &replies) }
        } catch {
            failure = error
        }
        let attempt = attempt ?? machine.connection.attempt
        note(machine.received(replies, failure: failure, attempt: attempt, now: now))
    }

    mutating func lose(attempt: UInt64? = nil) {
        note(machine.lost(.connectionFailed(nil), attempt: attempt ?? machine.connection.attempt, now: now))
    }

    mutating func cancel(_ id: UInt64) { note(machine.cancel(id)) }

    mutating func close() { note(machine.close()) }

    /// Lets time pass, up to the machine's next deadline.
    mutating func advanceToDeadline() {
        guard let deadline = machine.nextDeadline else { return notes.append("no deadline") }
        now = max(now, deadline)
        turn()
    }

    mutating func advance(_ duration: Duration) {
        now = now + duration
        turn()
    }

    /// Answers the greeting: the name and the ping.
    mutating func connect() {
        opened()
        receive("+OK", "+PONG")
    }
}

extension RedisMachineEnd where Role == CommandPipeline<Int> {
    init(_ configure: (inout RedisConfiguration) -> Void = { _ in }) {
        self.init(configure) { CommandPipeline($0) }
    }

    @discardableResult
    mutating func send(_ name: String = "GET", timeout: Duration = .seconds(10), turns: Bool = true) -> UInt64? {
        let deadline = now + timeout
        return ask(turns: turns) { role, waiter throws(RedisError) in
            try role.accept(RedisCommand(name), waiter, deadline: deadline)
        }
    }
}

extension RedisMachineEnd where Role == SubscriptionTable<Int> {
    init(_ configure: (inout RedisConfiguration) -> Void = { _ in }) {
        self.init(configure) { _ in SubscriptionTable() }
    }

    @discardableResult
    mutating func subscribe(_ channels: String..., timeout: Duration = .seconds(10), turns: Bool = true) -> UInt64? {
        let deadline = now + timeout
        return ask(turns: turns) { role, waiter throws(RedisError) in
            try role.subscribe(channels, waiter, deadline: deadline)
        }
    }

    @discardableResult
    mutating func unsubscribe(_ channels: String..., timeout: Duration = .seconds(10), turns: Bool = true) -> UInt64? {
        let deadline = now + timeout
        return ask(turns: turns) { role, waiter throws(RedisError) in
            try role.unsubscribe(channels, waiter, deadline: deadline)
        }
    }

    mutating func confirm(_ kind: String, _ channel: String) {
        receive("*3\r\n\(string(kind))\r\n\(string(channel))\r\n:1")
    }

    mutating func hear(_ payload: String, on channel: String) {
        receive("*3\r\n\(string("message"))\r\n\(string(channel))\r\n\(string(payload))")
    }
}

private func string(_ text: String) -> String { "$\(text.utf8.count)\r\n\(text)" }

/// The names of the written commands.
func commands(in bytes: ByteBuffer) -> [String] {
    var parser = RESPParser(limits: RedisReplyLimits())
    var commands: [RedisValue] = []
    try? parser.parse(bytes, into: &commands)
    return commands.map { command in
        guard case .array(let parts) = command else { return "?" }
        return parts.map { part in
            if case .bytes(let bytes) = part { String(buffer: bytes) } else { "?" }
        }.joined(separator: " ")
    }
}

func describe(_ result: Result<RedisValue, any Error>) -> String {
    switch result {
    case .success(.integer(let number)): "\(number)"
    case .success(.status(let status)): status
    case .success(.null): "null"
    case .success: "value"
    case .failure(let error as RedisError): "\(error.code)" + (error.replyCode.map { " \($0)" } ?? "")
    case .failure: "cancelled"
    }
}

func describe(_ event: RedisSubscriptionEvent) -> String {
    switch event {
    case .connected(let afterGap): afterGap ? "connected after a gap" : "connected"
    case .message(let channel, let payload): "\(channel) says \(String(buffer: payload))"
    case .disconnected(let error): "disconnected: \(error.code)"
    }
}
