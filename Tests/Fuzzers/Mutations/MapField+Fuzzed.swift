internal import LifelineMessages

extension MapField: Fuzzed where Key: FuzzedElement, Value: FuzzedElement {
    static var emptyModel: Mutations.Value { .map([:]) }

    static func make(_ choices: inout Choices, _ held: Held) -> (Self, Mutations.Value) {
        var map = MapField()
        var model = emptyModel
        for _ in 0..<choices.below(4) { map.changeValue(&model.map, &choices, held) }
        return (map, model)
    }

    var model: Mutations.Value {
        var model: [Mutations.Value: Mutations.Value] = [:]
        for (key, value) in self {
            check(model.updateValue(value.model, forKey: key.model) == nil, "A key stands twice in a map")
            check(self[key]?.model == value.model, "Looking up a key finds something else")
        }
        check(model.count == count)
        return .map(model)
    }

    mutating func change(_ model: inout Mutations.Value, _ choices: inout Choices, _ held: Held) {
        switch choices.below(8) {
        case 0: held.hold(self, model)
        case 1: (self, model) = Self.makeOrPick(&choices, held)
        case 2:
            removeAll()
            model = Self.emptyModel
        case 3: changeExistingValue(&model.map, &choices, held)
        default: changeValue(&model.map, &choices, held)
        }
    }

    private mutating func changeExistingValue(
        _ model: inout [Mutations.Value: Mutations.Value],
        _ choices: inout Choices,
        _ held: Held
    ) {
        guard count > 0 else { return }
        let (key, value) = self[index(startIndex, offsetBy: choices.below(Swift.min(count, 256)))]
        switch choices.below(3) {
        case 0: held.hold(value, value.model)
        case 1: check(removeValue(forKey: key)?.model == model.removeValue(forKey: key.model))
        default:
            let before = value.model
            changeInPlace(&self[key, default: Value()]) { value in
                held.hold(value, before)
                value.change(&model[key.model, default: before], &choices, held)
            }
        }
    }

    private mutating func changeValue(
        _ model: inout [Mutations.Value: Mutations.Value],
        _ choices: inout Choices,
        _ held: Held
    ) {
        let key = Key.make(&choices, held).0
        switch choices.below(6) {
        case 0:
            check(removeValue(forKey: key)?.model == model.removeValue(forKey: key.model))
        case 1:
            self[key] = nil
            model[key.model] = nil
        case 2:
            changeInPlace(&self[key, default: Value()]) {
                $0.change(&model[key.model, default: Value.emptyModel], &choices, held)
            }
        case 3:
            let (value, valueModel) = Value.makeOrPick(&choices, held)
            let old = updateValue(value, forKey: key)
            check(old?.model == model.updateValue(valueModel, forKey: key.model))
        default:
            let (value, valueModel) = Value.makeOrPick(&choices, held)
            self[key] = value
            model[key.model] = valueModel
        }
        check(self[key]?.model == model[key.model])
    }

    static func merge(_ new: Mutations.Value, into old: Mutations.Value) -> Mutations.Value {
        .map(old.map.merging(new.map) { $1 })
    }
}
