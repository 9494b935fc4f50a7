import LifelineCore
import LifelineFleet
import LifelineTestSupport
import Testing

/// Random stories of one group at a few nodes, whose engine tells late, twice, out of order or never, answers late,
/// fails, and loses its history; with members that come and go, and cannot always take a message.
///
/// What always holds: a member gets messages in order, none twice, and none is left out without its next message saying
/// so. In the end, when all is well, each has got what was pushed last.
@Suite struct GroupStoryTests {
    @Test(arguments: 0..<8) func storiesHold(_ part: UInt64) throws {
        for seed in part * 100..<(part + 1) * 100 { try GroupStory(seed: seed).run() }
    }
}

private func chance(_ percent: Int, using random: inout SeededGenerator) -> Bool {
    Int.random(in: 0..<100, using: &random) < percent
}

private struct GroupStory {
    struct Violation: Error, CustomStringConvertible { let description: String }

    /// What a member has got.
    private struct Seat {
        var node: Int
        /// The position of the last message, or where it has joined.
        var position: GroupPosition
        /// Whether its next message has to say that others are missing before it.
        var mayMiss = false
        /// It leaves behind this message.
        var through: GroupPosition?
    }

    private struct Node {
        var machine: TestMachine
        var turn: TestMachine.Turn?
        var served: Set<Int> = []
        /// The offset of a reading that the engine has not answered.
        var reading: UInt64?
        /// News on its way.
        var news: [(GroupPosition, [UInt8])] = []
    }

    private let seed: UInt64
    private var random: SeededGenerator
    private var epoch: UInt64 = 1
    private var log: [UInt64] = []
    private let history: GroupHistory
    private let keepsAll: Bool
    private var nodes: [Node] = []
    private var seats: [Int: Seat] = [:]
    private var lastID = 0
    private var now = MonotonicTime(nanoseconds: 0)

    init(seed: UInt64) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        var history = GroupHistory()
        keepsAll = chance(50, using: &random)
        history.maximumCount = keepsAll ? 1_000 : Int.random(in: 1...20, using: &random)
        self.history = history
    }

    private var newest: GroupPosition { GroupPosition(epoch: epoch, offset: UInt64(log.count)) }

    private func page(after offset: UInt64) -> GroupPage {
        let kept = log.suffix(history.maximumCount).filter { $0 > offset }
        return GroupPage(
            newest: newest,
            messages: kept.map { GroupPage.Message(offset: $0, age: .zero, bytes: [UInt8(truncatingIfNeeded: $0)]) }
        )
    }

    func run() throws {
        var story = self
        for _ in 0..<Int.random(in: 1...3, using: &story.random) {
            let limit = Int.random(in: 0...2_000, using: &story.random)
            let machine = TestMachine(story.page(after: 0), keeping: history, slowByteLimit: limit, now: now)
            story.nodes.append(Node(machine: machine))
        }
        for _ in 0..<300 { try story.step() }
        try story.settle()
    }

    private func fail(_ text: String) -> Violation { Violation(description: "seed \(seed): \(text)") }

    private mutating func step() throws {
        now = now + .milliseconds(1)
        let node = Int.random(in: nodes.indices, using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<30: push()
        case 30..<50: deliverNews(to: node)
        case 50..<60: answer(node)
        case 60..<75: try work(node, blocking: true)
        case 75..<85: try endTurn(node, blocking: true)
        case 85..<90: try serve(node)
        case 90..<95: join(node)
        case 95..<97: leave()
        case 97: compare(node)
        default: if chance(10, using: &random) { loseHistory() }
        }
    }

    private mutating func push() {
        log.append(UInt64(log.count) + 1)
        for index in nodes.indices where chance(85, using: &random) {
            let news = (newest, [UInt8(truncatingIfNeeded: newest.offset)])
            let place =
                chance(80, using: &random)
                ? nodes[index].news.count : Int.random(in: 0...nodes[index].news.count, using: &random)
            nodes[index].news.insert(news, at: place)
            if chance(5, using: &random) { nodes[index].news.append(news) }
        }
    }

    private mutating func deliverNews(to node: Int) {
        guard !nodes[node].news.isEmpty else { return }
        let (position, bytes) = nodes[node].news.removeFirst()
        nodes[node].machine.received(bytes, at: position, now: now)
    }

    private mutating func answer(_ node: Int) {
        guard let offset = nodes[node].reading.take() else { return }
        if chance(20, using: &random) {
            nodes[node].machine.readFailed()
        } else {
            nodes[node].machine.read(page(after: offset), now: now)
        }
    }

    private mutating func work(_ node: Int, blocking: Bool) throws {
        guard let work = nodes[node].machine.takeWork(now: now) else { return }
        for id in work.served where !nodes[node].served.insert(id).inserted { throw fail("\(id) is served twice") }
        if let offset = work.readAfter {
            if nodes[node].reading != nil { throw fail("two readings") }
            nodes[node].reading = offset
        }
        if let turn = work.turn {
            if nodes[node].turn != nil { throw fail("two turns") }
            nodes[node].turn = turn
        }
    }

    private mutating func endTurn(_ node: Int, blocking: Bool) throws {
        guard let turn = nodes[node].turn.take() else { return }
        var blocked: [(Int, UInt64)] = []
        for live in turn.members where seats[live.member.id]?.node == node {
            for message in turn.messages where live.wants(message) {
                if blocking, chance(10, using: &random) {
                    blocked.append((live.member.id, message.offset))
                    break
                }
                try take(live.member.id, turn.epoch, message, followsGap: message.followsGap)
            }
        }
        nodes[node].machine.turnEnded(turn, blocked: blocked)
    }

    private mutating func serve(_ node: Int) throws {
        guard let id = nodes[node].served.sorted().randomElement(using: &random) else { return }
        guard let (_, serving) = nodes[node].machine.next(for: id, now: now) else {
            nodes[node].served.remove(id)
            return
        }
        try take(id, serving.epoch, serving.message, followsGap: serving.followsGap)
        nodes[node].machine.served(id, serving, .sent)
    }

    /// A member gets a message.
    private mutating func take(
        _ id: Int,
        _ epoch: UInt64,
        _ message: TestMachine.Message,
        followsGap: Bool
    ) throws {
        guard let seat = seats[id] else { return }
        let position = GroupPosition(epoch: epoch, offset: message.offset)
        if position <= seat.position { throw fail("\(id) gets \(position) after \(seat.position)") }
        if message.bytes != [UInt8(truncatingIfNeeded: message.offset)] {
            throw fail("\(position) has another content")
        }
        let isNext =
            position.epoch == seat.position.epoch && position.offset == seat.position.offset + 1 && !seat.mayMiss
        if !isNext, !followsGap { throw fail("\(id) gets \(position) after \(seat.position), and is not told") }
        if let through = seat.through, position > through { throw fail("\(id) gets \(position) after it has left") }
        seats[id]?.position = position
        seats[id]?.mayMiss = false
    }

    private mutating func join(_ node: Int) {
        lastID += 1
        let start: GroupStart =
            switch Int.random(in: 0..<4, using: &random) {
            case 0: .earliest
            case 1: .after(GroupPosition(epoch: epoch, offset: .random(in: 0...newest.offset, using: &random)))
            case 2: .after(GroupPosition(epoch: epoch - 1, offset: .random(in: 0...30, using: &random)))
            default: .now
            }
        let join = nodes[node].machine.join(TestMember(id: lastID), from: start, now: now)
        seats[lastID] = Seat(node: node, position: join.position, mayMiss: !join.isRecovered)
    }

    private mutating func leave() {
        guard let id = seats.keys.sorted().randomElement(using: &random), let seat = seats[id] else { return }
        if seat.through == nil, chance(50, using: &random) {
            seats[id]?.through = nodes[seat.node].machine.position
            nodes[seat.node].machine.leave(id)
        } else {
            seats[id] = nil
            nodes[seat.node].machine.remove(id)
            nodes[seat.node].served.remove(id)
        }
    }

    private mutating func compare(_ node: Int) { nodes[node].machine.noted(newest) }

    private mutating func loseHistory() {
        epoch += 1
        log = []
    }

    /// All faults end: every member gets the last message.
    private mutating func settle() throws {
        push()
        for node in nodes.indices {
            nodes[node].news = []
            nodes[node].machine.noted(newest)
            for _ in 0..<100 {
                if let offset = nodes[node].reading.take() { nodes[node].machine.read(page(after: offset), now: now) }
                try endTurn(node, blocking: false)
                try work(node, blocking: false)
                for _ in 0..<100 { try serve(node) }
            }
            if nodes[node].machine.takeWork(now: now) != nil { throw fail("there is work without an end") }
        }
        for (id, seat) in seats {
            guard let through = seat.through else {
                if seat.position != newest { throw fail("\(id) ends at \(seat.position), not \(newest)") }
                continue
            }
            // What is lost it is not told of, as nothing comes behind it.
            if keepsAll, seat.position.epoch == epoch, seat.position < through {
                throw fail("\(id) has left before \(through)")
            }
        }
        let count = nodes.reduce(0) { $0 + $1.machine.memberCount }
        let present = seats.values.count { $0.through == nil }
        if count != present { throw fail("\(count) members are left, not \(present)") }
    }
}
