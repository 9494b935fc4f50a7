import LifelineMessages
import LifelineWellKnownTypes
import TestProtos
import Testing

@Suite struct GeneratedCodeNestingTests {
    @Test func everythingIsChangedInPlaceAtAnyDepth() throws {
        var tree = Test_Imports_Tree()
        tree.left.children.append(.with { $0.name = "first" })
        tree.left.children[0].right.named["key", default: .init()].name = "inner"
        tree.left.children[0].right.named["key", default: .init()].branch.leaf.vein.leaf.tree.name = "vein"
        let before = tree
        tree.left.children[0].right.named["key", default: .init()].name += "most"
        tree.left.children.append(tree.left.children[0])
        tree.left.children[1].name = "second"

        #expect(before.left.children.count == 1)
        #expect(before.left.children[0].right.named["key"]?.name == "inner")
        #expect(tree.left.children.map(\.name) == ["first", "second"])
        #expect(tree.left.children[1].right.named["key"]?.name == "innermost")
        #expect(tree.left.children[1].right.named["key"]?.branch.leaf.vein.leaf.tree.name == "vein")
        #expect(try Test_Imports_Tree(serializedBytes: tree.serializedBytes()) == tree)
    }

    @Test func aMessageCanHoldItself() throws {
        var tree = Test_Imports_Tree.with { $0.name = "root" }
        tree.left = tree
        tree.children = [tree, tree]
        tree.named["self"] = tree
        tree.grafted = .branch(tree)
        #expect(tree.branch.named["self"]?.children[1].left.name == "root")
        #expect(try Test_Imports_Tree(serializedBytes: tree.serializedBytes()) == tree)
    }

    @Test func messagesThatHoldEachOther() {
        let egg = Test_Imports_Egg.with { $0.hatches.lays = [.with { $0.hatches.lays = [.init(), .init()] }] }
        #expect(egg.hatches.lays[0].hatches.lays.count == 2)
    }

    @Test func typesOfOtherFilesPackagesAndModules() throws {
        var user = Test_Imports_User.with {
            $0.left.left = "l"
            $0.right.right = "r"
            $0.lefts = ["a": .with { $0.left = "b" }]
            $0.moods = [.good, .UNRECOGNIZED(9)]
            $0.eitherTime.seconds = 5
            $0.properties.fields = ["flag": true, "list": [1, "two", nil]]
            $0.null = .nullValue
            $0.wrapped = .with { $0.value = .min }
            $0.values = [1: "text"]
            $0.unpackaged.text.text = "message"
            $0.unpackagedKind = .some
        }
        user.anything = try Google_Protobuf_Any(message: user.left)
        let decoded = try Test_Imports_User(serializedBytes: user.serializedBytes())
        #expect(decoded == user)
        #expect(try Test_Imports_Left_Item(unpackingAny: decoded.anything).left == "l")
        #expect(decoded.either == .eitherTime(.with { $0.seconds = 5 }))
        #expect(decoded.hasUnpackaged && decoded.unpackaged.text.text == "message")
    }

    @Test func emptyMessagesArePresentOrNot() throws {
        var holder = Test_Empty_HoldsNothing()
        #expect(try holder.serializedBytes() == [])
        holder.nothing = .init()
        holder.nothings = [.init(), .init()]
        holder.mapped = [true: .init()]
        holder.chosen = .init()
        let decoded = try Test_Empty_HoldsNothing(serializedBytes: holder.serializedBytes())
        #expect(decoded == holder)
        #expect(decoded.hasNothing && decoded.nothings.count == 2 && decoded.mapped[true] == .init())
        #expect(decoded.choice == .chosen(.init()))
    }

    @Test func extensionsAreKeptAsUnknownFields() throws {
        // name = "n"; count (100) = 5; words (101) = "a", "b"; scoped (102) = { inner: true }.
        let extended: [UInt8] = [
            0xA0, 6, 5, 0x0A, 1, 0x6E, 0xAA, 6, 1, 0x61, 0xAA, 6, 1, 0x62, 0xB2, 6, 2, 8, 1,
        ]
        var message = try Test_Proto2_Extendable(serializedBytes: extended)
        #expect(message.name == "n")
        #expect(message.unknownFields.count == extended.count - 3)
        message.name = "m"
        let again = try Test_Proto2_Extendable(serializedBytes: message.serializedBytes())
        #expect(again == message && again.unknownFields == message.unknownFields)
        #expect(try Test_Proto2_Extendable.Scope(serializedBytes: [8, 1]).inner)
    }
}
