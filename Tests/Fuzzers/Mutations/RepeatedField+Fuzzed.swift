internal import LifelineMessages

extension RepeatedField: Fuzzed where Element: FuzzedElement {
    static var emptyModel: Value { .list([]) }

    static func make(_ choices: inout Choices, _ held: Held) -> (Self, Value) {
        var list = RepeatedField()
        var model: [Value] = []
        for _ in 0..<choices.below(4) {
            let (element, elementModel) = Element.makeOrPick(&choices, held)
            list.append(element)
            model.append(elementModel)
        }
        return (list, .list(model))
    }

    var model: Value {
        let elements = map(\.model)
        check(elements.count == count && isEmpty == elements.isEmpty)
        withContiguousStorageIfAvailable { check($0.map(\.model) == elements, "Storage and elements differ") }
        return .list(elements)
    }

    mutating func change(_ model: inout Value, _ choices: inout Choices, _ held: Held) {
        switch choices.below(4) {
        case 0: changeElement(&model.list, &choices, held)
        case 1: changeCount(&model.list, &choices, held)
        case 2: changeAsAWhole(&model, &choices, held)
        default:
            let (element, elementModel) = Element.makeOrPick(&choices, held)
            append(element)
            model.list.append(elementModel)
        }
    }

    private mutating func changeElement(_ model: inout [Value], _ choices: inout Choices, _ held: Held) {
        guard count > 0 else { return }
        let index = choices.below(Swift.min(count, 256))
        switch choices.below(5) {
        case 0:
            (self[index], model[index]) = Element.makeOrPick(&choices, held)
        case 1:
            held.hold(self[index], model[index])
        case 2:
            let other = choices.below(Swift.min(count, 256))
            swapAt(index, other)
            model.swapAt(index, other)
        case 3:
            // Copies the element while it is lent.
            let before = model[index]
            changeInPlace(&self[index]) { element in
                held.hold(element, before)
                element.change(&model[index], &choices, held)
            }
        default:
            changeInPlace(&self[index]) { $0.change(&model[index], &choices, held) }
        }
    }

    private mutating func changeCount(_ model: inout [Value], _ choices: inout Choices, _ held: Held) {
        let start = choices.below(Swift.min(count + 1, 256))
        let end = start + choices.below(Swift.min(count - start + 1, 256))
        switch choices.below(4) {
        case 0:
            let (new, newModel) = Self.make(&choices, held)
            replaceSubrange(start..<end, with: new)
            model.replaceSubrange(start..<end, with: newModel.list)
        case 1:
            // A part of the list that is being changed.
            guard count <= 32 else { return }
            replaceSubrange(start..<end, with: self[start...])
            model.replaceSubrange(start..<end, with: model[start...])
        case 2:
            removeSubrange(start..<end)
            model.removeSubrange(start..<end)
        default:
            let (element, elementModel) = Element.makeOrPick(&choices, held)
            insert(element, at: start)
            model.insert(elementModel, at: start)
        }
    }

    private mutating func changeAsAWhole(_ model: inout Value, _ choices: inout Choices, _ held: Held) {
        switch choices.below(6) {
        case 0: held.hold(self, model)
        case 1: (self, model) = Self.makeOrPick(&choices, held)
        case 2:
            removeAll(keepingCapacity: choices.below(2) == 0)
            model.list.removeAll()
        case 3: reserveCapacity(choices.below(64))
        case 4: check(RepeatedField(Array(self)).model == model)
        default:
            guard count <= 32 else { return }
            append(contentsOf: self)
            model.list += model.list
        }
    }

    static func merge(_ new: Value, into old: Value) -> Value { .list(old.list + new.list) }
}

/// An `inout` argument makes Swift change a place itself instead of a copy of it.
func changeInPlace<Place>(_ place: inout Place, _ body: (inout Place) -> Void) {
    body(&place)
}
