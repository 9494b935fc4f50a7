internal import LifelineMessages
internal import TestProtos

// A closure beside each key path: through the path alone a field is read and put back, not changed in place.
// nonisolated(unsafe): made once, and read by the one thread that fuzzes.

extension Test_Scalars_Proto3_Color: FuzzedScalar {
    static func make(_ choices: inout Choices) -> Self {
        Self(rawValue: [0, 1, 2, 3, -1, Int(Int32.min), Int(Int32.max)][choices.below(7)]) ?? Self()
    }

    var model: Value { .number(UInt64(truncatingIfNeeded: rawValue)) }
}

extension Test_Scalars_Proto3_Point: FuzzedMessage {
    nonisolated(unsafe) static let fields: [Field<Self>] = [
        .implicit("x", \.x) { $1(&$0.x) },
        .implicit("y", \.y) { $1(&$0.y) },
        .implicit("label", \.label) { $1(&$0.label) },
    ]
}

extension Test_Scalars_Proto3_Singular: FuzzedMessage {
    nonisolated(unsafe) static let fields: [Field<Self>] = [
        .implicit("aDouble", \.aDouble) { $1(&$0.aDouble) },
        .implicit("aFloat", \.aFloat) { $1(&$0.aFloat) },
        .implicit("aInt32", \.aInt32) { $1(&$0.aInt32) },
        .implicit("aInt64", \.aInt64) { $1(&$0.aInt64) },
        .implicit("aUint32", \.aUint32) { $1(&$0.aUint32) },
        .implicit("aUint64", \.aUint64) { $1(&$0.aUint64) },
        .implicit("aSint32", \.aSint32) { $1(&$0.aSint32) },
        .implicit("aSint64", \.aSint64) { $1(&$0.aSint64) },
        .implicit("aFixed32", \.aFixed32) { $1(&$0.aFixed32) },
        .implicit("aFixed64", \.aFixed64) { $1(&$0.aFixed64) },
        .implicit("aSfixed32", \.aSfixed32) { $1(&$0.aSfixed32) },
        .implicit("aSfixed64", \.aSfixed64) { $1(&$0.aSfixed64) },
        .implicit("aBool", \.aBool) { $1(&$0.aBool) },
        .implicit("aString", \.aString) { $1(&$0.aString) },
        .implicit("aBytes", \.aBytes) { $1(&$0.aBytes) },
        .implicit("aColor", \.aColor) { $1(&$0.aColor) },
        .explicit("aPoint", \.aPoint, has: \.hasAPoint, clear: { $0.clearAPoint() }) { $1(&$0.aPoint) },
    ]
}

extension Test_Scalars_Proto3_Optional: FuzzedMessage {
    nonisolated(unsafe) static let fields: [Field<Self>] = [
        .explicit("aDouble", \.aDouble, has: \.hasADouble, clear: { $0.clearADouble() }) { $1(&$0.aDouble) },
        .explicit("aFloat", \.aFloat, has: \.hasAFloat, clear: { $0.clearAFloat() }) { $1(&$0.aFloat) },
        .explicit("aInt32", \.aInt32, has: \.hasAInt32, clear: { $0.clearAInt32() }) { $1(&$0.aInt32) },
        .explicit("aInt64", \.aInt64, has: \.hasAInt64, clear: { $0.clearAInt64() }) { $1(&$0.aInt64) },
        .explicit("aUint32", \.aUint32, has: \.hasAUint32, clear: { $0.clearAUint32() }) { $1(&$0.aUint32) },
        .explicit("aUint64", \.aUint64, has: \.hasAUint64, clear: { $0.clearAUint64() }) { $1(&$0.aUint64) },
        .explicit("aSint32", \.aSint32, has: \.hasASint32, clear: { $0.clearASint32() }) { $1(&$0.aSint32) },
        .explicit("aSint64", \.aSint64, has: \.hasASint64, clear: { $0.clearASint64() }) { $1(&$0.aSint64) },
        .explicit("aFixed32", \.aFixed32, has: \.hasAFixed32, clear: { $0.clearAFixed32() }) { $1(&$0.aFixed32) },
        .explicit("aFixed64", \.aFixed64, has: \.hasAFixed64, clear: { $0.clearAFixed64() }) { $1(&$0.aFixed64) },
        .explicit("aSfixed32", \.aSfixed32, has: \.hasASfixed32, clear: { $0.clearASfixed32() }) { $1(&$0.aSfixed32) },
        .explicit("aSfixed64", \.aSfixed64, has: \.hasASfixed64, clear: { $0.clearASfixed64() }) { $1(&$0.aSfixed64) },
        .explicit("aBool", \.aBool, has: \.hasABool, clear: { $0.clearABool() }) { $1(&$0.aBool) },
        .explicit("aString", \.aString, has: \.hasAString, clear: { $0.clearAString() }) { $1(&$0.aString) },
        .explicit("aBytes", \.aBytes, has: \.hasABytes, clear: { $0.clearABytes() }) { $1(&$0.aBytes) },
        .explicit("aColor", \.aColor, has: \.hasAColor, clear: { $0.clearAColor() }) { $1(&$0.aColor) },
        .explicit("aPoint", \.aPoint, has: \.hasAPoint, clear: { $0.clearAPoint() }) { $1(&$0.aPoint) },
    ]
}

extension Test_Scalars_Proto3_Packed: FuzzedMessage {
    nonisolated(unsafe) static let fields: [Field<Self>] = [
        .implicit("someDouble", \.someDouble) { $1(&$0.someDouble) },
        .implicit("someFloat", \.someFloat) { $1(&$0.someFloat) },
        .implicit("someInt32", \.someInt32) { $1(&$0.someInt32) },
        .implicit("someInt64", \.someInt64) { $1(&$0.someInt64) },
        .implicit("someUint32", \.someUint32) { $1(&$0.someUint32) },
        .implicit("someUint64", \.someUint64) { $1(&$0.someUint64) },
        .implicit("someSint32", \.someSint32) { $1(&$0.someSint32) },
        .implicit("someSint64", \.someSint64) { $1(&$0.someSint64) },
        .implicit("someFixed32", \.someFixed32) { $1(&$0.someFixed32) },
        .implicit("someFixed64", \.someFixed64) { $1(&$0.someFixed64) },
        .implicit("someSfixed32", \.someSfixed32) { $1(&$0.someSfixed32) },
        .implicit("someSfixed64", \.someSfixed64) { $1(&$0.someSfixed64) },
        .implicit("someBool", \.someBool) { $1(&$0.someBool) },
        .implicit("someString", \.someString) { $1(&$0.someString) },
        .implicit("someBytes", \.someBytes) { $1(&$0.someBytes) },
        .implicit("someColor", \.someColor) { $1(&$0.someColor) },
        .implicit("somePoint", \.somePoint) { $1(&$0.somePoint) },
    ]
}

extension Test_Scalars_Proto3_Choice: FuzzedMessage {
    nonisolated(unsafe) static let fields: [Field<Self>] = [
        .member("aDouble", of: \.value, \.aDouble, isHeld: { if case .aDouble = $0 { true } else { false } }) {
            $1(&$0.aDouble)
        },
        .member("aFloat", of: \.value, \.aFloat, isHeld: { if case .aFloat = $0 { true } else { false } }) {
            $1(&$0.aFloat)
        },
        .member("aInt32", of: \.value, \.aInt32, isHeld: { if case .aInt32 = $0 { true } else { false } }) {
            $1(&$0.aInt32)
        },
        .member("aInt64", of: \.value, \.aInt64, isHeld: { if case .aInt64 = $0 { true } else { false } }) {
            $1(&$0.aInt64)
        },
        .member("aUint32", of: \.value, \.aUint32, isHeld: { if case .aUint32 = $0 { true } else { false } }) {
            $1(&$0.aUint32)
        },
        .member("aUint64", of: \.value, \.aUint64, isHeld: { if case .aUint64 = $0 { true } else { false } }) {
            $1(&$0.aUint64)
        },
        .member("aSint32", of: \.value, \.aSint32, isHeld: { if case .aSint32 = $0 { true } else { false } }) {
            $1(&$0.aSint32)
        },
        .member("aSint64", of: \.value, \.aSint64, isHeld: { if case .aSint64 = $0 { true } else { false } }) {
            $1(&$0.aSint64)
        },
        .member("aFixed32", of: \.value, \.aFixed32, isHeld: { if case .aFixed32 = $0 { true } else { false } }) {
            $1(&$0.aFixed32)
        },
        .member("aFixed64", of: \.value, \.aFixed64, isHeld: { if case .aFixed64 = $0 { true } else { false } }) {
            $1(&$0.aFixed64)
        },
        .member("aSfixed32", of: \.value, \.aSfixed32, isHeld: { if case .aSfixed32 = $0 { true } else { false } }) {
            $1(&$0.aSfixed32)
        },
        .member("aSfixed64", of: \.value, \.aSfixed64, isHeld: { if case .aSfixed64 = $0 { true } else { false } }) {
            $1(&$0.aSfixed64)
        },
        .member("aBool", of: \.value, \.aBool, isHeld: { if case .aBool = $0 { true } else { false } }) {
            $1(&$0.aBool)
        },
        .member("aString", of: \.value, \.aString, isHeld: { if case .aString = $0 { true } else { false } }) {
            $1(&$0.aString)
        },
        .member("aBytes", of: \.value, \.aBytes, isHeld: { if case .aBytes = $0 { true } else { false } }) {
            $1(&$0.aBytes)
        },
        .member("aColor", of: \.value, \.aColor, isHeld: { if case .aColor = $0 { true } else { false } }) {
            $1(&$0.aColor)
        },
        .member("aPoint", of: \.value, \.aPoint, isHeld: { if case .aPoint = $0 { true } else { false } }) {
            $1(&$0.aPoint)
        },
        .member(
            "anotherPoint",
            of: \.value,
            \.anotherPoint,
            isHeld: { if case .anotherPoint = $0 { true } else { false } }
        ) { $1(&$0.anotherPoint) },
        .member("nested", of: \.value, \.nested, isHeld: { if case .nested = $0 { true } else { false } }) {
            $1(&$0.nested)
        },
        .implicit("after", \.after) { $1(&$0.after) },
    ]
}

extension Test_Scalars_Proto3_MapValues: FuzzedMessage {
    nonisolated(unsafe) static let fields: [Field<Self>] = [
        .implicit("byDouble", \.byDouble) { $1(&$0.byDouble) },
        .implicit("byFloat", \.byFloat) { $1(&$0.byFloat) },
        .implicit("byInt32", \.byInt32) { $1(&$0.byInt32) },
        .implicit("byInt64", \.byInt64) { $1(&$0.byInt64) },
        .implicit("byUint32", \.byUint32) { $1(&$0.byUint32) },
        .implicit("byUint64", \.byUint64) { $1(&$0.byUint64) },
        .implicit("bySint32", \.bySint32) { $1(&$0.bySint32) },
        .implicit("bySint64", \.bySint64) { $1(&$0.bySint64) },
        .implicit("byFixed32", \.byFixed32) { $1(&$0.byFixed32) },
        .implicit("byFixed64", \.byFixed64) { $1(&$0.byFixed64) },
        .implicit("bySfixed32", \.bySfixed32) { $1(&$0.bySfixed32) },
        .implicit("bySfixed64", \.bySfixed64) { $1(&$0.bySfixed64) },
        .implicit("byBool", \.byBool) { $1(&$0.byBool) },
        .implicit("byString", \.byString) { $1(&$0.byString) },
        .implicit("byBytes", \.byBytes) { $1(&$0.byBytes) },
        .implicit("byColor", \.byColor) { $1(&$0.byColor) },
        .implicit("byPoint", \.byPoint) { $1(&$0.byPoint) },
    ]
}

extension Test_Scalars_Proto3_MapKeys: FuzzedMessage {
    nonisolated(unsafe) static let fields: [Field<Self>] = [
        .implicit("ofInt32", \.ofInt32) { $1(&$0.ofInt32) },
        .implicit("ofInt64", \.ofInt64) { $1(&$0.ofInt64) },
        .implicit("ofUint32", \.ofUint32) { $1(&$0.ofUint32) },
        .implicit("ofUint64", \.ofUint64) { $1(&$0.ofUint64) },
        .implicit("ofSint32", \.ofSint32) { $1(&$0.ofSint32) },
        .implicit("ofSint64", \.ofSint64) { $1(&$0.ofSint64) },
        .implicit("ofFixed32", \.ofFixed32) { $1(&$0.ofFixed32) },
        .implicit("ofFixed64", \.ofFixed64) { $1(&$0.ofFixed64) },
        .implicit("ofSfixed32", \.ofSfixed32) { $1(&$0.ofSfixed32) },
        .implicit("ofSfixed64", \.ofSfixed64) { $1(&$0.ofSfixed64) },
        .implicit("ofBool", \.ofBool) { $1(&$0.ofBool) },
        .implicit("ofString", \.ofString) { $1(&$0.ofString) },
    ]
}

extension Test_Imports_Tree: FuzzedMessage {
    nonisolated(unsafe) static let fields: [Field<Self>] = [
        .implicit("name", \.name) { $1(&$0.name) },
        .explicit("left", \.left, has: \.hasLeft, clear: { $0.clearLeft() }) { $1(&$0.left) },
        .explicit("right", \.right, has: \.hasRight, clear: { $0.clearRight() }) { $1(&$0.right) },
        .implicit("children", \.children) { $1(&$0.children) },
        .implicit("named", \.named) { $1(&$0.named) },
        .member("branch", of: \.grafted, \.branch, isHeld: { if case .branch = $0 { true } else { false } }) {
            $1(&$0.branch)
        },
        .member("leaf", of: \.grafted, \.leaf, isHeld: { if case .leaf = $0 { true } else { false } }) { $1(&$0.leaf) },
    ]
}

extension Test_Imports_Tree.Leaf: FuzzedMessage {
    nonisolated(unsafe) static let fields: [Field<Self>] = [
        .explicit("tree", \.tree, has: \.hasTree, clear: { $0.clearTree() }) { $1(&$0.tree) },
        .explicit("vein", \.vein, has: \.hasVein, clear: { $0.clearVein() }) { $1(&$0.vein) },
    ]
}

extension Test_Imports_Tree.Leaf.Vein: FuzzedMessage {
    nonisolated(unsafe) static let fields: [Field<Self>] = [
        .explicit("leaf", \.leaf, has: \.hasLeaf, clear: { $0.clearLeaf() }) { $1(&$0.leaf) },
        .explicit("vein", \.vein, has: \.hasVein, clear: { $0.clearVein() }) { $1(&$0.vein) },
    ]
}
