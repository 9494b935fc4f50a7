import LifelineCore
import LifelineTestSupport
import NIOCore
import Testing

@testable import LifelineFleetRedis

/// Random stories of a command machine and a server, in simulated time.
@Suite struct CommandStoryTests {
    @Test(arguments: 0..<300 as Range<UInt64>)
    func endsEachCommandOnceWithItsOwnReply(seed: UInt64) {
        var story = CommandStory(seed: seed)
        for _ in 0..<400 { story.step() }
        story.finish()
    }
}

/// Each command is an ECHO of its number, which is also its waiter.
private struct CommandStory {
    private var generator: SeededGenerator
    private var machine: RedisMachine<CommandPipeline<Int>>
    private var now = MonotonicTime(nanoseconds: 0)
    private var sentCount = 0
    /// The calls that have not ended, and their numbers for `cancel`.
    private var open: [Int: UInt64] = [:]
    /// The commands that the server has received over any connection, in order.
    private var received: [Int] = []
    /// The commands of this connection that the server has not answered.
    private var unanswered: [String] = []
    private var isConnecting = false

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        var configuration = RedisConfiguration(endpoint: .tcp(host: "h", port: 1))
        configuration.maximumCommandsInFlight = 5
        machine = RedisMachine(configuration, role: CommandPipeline(configuration), seed: seed)
    }

    mutating func step() {
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<40: send()
        case 40..<70: answer(upTo: 4)
        case 70..<75: if let call = open.keys.sorted().randomElement(using: &generator) { cancel(call) }
        case 75..<79: handle(machine.lost(.connectionFailed(nil), attempt: machine.connection.attempt, now: now))
        case 79..<90: openConnection()
        default: pass(.milliseconds(Int.random(in: 1...3000, using: &generator)))
        }
    }

    /// Lets the server answer everything, so that no call is left.
    mutating func finish() {
        for _ in 0..<1000 where !open.isEmpty {
            openConnection()
            answer(upTo: .max)
            pass(.milliseconds(100))
        }
        #expect(open.isEmpty)
        handle(machine.close())
        #expect(received == received.sorted(), "commands are written in the order of the calls, and once")
        #expect(Set(received).count == received.count)
    }

    private mutating func send() {
        sentCount += 1
        let deadline = now + .milliseconds(Int.random(in: 0...5000, using: &generator))
        let command = RedisCommand("ECHO", .number(Int64(sentCount)))
        do throws(RedisError) {
            open[sentCount] = try machine.role.accept(command, sentCount, deadline: deadline)
        } catch {
            Issue.record("\(error)")
        }
        if Bool.random(using: &generator) { handle(machine.turn(now: now)) }
    }

    private mutating func cancel(_ call: Int) {
        guard let id = open[call] else { return }
        handle(machine.cancel(id))
        #expect(open[call] == nil)
    }

    private mutating func openConnection() {
        guard isConnecting else { return }
        isConnecting = false
        guard let actions = machine.opened(machine.connection.attempt, now: now) else { return }
        handle(actions)
    }

    private mutating func answer(upTo limit: Int) {
        let commands = unanswered.prefix(limit)
        unanswered.removeFirst(commands.count)
        let replies = commands.map { command -> RedisValue in
            let number = command.split(separator: " ").last.flatMap { Int64($0) }
            return number.map { .integer($0) } ?? .status("OK")
        }
        if replies.isEmpty { return }
        handle(machine.received(replies, failure: nil, attempt: machine.connection.attempt, now: now))
    }

    private mutating func pass(_ duration: Duration) {
        now = now + duration
        handle(machine.turn(now: now))
    }

    private mutating func handle(_ actions: RedisActions<Int>) {
        if actions.disconnects { (unanswered, isConnecting) = ([], false) }
        if actions.connects != nil { isConnecting = true }
        let written = actions.bytes.readableBytes > 0 ? commands(in: actions.bytes) : []
        unanswered += written
        received += written.compactMap { $0.hasPrefix("ECHO ") ? Int($0.dropFirst(5)) : nil }
        for (call, result) in actions.results {
            #expect(open.removeValue(forKey: call) != nil, "a call ends once")
            switch result {
            case .success(let reply):
                #expect(reply == .integer(Int64(call)), "the reply is its own")
            case .failure(let error as RedisError):
                let wasWritten = received.contains(call)
                #expect(wasWritten == (error.code == .outcomeUnknown), "\(error)")
                #expect([.outcomeUnknown, .timedOut].contains(error.code))
            case .failure: break
            }
        }
        if let deadline = machine.nextDeadline { #expect(deadline > now - .seconds(6), "no deadline is left behind") }
    }
}
