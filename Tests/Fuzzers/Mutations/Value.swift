/// The content of a message or one of its fields in plain Swift: the model for comparing messages.
///
/// Text is represented by its UTF-8 and a floating-point number by its bits, because messages compare them in this way.
/// Swift's own `==` regards "é" in one scalar and in two as equal.
enum Value: Hashable {
    case number(UInt64)
    case bytes([UInt8])
    case list([Value])
    case map([Value: Value])
    /// The fields that are present, by name.
    case message([String: Value])

    var list: [Value] {
        get { if case .list(let list) = self { list } else { [] } }
        set { self = .list(newValue) }
    }

    var map: [Value: Value] {
        get { if case .map(let map) = self { map } else { [:] } }
        set { self = .map(newValue) }
    }

    var fields: [String: Value] {
        get { if case .message(let fields) = self { fields } else { [:] } }
        set { self = .message(newValue) }
    }

    /// The nesting depth of messages, and the number of all values.
    var extent: (depth: Int, count: Int) {
        switch self {
        case .number: (0, 1)
        case .bytes(let bytes): (0, 1 + bytes.count / 16)
        case .list(let list): Self.sum(list, levels: 0)
        case .map(let map): Self.sum(map.values, levels: 1)
        case .message(let fields): Self.sum(fields.values, levels: 1)
        }
    }

    private static func sum(_ values: some Sequence<Value>, levels: Int) -> (depth: Int, count: Int) {
        var sum = (depth: 0, count: 1)
        for extent in values.lazy.map(\.extent) {
            sum.depth = max(sum.depth, extent.depth)
            sum.count += extent.count
        }
        sum.depth += levels
        return sum
    }
}
