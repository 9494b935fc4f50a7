import LifelineMessages
import LifelineProtos
import TestProtos
import Testing

/// Changes rarely move a message to a new storage: once for a copy, and then only if there is much garbage.
@Suite struct MovingTests {
    private static let longText = String(repeating: "x", count: 1_000)
    private static let count = 400

    /// How many of `count` changes of a copy of `start` moved it.
    private func moveCount<Part>(
        of start: Part,
        storage: (borrowing Part) -> _MessageStorage?,
        changing change: (inout Part, Int) -> Void
    ) -> Int {
        var copy = start
        var moveCount = 0
        for number in 0..<Self.count {
            let before = storage(copy).map { ObjectIdentifier($0) }
            change(&copy, number)
            // The new storage is made before the old one is freed, so its address is another.
            if storage(copy).map({ ObjectIdentifier($0) }) != before { moveCount += 1 }
        }
        withExtendedLifetime(start) {}
        return moveCount
    }

    @Test func aList() {
        let list = RepeatedField(repeatElement(Self.longText, count: Self.count))
        #expect(moveCount(of: list, storage: { $0._storage }) { $0[$1] = "short" } == 1)
        let longer = Self.longText + Self.longText
        #expect((1...4).contains(moveCount(of: list, storage: { $0._storage }) { $0[$1] = longer }))
    }

    @Test func aListOfMessages() {
        let list = RepeatedField(
            repeatElement(Sample_Chat_V1_Attachment.with { $0.url = Self.longText }, count: Self.count)
        )
        #expect(moveCount(of: list, storage: { $0._storage }) { $0[$1].url = "short" } == 1)
        #expect((1...4).contains(moveCount(of: list, storage: { $0._storage }) { $0[$1].sha256 = [1, 2, 3] }))
    }

    @Test func aMap() {
        let trees = (0..<Self.count).map { (UInt32($0), Test_Imports_Tree.with { $0.name = Self.longText }) }
        let map = MapField(trees)
        #expect(moveCount(of: map, storage: { $0._storage }) { $0[UInt32($1), default: .init()].name = "short" } == 1)
        #expect((1...8).contains(moveCount(of: map, storage: { $0._storage }) { $0[UInt32($1)] = .init() }))
    }

    @Test func aMessage() {
        let message = ChatMessage.with {
            $0.poll.choices = RepeatedField(repeatElement(Self.longText, count: Self.count))
        }
        let storage = { (message: ChatMessage) in message._message.untyped.storage }
        #expect(moveCount(of: message, storage: storage) { $0.poll.choices[$1] = "short" } == 1)
        #expect((1...4).contains(moveCount(of: message, storage: storage) { $0.author.name = "\($1)" }))
    }
}
