import LifelineCore
import LifelineTestSupport
import NIOCore
import Testing

@testable import LifelineFleetRedis

/// Random stories of a subscription machine and a server, in simulated time.
@Suite struct SubscriptionStoryTests {
    @Test(arguments: 0..<200 as Range<UInt64>)
    func hidesNoGap(seed: UInt64) {
        var story = SubscriptionStory(seed: seed)
        for _ in 0..<400 { story.step() }
        story.finish()
    }
}

private struct SubscriptionStory {
    private struct Call {
        let id: UInt64
        let channels: [String]
        let subscribes: Bool
    }

    private var generator: SeededGenerator
    private var machine: RedisMachine<SubscriptionTable<Int>>
    private var now = MonotonicTime(nanoseconds: 0)
    private var callCount = 0
    private var open: [Int: Call] = [:]
    /// The channels that the last calls requested.
    private var wanted: Set<String> = []
    /// The channels for which a call has returned, without an opposite call since it began.
    private var relied: Set<String> = []
    /// The number of the last opposite call for each channel.
    private var lastUnsubscription: [String: Int] = [:]
    private var isConnecting = false
    /// Whether the handler was told that it may miss messages.
    private var isGap = true
    private var wasConnected = false

    // The server's side of the connection.
    private var subscribed: Set<String> = []
    private var toClient: [RedisValue] = []
    private var publishedCount = 0
    private var lastHeard = 0

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        machine = RedisMachine(
            RedisConfiguration(endpoint: .tcp(host: "h", port: 1)),
            role: SubscriptionTable(),
            seed: seed
        )
    }

    mutating func step() {
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<15: call(subscribes: true)
        case 15..<25: call(subscribes: false)
        case 25..<45: publish()
        case 45..<70: deliver(Int.random(in: 1...4, using: &generator))
        case 70..<73: if let call = open.values.randomElement(using: &generator) { handle(machine.cancel(call.id)) }
        case 73..<77: handle(machine.lost(.connectionFailed(nil), attempt: machine.connection.attempt, now: now))
        case 77..<90: openConnection()
        default: pass(.milliseconds(Int.random(in: 1...3000, using: &generator)))
        }
    }

    mutating func finish() {
        for _ in 0..<200 {
            openConnection()
            deliver(.max)
            pass(.milliseconds(100))
        }
        #expect(open.isEmpty)
        #expect(subscribed == wanted || machine.connection.attempt == 0)
        handle(machine.close())
        #expect(isGap)
    }

    private mutating func call(subscribes: Bool) {
        callCount += 1
        let channels = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
            "\(Int.random(in: 0..<6, using: &generator))"
        }
        let deadline = now + .milliseconds(Int.random(in: 0...5000, using: &generator))
        do throws(RedisError) {
            let id =
                if subscribes {
                    try machine.role.subscribe(channels, callCount, deadline: deadline) as UInt64?
                } else {
                    try machine.role.unsubscribe(channels, callCount, deadline: deadline)
                }
            if subscribes { wanted.formUnion(channels) } else { wanted.subtract(channels) }
            if !subscribes {
                relied.subtract(channels)
                for channel in channels { lastUnsubscription[channel] = callCount }
            }
            if let id { open[callCount] = Call(id: id, channels: channels, subscribes: subscribes) }
        } catch {
            Issue.record("\(error)")
        }
        if Bool.random(using: &generator) { handle(machine.turn(now: now)) }
    }

    private mutating func publish() {
        let channel = "\(Int.random(in: 0..<6, using: &generator))"
        guard subscribed.contains(channel) else {
            #expect(isGap || !relied.contains(channel), "a message is missed, and nobody knows")
            return
        }
        publishedCount += 1
        toClient.append(array("message", channel, "\(publishedCount)"))
    }

    private mutating func openConnection() {
        guard isConnecting, let actions = machine.opened(machine.connection.attempt, now: now) else { return }
        isConnecting = false
        handle(actions)
    }

    private mutating func deliver(_ limit: Int) {
        let replies = Array(toClient.prefix(limit))
        toClient.removeFirst(replies.count)
        if replies.isEmpty { return }
        handle(machine.received(replies, failure: nil, attempt: machine.connection.attempt, now: now))
    }

    private mutating func pass(_ duration: Duration) {
        now = now + duration
        handle(machine.turn(now: now))
    }

    private mutating func handle(_ actions: RedisActions<Int>) {
        if actions.disconnects { (subscribed, toClient, isConnecting) = ([], [], false) }
        if actions.connects != nil { isConnecting = true }
        for command in actions.bytes.readableBytes > 0 ? commands(in: actions.bytes) : [] { serve(command) }
        for event in actions.events { hear(event) }
        for (waiter, result) in actions.results {
            guard let call = open.removeValue(forKey: waiter) else {
                Issue.record("A call ends twice.")
                continue
            }
            guard case .success = result, call.subscribes else { continue }
            relied.formUnion(call.channels.filter { lastUnsubscription[$0] ?? 0 < waiter })
        }
    }

    private mutating func serve(_ command: String) {
        let words = command.split(separator: " ").map(String.init)
        switch words[0] {
        case "SUBSCRIBE":
            subscribed.formUnion(words[1...])
            toClient += words[1...].map { array("subscribe", $0, "") }
        case "UNSUBSCRIBE":
            subscribed.subtract(words[1...])
            toClient += words[1...].map { array("unsubscribe", $0, "") }
        case "PING" where !subscribed.isEmpty: toClient.append(array("pong", ""))
        default: toClient.append(.status("OK"))
        }
    }

    private mutating func hear(_ event: RedisSubscriptionEvent) {
        switch event {
        case .connected(let afterGap):
            #expect(isGap && afterGap == wasConnected)
            (isGap, wasConnected) = (false, true)
        case .disconnected:
            #expect(!isGap)
            isGap = true
        case .message(_, let payload):
            let number = Int(String(buffer: payload)) ?? 0
            #expect(number > lastHeard, "messages come in order")
            lastHeard = number
        }
    }

    private func array(_ parts: String...) -> RedisValue { .array(parts.map { .bytes(ByteBuffer(string: $0)) }) }
}
