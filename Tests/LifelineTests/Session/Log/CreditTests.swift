import Lifeline
import LifelineCore
import Testing

@Suite struct CreditTests {
    // MARK: The sender

    @Test func aSenderSendsWhileCreditIsLeft() {
        var credit = SendCredit(initial: 100)
        #expect(credit.granted == 100 && credit.used == 0 && credit.hasLeft)
        credit.use(99)
        #expect(credit.used == 99 && credit.hasLeft)
        credit.use(1)
        #expect(credit.used == 100 && !credit.hasLeft)
        #expect(credit.grant(101) == true)
        #expect(credit.granted == 101 && credit.hasLeft)
    }

    @Test func theLastMessageMayUseMoreThanIsLeft() {
        var credit = SendCredit(initial: 100)
        credit.use(99)
        credit.use(1_000)
        #expect(credit.used == 1_099 && !credit.hasLeft)
        credit.grant(1_099)
        #expect(!credit.hasLeft)
        credit.grant(1_100)
        #expect(credit.hasLeft)
    }

    @Test func creditCoversWhatIsLeft() {
        var credit = SendCredit(initial: 100)
        credit.use(40)
        #expect(credit.covers(60) && !credit.covers(61))
        credit.use(100)
        #expect(credit.used == 140 && !credit.covers(0))
    }

    @Test func lowerGrantsSayNothing() {
        var credit = SendCredit(initial: 100)
        #expect(credit.grant(130) == true)
        #expect(!credit.grant(130) && !credit.grant(129) && !credit.grant(0))
        #expect(credit.granted == 130)
    }

    @Test func creditThatIsGivenBackCanBeUsedAgain() {
        var credit = SendCredit(initial: 100)
        credit.use(60)
        credit.use(1_000)
        #expect(!credit.hasLeft)
        credit.giveBack(60)
        #expect(credit.used == 1_000 && !credit.hasLeft)
        credit.giveBack(1_000)
        #expect(credit.used == 0 && credit.hasLeft)
    }

    @Test func hugeCreditsDoNotOverflow() {
        var credit = SendCredit(initial: .max)
        credit.use(.max)
        #expect(!credit.hasLeft)
        #expect(credit.grant(.max) && !credit.grant(.max))
        credit.use(.max)
        #expect(credit.hasLeft)
        credit.giveBack(.max)
        #expect(credit.used == UInt64(Int.max) && credit.granted == .max)
    }

    @Test func thereIsNoNegativeCredit() {
        #expect(SendCredit(initial: -1) == SendCredit(initial: 0))
        #expect(!SendCredit(initial: -1).hasLeft)
        #expect(ReceiveCredit(limit: -1) == ReceiveCredit(limit: 0))
        #expect(ReceiveCredit(limit: .min).told == 0)
    }

    // MARK: The receiver

    @Test func aReceiverTakesMessagesWhileCreditIsLeft() throws {
        var credit = ReceiveCredit(limit: 100)
        try credit.receive(99)
        // The last message may have any size.
        try credit.receive(1_000)
        let before = credit
        #expect(throws: SessionViolation.creditExceeded) { try credit.receive(1) }
        #expect(credit == before, "a refused message counts for nothing")
        #expect(credit.consume(1_000) == 1_100)
        #expect(credit.told == 1_100)
        try credit.receive(1)
        #expect(throws: SessionViolation.creditExceeded) { try credit.receive(1) }
    }

    @Test func aReceiverGrantsHalvesOfItsCredit() throws {
        var credit = ReceiveCredit(limit: 100)
        #expect(credit.told == 100 && !credit.needsTelling)
        try credit.receive(49)
        try credit.receive(51)
        #expect(credit.consume(49) == nil && credit.told == 100 && !credit.needsTelling)
        // Credit that was not sent to the peer is not granted.
        #expect(throws: SessionViolation.creditExceeded) { try credit.receive(1) }
        #expect(credit.consume(1) == 150)
        #expect(credit.told == 150 && credit.needsTelling)
        try credit.receive(50)
        #expect(credit.consume(50) == 200)
        #expect(credit.consume(50) == 250)
        #expect(credit.told == 250 && credit.needsTelling)
    }

    @Test func aReceiverOfTheLeastCreditGrantsEveryMessage() throws {
        var credit = ReceiveCredit(limit: 1)
        try credit.receive(1_000)
        #expect(throws: SessionViolation.creditExceeded) { try credit.receive(1) }
        #expect(credit.consume(1_000) == 1_001)
        try credit.receive(1)
        #expect(credit.consume(1) == 1_002)
    }

    // MARK: Both

    /// Less than half of the credit was consumed, and no grant is needed for the peer to go on.
    @Test func nothingIsOwedWhenEverythingWasConsumed() throws {
        var (sender, receiver) = (SendCredit(initial: 100), ReceiveCredit(limit: 100))
        sender.use(49)
        try receiver.receive(49)
        #expect(receiver.consume(49) == nil)
        #expect(sender.hasLeft)
        sender.use(100_000)
        try receiver.receive(100_000)
        let sum = receiver.consume(100_000)
        #expect(!sender.hasLeft)
        #expect(sum == 100_149)
        sender.grant(receiver.told)
        #expect(sender.granted - sender.used == 100)
    }

    /// A blank gives its cost back to the sender, because the receiver never counted it.
    @Test func blanksDoNotLetAReceiverRefuse() throws {
        var (sender, receiver) = (SendCredit(initial: 100), ReceiveCredit(limit: 100))
        sender.use(60)
        sender.use(60)
        #expect(!sender.hasLeft)
        // The connection is lost, and the second message expires.
        sender.giveBack(60)
        #expect(sender.hasLeft)
        sender.use(500)
        try receiver.receive(60)
        try receiver.receive(500)
        #expect(receiver.consume(500) == 600)
        // The grant is lost with the next connection, and is told again.
        #expect(receiver.needsTelling)
        #expect(sender.grant(receiver.told) && sender.hasLeft)
    }

    @Test func theReceiverAcceptsWhatTheSenderSends() {
        for seed in 0..<5_000 as Range<UInt64> {
            var story = CreditStory(seed: seed)
            do {
                for _ in 0..<200 { try story.goOn() }
                try story.end()
            } catch {
                Issue.record("story \(seed): \(error)")
                return
            }
            if let failure = story.failure {
                Issue.record("story \(seed): \(failure)")
                return
            }
        }
    }
}

/// A sender and a receiver of one stream, with a connection between them that delays everything and is cut at times.
private struct CreditStory {
    /// The credit that a sender assumes before it knows the terms.
    private static let smallest = 100

    private var random: SplitMix64
    private let limit: Int
    private var sender = SendCredit(initial: smallest)
    private var receiver: ReceiveCredit
    private var isConnected = false

    /// The costs of messages that have used credit and were not sent over this connection.
    private var queued: [Int] = []
    /// The costs of messages on their way.
    private var sent: [Int] = []
    private var unconsumed: [Int] = []
    private var largest = 0
    /// Grants on their way.
    private var grants: [UInt64] = []
    private(set) var failure: String?

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        limit = Int.random(in: Self.smallest...500, using: &random)
        receiver = ReceiveCredit(limit: limit)
    }

    mutating func goOn() throws {
        switch Int.random(in: 0..<33, using: &random) {
        case 0..<10:
            guard sender.hasLeft else { break }
            let isLarge = Int.random(in: 0..<8, using: &random) == 0
            use(Int.random(in: 1...(isLarge ? 1_500 : 60), using: &random))
        case 10..<17:
            if isConnected, !queued.isEmpty { sent.append(queued.removeFirst()) }
        case 17..<22:
            try deliver()
        case 22..<27:
            consume()
        case 27..<29:
            if !grants.isEmpty { sender.grant(grants.removeFirst()) }
        case 29:
            // A message is not sent any more, or a blank is sent again in its place.
            guard let index = queued.indices.randomElement(using: &random) else { break }
            sender.giveBack(queued.remove(at: index))
        case 30:
            // Repeated and older grants do no harm.
            if isConnected { grants.append(UInt64.random(in: 0...receiver.told, using: &random)) }
        case 31:
            cut()
        default:
            if !isConnected { connect() }
        }
        check(sender.granted <= receiver.told, "the sender counts with more than was granted")
        let size = unconsumed.reduce(0, +)
        check(size == 0 || size < limit + largest, "the receiver keeps more than its limit and one message")
    }

    /// Everything arrives and is consumed. After that, a message of any size can be sent.
    mutating func end() throws {
        cut()
        connect()
        try settle()
        for cost in [1, 100_000, limit, 1] {
            check(sender.hasLeft, "nothing can go, though everything was consumed")
            use(cost)
            try settle()
        }
    }

    private mutating func settle() throws {
        sent += queued
        queued = []
        while !sent.isEmpty { try deliver() }
        while !unconsumed.isEmpty { consume() }
        while !grants.isEmpty { sender.grant(grants.removeFirst()) }
        check(sender.granted == receiver.told, "the grants were delivered")
        check(sender.granted - sender.used > UInt64(limit / 2), "more than half of the credit is left")
    }

    private mutating func check(_ holds: Bool, _ what: String) {
        if !holds, failure == nil { failure = what }
    }

    private mutating func use(_ cost: Int) {
        sender.use(cost)
        queued.append(cost)
        largest = max(largest, cost)
    }

    private mutating func deliver() throws {
        guard !sent.isEmpty else { return }
        let cost = sent.removeFirst()
        try receiver.receive(cost)
        unconsumed.append(cost)
    }

    /// Handlers finish in any order. A grant that they cause is lost if there is no connection.
    private mutating func consume() {
        guard let index = unconsumed.indices.randomElement(using: &random) else { return }
        if let sum = receiver.consume(unconsumed.remove(at: index)), isConnected { grants.append(sum) }
    }

    /// Everything on its way is lost. Messages have to be sent again.
    private mutating func cut() {
        queued = sent + queued
        sent = []
        grants = []
        isConnected = false
    }

    /// An opening states the initial credit, and a receiver then states its grants since.
    private mutating func connect() {
        isConnected = true
        sender.grant(UInt64(limit))
        if receiver.needsTelling { grants.append(receiver.told) }
    }
}
