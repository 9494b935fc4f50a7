/// Values that were taken out of messages, or will be put into some. They share memory with the messages, and changes
/// of one must not affect the other.
final class Held {
    private struct Item<Content: Fuzzed>: AnyItem {
        var content: Content
        var expected: Value

        mutating func change(_ choices: inout Choices, _ held: Held) {
            content.change(&expected, &choices, held)
        }

        func checkAll() {
            checkEqual(content.model, expected, "A \(Content.self) that was held has changed")
        }
    }

    private protocol AnyItem {
        var expected: Value { get }
        mutating func change(_ choices: inout Choices, _ held: Held)
        func checkAll()
    }

    private var items: [any AnyItem] = []
    private static let limit = 8

    /// Holds a value that has to equal `model`, and to stay equal.
    func hold(_ value: some Fuzzed, _ model: Value) {
        if items.count == Self.limit { items.removeFirst() }
        items.append(Item(content: value, expected: model))
    }

    /// One of the values of a type, selected by `choice`.
    func pick<Content: Fuzzed>(_: Content.Type, _ choice: UInt8) -> (Content, Value)? {
        let candidates = items.compactMap { $0 as? Item<Content> }
        guard !candidates.isEmpty else { return nil }
        let item = candidates[Int(choice) % candidates.count]
        return (item.content, item.expected)
    }

    /// Changes one of the values in place. The values that share its memory must not change.
    func change(_ choices: inout Choices) {
        guard !items.isEmpty else { return }
        // Removed from the array during the change, which may hold and select others.
        var item = items.remove(at: choices.below(items.count))
        item.change(&choices, self)
        let extent = item.expected.extent
        if extent.depth <= Limits.largestDepth, extent.count <= Limits.largestCount { items.append(item) }
    }

    func drop(_ choices: inout Choices) {
        if !items.isEmpty { items.remove(at: choices.below(items.count)) }
    }

    func checkAll() {
        for item in items { item.checkAll() }
    }
}
