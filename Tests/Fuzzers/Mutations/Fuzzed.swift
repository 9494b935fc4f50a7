internal import LifelineMessages

/// A type of the library's API that is changed together with its model, and can be read as a model.
protocol Fuzzed: Equatable {
    init()

    /// The model of an empty value.
    static var emptyModel: Value { get }

    /// A new value and its model.
    static func make(_ choices: inout Choices, _ held: Held) -> (Self, Value)

    /// The model of this value, read through the API.
    var model: Value { get }

    /// Makes one change to this value, and the same to its model.
    mutating func change(_ model: inout Value, _ choices: inout Choices, _ held: Held)

    /// The model of a field with `old` after an encoding with `new` was merged into it.
    static func merge(_ new: Value, into old: Value) -> Value
}

/// Types that can be in repeated fields and maps.
protocol FuzzedElement: Fuzzed, FieldElement {}

extension Fuzzed {
    /// A new value, or one that shares memory with another.
    static func makeOrPick(_ choices: inout Choices, _ held: Held) -> (Self, Value) {
        if choices.below(3) == 0, let picked = held.pick(Self.self, choices.byte()) { return picked }
        return make(&choices, held)
    }
}

// MARK: - Scalars

/// A type without parts: it changes by being replaced.
protocol FuzzedScalar: FuzzedElement {
    static func make(_ choices: inout Choices) -> Self
}

extension FuzzedScalar {
    static var emptyModel: Value { Self().model }

    static func make(_ choices: inout Choices, _: Held) -> (Self, Value) {
        let scalar = Self.make(&choices)
        return (scalar, scalar.model)
    }

    mutating func change(_ model: inout Value, _ choices: inout Choices, _ held: Held) {
        (self, model) = Self.make(&choices, held)
    }

    static func merge(_ new: Value, into _: Value) -> Value { new }
}

extension FuzzedScalar where Self: FixedWidthInteger {
    static func make(_ choices: inout Choices) -> Self {
        switch choices.below(8) {
        case 0: .min
        case 1: .max
        case 2: 0
        case 3: 0 &- 1
        case 4: Self(truncatingIfNeeded: choices.word())
        default: Self(choices.below(100))
        }
    }

    var model: Value { .number(UInt64(truncatingIfNeeded: self)) }
}

extension Int32: FuzzedScalar {}
extension Int64: FuzzedScalar {}
extension UInt32: FuzzedScalar {}
extension UInt64: FuzzedScalar {}

extension Double: FuzzedScalar {
    static func make(_ choices: inout Choices) -> Double {
        let examples = [0, -0.0, 1.5, -.infinity, .nan, Double(nan: 5, signaling: true), .leastNonzeroMagnitude]
        let choice = choices.below(examples.count + 1)
        return choice < examples.count ? examples[choice] : Double(bitPattern: choices.word())
    }

    var model: Value { .number(bitPattern) }
}

extension Float: FuzzedScalar {
    static func make(_ choices: inout Choices) -> Float {
        let examples: [Float] = [0, -0.0, 1.5, -.infinity, .nan, .leastNonzeroMagnitude]
        let choice = choices.below(examples.count + 1)
        return choice < examples.count
            ? examples[choice] : Float(bitPattern: UInt32(truncatingIfNeeded: choices.word()))
    }

    var model: Value { .number(UInt64(bitPattern)) }
}

extension Bool: FuzzedScalar {
    static func make(_ choices: inout Choices) -> Bool { choices.byte() & 1 != 0 }
    var model: Value { .number(self ? 1 : 0) }
}

extension String: FuzzedScalar {
    static func make(_ choices: inout Choices) -> String {
        // The short ones are often equal, like keys. The last ones do not fit into the place of a shorter one, or into
        // an inline String.
        let examples = ["", "a", "b", "\u{E9}", "e\u{301}", "nul\0", "fifteen bytes ..", "\u{1F600}"]
        let choice = choices.below(examples.count + 2)
        return choice < examples.count ? examples[choice] : String(repeating: "long ", count: choices.below(60))
    }

    var model: Value { .bytes(Array(utf8)) }
}

extension [UInt8]: FuzzedScalar, FuzzedElement, Fuzzed {
    static func make(_ choices: inout Choices) -> [UInt8] {
        let byte = choices.byte()
        return [UInt8](repeating: byte, count: choices.below(4) == 0 ? choices.below(200) : choices.below(20))
    }

    var model: Value { .bytes(self) }
}
