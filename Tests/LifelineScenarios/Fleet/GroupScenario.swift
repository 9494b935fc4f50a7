import LifelineCore
import LifelineFleet
import LifelineTesting

/// A random story of one group at a few nodes. The engine sends news late, twice, out of order or never, answers late,
/// fails, and loses its history. Members come and go, and cannot always take a message.
///
/// The guarantees: A member gets messages in order and none twice, and its next message tells it of missing ones. After
/// all faults have ended, each member has got the last message.
package struct GroupScenario {
    /// The counts of stories.
    package struct Totals: Sendable {
        package var messages = 0
        package var members = 0
        package var deliveries = 0
        package var gaps = 0
        package var lostHistories = 0
        package var moves = 0

        package init() {}

        package static func += (sum: inout Totals, part: Totals) {
            sum.messages += part.messages
            sum.members += part.members
            sum.deliveries += part.deliveries
            sum.gaps += part.gaps
            sum.lostHistories += part.lostHistories
            sum.moves += part.moves
        }
    }

    package struct Result: Sendable {
        package var totals = Totals()
        /// The first violation, if any.
        package var failure: String?
        /// The events; empty without tracing.
        package var trace: [String] = []
    }

    package static func failureMessage(_ seed: UInt64, _ what: String) -> String {
        "group scenario \(seed) failed: \(what); replay: scripts/soak --group-scenario \(seed)"
    }

    private let seed: UInt64
    private let isTracing: Bool

    package init(seed: UInt64, isTracing: Bool = false) { (self.seed, self.isTracing) = (seed, isTracing) }

    package func run() -> Result {
        let story = GroupStory(seed: seed, isTracing: isTracing)
        do throws(Violation) { try story.run() } catch { story.result.failure = error.what }
        return story.result
    }

    fileprivate struct Violation: Error { let what: String }

    fileprivate struct Member: Identifiable, Sendable { let id: Int }

    fileprivate typealias Machine = GroupMachine<Member, [UInt8]>
}

private func chance(_ percent: Int, using random: inout SimulationRandom) -> Bool {
    Int.random(in: 0..<100, using: &random) < percent
}

private final class GroupStory {
    /// The state of a member.
    private struct Seat {
        var node: Int
        /// The position of the last message, or of joining.
        var position: GroupPosition
        /// Whether its next message has to follow a gap.
        var mayMiss = false
        /// The last message that it gets before it leaves, if it leaves.
        var through: GroupPosition?
        /// The node that it moves to, if any.
        var goal: Int?
    }

    private struct Node {
        var machine: GroupScenario.Machine
        var turn: GroupScenario.Machine.Turn?
        var served: Set<Int> = []
        /// The offset of an unanswered read.
        var reading: UInt64?
        /// News in transit.
        var news: [(GroupPosition, [UInt8])] = []
        /// Members that have left for other nodes.
        var departed: [Int] = []
    }

    var result = GroupScenario.Result()
    private let isTracing: Bool
    private var random: SimulationRandom
    private var epoch: UInt64 = 1
    private var log: [UInt64] = []
    private let history: GroupHistory
    private let keepsAll: Bool
    private var nodes: [Node] = []
    private var seats: [Int: Seat] = [:]
    private var lastID = 0
    private var now = MonotonicTime(nanoseconds: 0)

    init(seed: UInt64, isTracing: Bool) {
        self.isTracing = isTracing
        random = SimulationRandom(seed: seed)
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

    func run() throws(GroupScenario.Violation) {
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let limit = Int.random(in: 0...2_000, using: &random)
            let machine = GroupScenario.Machine(page(after: 0), keeping: history, slowByteLimit: limit, now: now) {
                .init($0)
            }
            nodes.append(Node(machine: machine))
        }
        note("\(nodes.count) nodes, \(history.maximumCount) messages of history")
        for _ in 0..<300 { try step() }
        note("all faults end")
        try settle()
    }

    private func note(_ text: @autoclosure () -> String) {
        if isTracing { result.trace.append(text()) }
    }

    private func fail(_ text: String) -> GroupScenario.Violation { GroupScenario.Violation(what: text) }

    private func step() throws(GroupScenario.Violation) {
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
        case 95: leave()
        case 96: chance(50, using: &random) ? leave() : move()
        case 97: compare(node)
        default: if chance(10, using: &random) { loseHistory() }
        }
    }

    private func push() {
        result.totals.messages += 1
        log.append(UInt64(log.count) + 1)
        note("\(newest) is pushed")
        for index in nodes.indices where chance(85, using: &random) {
            let news = (newest, [UInt8(truncatingIfNeeded: newest.offset)])
            let place =
                chance(80, using: &random)
                ? nodes[index].news.count : Int.random(in: 0...nodes[index].news.count, using: &random)
            nodes[index].news.insert(news, at: place)
            if chance(5, using: &random) { nodes[index].news.append(news) }
        }
    }

    private func deliverNews(to node: Int) {
        guard !nodes[node].news.isEmpty else { return }
        let (position, bytes) = nodes[node].news.removeFirst()
        note("node \(node) is told of \(position)")
        nodes[node].machine.received(bytes, at: position, now: now)
    }

    private func answer(_ node: Int) {
        guard let offset = nodes[node].reading.take() else { return }
        if chance(20, using: &random) {
            note("node \(node) cannot read behind \(offset)")
            nodes[node].machine.readFailed()
        } else {
            note("node \(node) reads behind \(offset), up to \(newest)")
            nodes[node].machine.read(page(after: offset), now: now)
        }
    }

    private func work(_ node: Int, blocking: Bool) throws(GroupScenario.Violation) {
        guard let work = nodes[node].machine.takeWork(now: now) else { return }
        for id in work.served where !nodes[node].served.insert(id).inserted { throw fail("\(id) is served twice") }
        for id in work.gone {
            if seats[id]?.through == nil, seats[id] != nil, seats[id]?.goal == nil {
                throw fail("\(id) is gone, and has not left")
            }
            nodes[node].served.remove(id)
            if seats[id]?.goal != nil { nodes[node].departed.append(id) }
        }
        if nodes[node].turn == nil { try arrive(from: node) }
        if let offset = work.readAfter {
            if nodes[node].reading != nil { throw fail("two readings") }
            nodes[node].reading = offset
        }
        if let turn = work.turn {
            if nodes[node].turn != nil { throw fail("two turns") }
            nodes[node].turn = turn
        }
    }

    private func endTurn(_ node: Int, blocking: Bool) throws(GroupScenario.Violation) {
        guard let turn = nodes[node].turn.take() else { return }
        var blocked: [(Int, UInt64)] = []
        for live in turn.members where seats[live.member.id]?.node == node {
            for message in turn.messages where live.wants(message) {
                // A moved session may take no more messages here.
                let percent = seats[live.member.id]?.goal == nil ? 10 : 50
                if blocking || percent == 50, chance(percent, using: &random) {
                    blocked.append((live.member.id, message.offset))
                    break
                }
                try take(live.member.id, turn.epoch, message, followsGap: message.followsGap)
            }
        }
        nodes[node].machine.turnEnded(turn, blocked: blocked)
        try arrive(from: node)
    }

    /// Starts the move of a member to another node.
    private func move() {
        guard let id = seats.keys.sorted().randomElement(using: &random), let seat = seats[id], seat.through == nil,
            seat.goal == nil
        else { return }
        let goal = Int.random(in: nodes.indices, using: &random)
        note("member \(id) leaves node \(seat.node) for \(goal)")
        seats[id]?.goal = goal
        nodes[seat.node].machine.remove(id)
        nodes[seat.node].served.remove(id)
    }

    /// Lets members join their new node after the old one sends them nothing more.
    private func arrive(from node: Int) throws(GroupScenario.Violation) {
        for id in nodes[node].departed {
            guard var seat = seats[id], let goal = seat.goal else { continue }
            guard let left = nodes[node].machine.takeLeft(id) else { throw fail("nobody knows where \(id) was") }
            readToCover(left.position, at: goal)
            let join = nodes[goal].machine.join(
                GroupScenario.Member(id: id),
                from: .after(left.position),
                isReturning: true,
                now: now
            )
            if left.followsGap { nodes[goal].machine.missed(id) }
            note("member \(id) is at node \(goal), behind \(left.position)")
            result.totals.moves += 1
            (seat.goal, seat.node) = (nil, goal)
            if left.followsGap || !join.isRecovered { seat.mayMiss = true }
            // The next message tells the member of the loss.
            if !join.isRecovered { seat.position = join.position }
            seats[id] = seat
        }
        nodes[node].departed = []
    }

    private func readToCover(_ position: GroupPosition, at node: Int) {
        guard !nodes[node].machine.covers(position) else { return }
        let present = nodes[node].machine.position
        let offset = present.epoch == epoch ? present.offset : 0
        nodes[node].machine.read(page(after: offset), after: offset, in: present.epoch, now: now)
    }

    private func serve(_ node: Int) throws(GroupScenario.Violation) {
        guard let id = nodes[node].served.sorted().randomElement(using: &random) else { return }
        guard let (_, serving) = nodes[node].machine.next(for: id, now: now) else {
            nodes[node].served.remove(id)
            return
        }
        try take(id, serving.epoch, serving.message, followsGap: serving.followsGap)
        nodes[node].machine.served(id, serving, .sent)
    }

    /// Checks a message that a member gets.
    private func take(
        _ id: Int,
        _ epoch: UInt64,
        _ message: GroupScenario.Machine.Message,
        followsGap: Bool
    ) throws(GroupScenario.Violation) {
        guard let seat = seats[id] else { return }
        let position = GroupPosition(epoch: epoch, offset: message.offset)
        if (position.epoch, position.offset) <= (seat.position.epoch, seat.position.offset) {
            throw fail("\(id) gets \(position) after \(seat.position)")
        }
        if message.content != [UInt8(truncatingIfNeeded: message.offset)] {
            throw fail("\(position) has another content")
        }
        let isNext =
            position.epoch == seat.position.epoch && position.offset == seat.position.offset + 1 && !seat.mayMiss
        if !isNext, !followsGap { throw fail("\(id) gets \(position) after \(seat.position), and is not told") }
        if let through = seat.through, (position.epoch, position.offset) > (through.epoch, through.offset) {
            throw fail("\(id) gets \(position) after it has left")
        }
        note("member \(id) gets \(position)\(followsGap ? ", behind a gap" : "")")
        result.totals.deliveries += 1
        if followsGap { result.totals.gaps += 1 }
        seats[id]?.position = position
        seats[id]?.mayMiss = false
    }

    private func join(_ node: Int) {
        lastID += 1
        let start: GroupStart =
            switch Int.random(in: 0..<4, using: &random) {
            case 0: .earliest
            case 1: .after(GroupPosition(epoch: epoch, offset: .random(in: 0...newest.offset, using: &random)))
            case 2:
                .after(
                    GroupPosition(
                        epoch: .random(in: 0...epoch + 1, using: &random),
                        offset: .random(in: 0...30, using: &random)
                    )
                )
            default: .now
            }
        if case .after(let position) = start { readToCover(position, at: node) }
        let join = nodes[node].machine.join(GroupScenario.Member(id: lastID), from: start, now: now)
        result.totals.members += 1
        note("member \(lastID) joins at node \(node) from \(start): \(join)")
        seats[lastID] = Seat(node: node, position: join.position, mayMiss: !join.isRecovered)
    }

    private func leave() {
        guard let id = seats.keys.sorted().randomElement(using: &random), let seat = seats[id], seat.goal == nil else {
            return
        }
        if seat.through == nil, chance(50, using: &random) {
            note("member \(id) leaves")
            seats[id]?.through = nodes[seat.node].machine.position
            nodes[seat.node].machine.leave(id)
        } else {
            note("member \(id) is gone")
            seats[id] = nil
            nodes[seat.node].machine.remove(id)
            nodes[seat.node].served.remove(id)
        }
    }

    private func compare(_ node: Int) { nodes[node].machine.noted(newest) }

    private func loseHistory() {
        result.totals.lostHistories += 1
        note("the history is lost")
        epoch += 1
        log = []
    }

    /// Ends all faults, and checks that every member gets the last message.
    private func settle() throws(GroupScenario.Violation) {
        push()
        // Twice, because members may move to a node that has already settled.
        for node in Array(nodes.indices) + Array(nodes.indices) {
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
            // The member is not told of lost messages, because no message follows them.
            if keepsAll, through.epoch == epoch, seat.position.epoch == epoch, seat.position.offset < through.offset {
                throw fail("\(id) has left before \(through)")
            }
        }
        let count = nodes.reduce(0) { $0 + $1.machine.memberCount }
        let present = seats.values.count { $0.through == nil }
        if count != present { throw fail("\(count) members are left, not \(present)") }
    }
}
