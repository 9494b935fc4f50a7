import LifelineMessages
import LifelineProtos
import TestProtos
import Testing

/// Copies of a part that are made while it is lent (inside an `inout` scope), and kept: each is an independent value.
@Suite struct EscapedLoanTests {
    typealias Tree = Test_Imports_Tree

    private static func tree() -> Tree {
        .with {
            $0.name = "root"
            $0.left.name = "left"
            $0.left.left.name = "left left"
            $0.left.left.left.name = "left left left"
            $0.right.name = "right"
            $0.children = [.with { $0.name = "first" }, .with { $0.name = "second" }]
            $0.named = ["a": .with { $0.name = "in a map" }]
            $0.branch.name = "branch"
        }
    }

    /// Ways to access a part of a tree, which is lent during the closure.
    private static let ways: [(name: String, lend: @Sendable (inout Tree, (inout Tree) -> Void) -> Void)] = [
        ("submessage", { $1(&$0.left) }),
        ("optional submessage", { $1(&$0.right) }),
        ("submessage of a submessage", { $1(&$0.left.left) }),
        ("three levels down", { $1(&$0.left.left.left) }),
        ("element", { $1(&$0.children[0]) }),
        ("last element", { $1(&$0.children[1]) }),
        ("map value", { $1(&$0.named["a", default: .init()]) }),
        ("new map value", { $1(&$0.named["b", default: .with { $0.name = "new" }]) }),
        ("member of a oneof", { $1(&$0.branch) }),
        ("absent submessage", { $1(&$0.left.right) }),
        ("absent submessages", { $1(&$0.right.right.right) }),
        ("appended element", { tree, body in tree.children.append { body(&$0) } }),
    ]

    private func name(of way: Int, in tree: Tree) -> String {
        var (tree, name) = (tree, "")
        Self.ways[way].lend(&tree) { name = $0.name }
        return name
    }

    /// Changes everywhere in a tree: along the path, beside it, and of the tree itself.
    private func change(_ tree: inout Tree, way: Int) {
        if way != Self.ways.count - 1 { Self.ways[way].lend(&tree) { $0.name += " changed" } }
        tree.name += " changed"
        tree.left.name = "changed"
        tree.children.append(.with { $0.name = "third" })
        tree.named["c"] = .init()
    }

    @Test(arguments: ways.indices) func aKeptCopyStaysAsItIs(way: Int) {
        var tree = Self.tree()
        var kept: Tree?
        var expected: Tree?
        Self.ways[way].lend(&tree) {
            $0.name += " kept"
            kept = $0
            expected = try? Tree(serializedBytes: $0.serializedBytes())
        }
        for _ in 0..<3 { change(&tree, way: way) }
        #expect(kept != nil && kept == expected)
        kept?.left.left.name = "by the copy"
        kept?.name = "by the copy"
        let sum = try? tree.serializedBytes()
        #expect(!(String(decoding: sum ?? [], as: UTF8.self).contains("by the copy")))
        #expect(kept?.name == "by the copy")
    }

    /// Then only the copy holds the loan, and the whole is unchanged since it was lent.
    @Test(arguments: ways.indices) func changingTheCopyFirst(way: Int) throws {
        var tree = Self.tree()
        var kept = Tree()
        Self.ways[way].lend(&tree) { kept = $0 }
        let bytes = try tree.serializedBytes()
        kept.name = "other"
        kept.left.name = "other"
        kept.children.append(.with { $0.name = "other" })
        kept.named["other"] = .init()
        #expect(try tree.serializedBytes() == bytes)
        #expect(kept.name == "other" && kept.left.name == "other" && kept.children.last?.name == "other")
        let keptBytes = try kept.serializedBytes()
        change(&tree, way: way)
        #expect(try kept.serializedBytes() == keptBytes)
    }

    @Test(arguments: ways.indices) func aLentValueCanStillBeChanged(way: Int) {
        var tree = Self.tree()
        var kept: [Tree] = []
        Self.ways[way].lend(&tree) {
            for number in 0..<4 {
                $0.name = "\(number)"
                $0.children.append(.with { $0.name = "child \(number)" })
                kept.append($0)
            }
            #expect($0.name == "3")
            #expect($0.children.suffix(4).map(\.name) == (0..<4).map { "child \($0)" })
        }
        if way != Self.ways.count - 1 { #expect(name(of: way, in: tree) == "3") }
        let childCount = kept[0].children.count
        for number in 0..<4 {
            #expect(kept[number].name == "\(number)")
            #expect(kept[number].children.count == childCount + number)
        }
        tree = .init()
        #expect(kept.map(\.name) == ["0", "1", "2", "3"], "the copies outlive the whole")
    }

    @Test(arguments: ways.indices) func replacingWhatIsLent(way: Int) {
        var tree = Self.tree()
        let before = tree
        var kept: Tree?
        Self.ways[way].lend(&tree) {
            kept = $0
            $0 = before
            $0.name += " replaced"
        }
        if way != Self.ways.count - 1 { #expect(name(of: way, in: tree) == "root replaced") }
        #expect(before == Self.tree())
        change(&tree, way: way)
        #expect(before == Self.tree())
        #expect(kept?.name != "root replaced")
    }

    @Test(arguments: ways.indices, ways.indices) func twoLevelsOfLoans(outer: Int, inner: Int) throws {
        var tree = Self.tree()
        var (keptOuter, keptInner) = (Tree(), Tree())
        Self.ways[outer].lend(&tree) { part in
            part = Self.tree()
            Self.ways[inner].lend(&part) {
                $0.name = "inner"
                keptInner = $0
                $0.name = "inner changed"
            }
            keptOuter = part
            Self.ways[inner].lend(&part) { $0.name = "inner changed again" }
        }
        let (outerBytes, innerBytes) = (try keptOuter.serializedBytes(), try keptInner.serializedBytes())
        change(&tree, way: outer)
        #expect(try keptOuter.serializedBytes() == outerBytes)
        #expect(try keptInner.serializedBytes() == innerBytes)
        #expect(keptInner.name == "inner")
        #expect(outerBytes.count > innerBytes.count)
        keptInner.name = "by the copy"
        #expect(try keptOuter.serializedBytes() == outerBytes)
    }

    /// `part` is lent, and its copy changed at the same time.
    @Test(arguments: ways.indices) func changingTheCopyInsideTheScope(way: Int) {
        var tree = Self.tree()
        var kept = Tree()
        Self.ways[way].lend(&tree) {
            $0.name = "lent"
            kept = $0
            kept.name = "kept"
            kept.left.name = "kept left"
            $0.left.name = "lent left"
            swap(&kept, &$0)
            #expect($0.name == "kept" && $0.left.name == "kept left")
            #expect(kept.name == "lent" && kept.left.name == "lent left")
            swap(&kept, &$0)
            $0.right.name = "lent right"
        }
        #expect(kept.name == "kept" && kept.left.name == "kept left" && kept.right.name != "lent right")
        if way != Self.ways.count - 1 { #expect(name(of: way, in: tree) == "lent") }
    }

    /// Then only the copy holds the loan, and its source is settled afterwards.
    @Test(arguments: ways.indices) func replacingWhatIsLentAndChangingItsCopy(way: Int) throws {
        var (tree, kept) = (Self.tree(), Tree())
        let before = tree
        Self.ways[way].lend(&tree) { part in
            part.name = "lent"
            kept = part
            part = .with { $0.name = "replacement" }
            for round in 0..<10 {
                kept.name = String(repeating: "kept", count: 100 * round)
                kept.left.name = kept.name
                kept.children.append(.with { $0.name = "\(round)" })
                kept.named["\(round)"] = .with { $0.name = "\(round)" }
            }
        }
        let bytes = try tree.serializedBytes()
        #expect(try Tree(serializedBytes: bytes) == tree)
        #expect(String(decoding: bytes, as: UTF8.self).contains("kept") == false)
        if way != Self.ways.count - 1 { #expect(name(of: way, in: tree) == "replacement") }
        #expect(kept.name.utf8.count == 3_600 && kept.left.name == kept.name)
        #expect(kept.children.suffix(10).map(\.name) == (0..<10).map { "\($0)" })
        change(&tree, way: way)
        kept.left.left.name = "changed after that"
        #expect(try kept == Tree(serializedBytes: kept.serializedBytes()))
        #expect(before == Self.tree())
    }

    /// Each is lent by the one before, and the last one holds them all. It is freed with a stack of any size.
    @Test func aLongChainOfLoans() {
        var tree = Self.tree()
        for _ in 0..<100_000 {
            var part = Tree()
            swap(&tree.left, &part)
            tree = part
        }
        #expect(tree == Tree())
        tree.name = "last"
        tree = .init()
    }

    // MARK: Swapping

    @Test func partsOfTwoMessagesChangePlaces() {
        var (one, other) = (Self.tree(), Tree.with { $0.left.name = "other left" })
        let (first, second) = (one, other)
        swap(&one.left, &other.left)
        #expect(one.left == second.left && other.left == first.left)
        swap(&one.left.left, &other.left.left.left)
        #expect(other.left.left.left.name == "")
        #expect(one.left.left.name == "left left left")
        swap(&one.children, &other.children)
        #expect(one.children.isEmpty && other.children == first.children)
        swap(&one.named, &other.named)
        #expect(one.named.isEmpty && other.named == first.named)
        other.children[0].name = "changed"
        one.left.name = "changed"
        #expect(first == Self.tree() && second == .with { $0.left.name = "other left" })
    }

    @Test func aPartAndItsWholeChangePlaces() {
        var tree = Self.tree()
        var left = tree.left
        swap(&tree, &left)
        #expect(tree == Self.tree().left && left == Self.tree())
        swap(&tree, &left.left)
        #expect(tree == Self.tree().left && left == Self.tree())
        tree.left.name = "changed"
        #expect(left == Self.tree())
    }

    @Test func elementsChangePlaces() {
        var tree = Self.tree()
        let before = tree
        tree.children.swapAt(0, 1)
        #expect(tree.children.map(\.name) == ["second", "first"])
        tree.children[0].name += "!"
        #expect(before == Self.tree())
        #expect(tree.children.map(\.name) == ["second!", "first"])
    }
}
