import LifelineMessages
import LifelineProtos
import TestProtos

/// Messages that together have every kind of field, for tests that use many of them.
enum MessageCorpus {
    /// The messages, each with a name.
    static let all: [(name: String, message: any Message)] = [
        ("nothing", ChatMessage()),
        ("chat", HostileInputTests.rich()),
        ("singular", singular),
        ("optional", optional),
        ("packed", packed),
        ("unpacked", unpacked),
        ("map values", mapValues),
        ("map keys", mapKeys),
        ("text in a oneof", Test_Scalars_Proto3_Choice.with { $0.aString = "chosen" }),
        ("number in a oneof", Test_Scalars_Proto3_Choice.with { $0.aDouble = 0 }),
        ("messages in oneofs", Test_Scalars_Proto3_Choice.with { $0.nested.nested.aPoint.x = -1 }),
        ("proto2", proto2),
        ("proto2 lists", proto2Lists),
        ("proto2 maps", proto2Maps),
        ("many fields", manyFields),
        ("recursive", recursive),
    ]

    private static let text = "text, é, 😀"
    private static let bytes: [UInt8] = [0, 1, 0x7F, 0x80, 0xFF]

    private static let singular = Test_Scalars_Proto3_Singular.with {
        $0.aDouble = .pi
        $0.aFloat = -0.0
        $0.aInt32 = -1
        $0.aInt64 = .max
        $0.aUint32 = 127
        $0.aUint64 = 128
        $0.aSint32 = -64
        $0.aSint64 = .min
        $0.aFixed32 = 1
        $0.aFixed64 = .max
        $0.aSfixed32 = -1
        $0.aSfixed64 = .min
        $0.aBool = true
        $0.aString = text
        $0.aBytes = bytes
        $0.aColor = .highest
        $0.aPoint.label = text
    }

    private static let optional = Test_Scalars_Proto3_Optional.with {
        $0.aInt32 = 0
        $0.aString = ""
        $0.aBytes = []
        $0.aBool = false
        $0.aColor = .unspecified
        $0.aPoint = .init()
        $0.aDouble = 0
    }

    private static let packed = Test_Scalars_Proto3_Packed.with {
        $0.someDouble = [.nan, 1]
        $0.someFloat = [.infinity, 0]
        $0.someInt32 = [.min, 0, 1]
        $0.someUint64 = [.max, 128, 0]
        $0.someSint32 = [.min, 1]
        $0.someSint64 = [.min, 1]
        $0.someFixed32 = [1, 2]
        $0.someSfixed64 = [-1]
        $0.someBool = [true, false]
        $0.someString = ["", text]
        $0.someBytes = [bytes, []]
        $0.somePoint = [.with { $0.label = text }, .init()]
        $0.someColor = [.lowest, .UNRECOGNIZED(-2)]
    }

    private static let unpacked = Test_Scalars_Proto3_Unpacked.with {
        $0.someDouble = [.nan, 1]
        $0.someInt64 = [.min, 1]
        $0.someUint32 = [.max, 0]
        $0.someSint64 = [-1, 1]
        $0.someFixed64 = [1]
        $0.someSfixed32 = [-1, 0]
        $0.someBool = [false, true]
        $0.someColor = [.red, .UNRECOGNIZED(9)]
    }

    private static let mapValues = Test_Scalars_Proto3_MapValues.with {
        $0.byDouble = [0: 0, 1: .pi]
        $0.byFloat = [-1: 1]
        $0.byInt64 = [1: .min]
        $0.bySint32 = [1: -1]
        $0.byFixed64 = [1: 2]
        $0.bySfixed32 = [1: -2]
        $0.byBool = [1: true, 2: false]
        $0.byString = [1: text, 2: ""]
        $0.byBytes = [1: bytes, 2: []]
        $0.byColor = [1: .highest, 3: .UNRECOGNIZED(5)]
        $0.byPoint = [1: .with { $0.label = text }, 2: .init()]
    }

    private static let mapKeys = Test_Scalars_Proto3_MapKeys.with {
        $0.ofInt32 = [.min: "lowest", 0: "zero"]
        $0.ofUint64 = [.max: "highest", 1: ""]
        $0.ofSint64 = [-1: "a", 1: "b"]
        $0.ofFixed32 = [7: "c"]
        $0.ofSfixed64 = [-7: "d"]
        $0.ofBool = [true: "yes", false: "no"]
        $0.ofString = [text: text, "": ""]
    }

    private static let proto2 = Test_Scalars_Proto2_Singular.with {
        $0.aDouble = 0
        $0.aFloat = 1
        $0.aInt32 = -1
        $0.aUint64 = 0
        $0.aSint64 = -1
        $0.aFixed32 = 0
        $0.aSfixed64 = -1
        $0.aBool = false
        $0.aString = ""
        $0.aBytes = bytes
        $0.aLevel = .high
        $0.aPoint.x = 0
    }

    private static let proto2Lists = Test_Scalars_Proto2_Unpacked.with {
        $0.someInt32 = [-1, 0]
        $0.someSint64 = [.min]
        $0.someFixed64 = [1, 2]
        $0.someBool = [true, false]
        $0.someString = [text, ""]
        $0.someBytes = [[], bytes]
        $0.someLevel = [.low, .high]
        $0.somePoint = [.with { $0.y = -1 }, .init()]
    }

    private static let proto2Maps = Test_Scalars_Proto2_Maps.with {
        $0.byDouble = ["a": 0, "b": 1]
        $0.byInt32 = ["": -1]
        $0.byBool = ["yes": true]
        $0.byString = [text: text]
        $0.byBytes = ["a": bytes]
        $0.byLevel = ["a": .low, "b": .high]
        $0.byPoint = ["a": .with { $0.x = 1 }, "b": .init()]
    }

    private static let manyFields = Test_Scalars_Many_ManyFields.with {
        $0.field1 = .pi
        $0.field16 = 1
        $0.field75 = bytes
        $0.field149 = text
        $0.beyondTwoByteTags = -1
        $0.afterReserved = [.min, .max]
        $0.highest = [1]
    }

    private static let recursive = Test_Imports_Tree.with {
        $0.name = "root"
        $0.left.right.name = "deep"
        $0.right.name = text
        $0.children = [.with { $0.leaf.vein.leaf.tree.name = text }, .init()]
        $0.named = ["": .init(), "a": .with { $0.branch.name = "b" }]
    }
}
