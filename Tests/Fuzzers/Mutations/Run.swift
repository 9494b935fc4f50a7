internal import LifelineMessages
internal import TestProtos

/// Reads a sequence of changes from `bytes`, and makes them to messages and to a model in plain Swift. Traps when the
/// two disagree.
public func run(bytes: [UInt8]) {
    var choices = Choices(bytes)
    switch choices.below(7) {
    case 0: runSteps(on: Test_Imports_Tree.self, &choices)
    case 1: runSteps(on: Test_Scalars_Proto3_Choice.self, &choices)
    case 2: runSteps(on: Test_Scalars_Proto3_Packed.self, &choices)
    case 3: runSteps(on: Test_Scalars_Proto3_MapValues.self, &choices)
    case 4: runSteps(on: Test_Scalars_Proto3_MapKeys.self, &choices)
    case 5: runSteps(on: Test_Scalars_Proto3_Optional.self, &choices)
    default: runSteps(on: Test_Scalars_Proto3_Singular.self, &choices)
    }
}

private func runSteps<M: FuzzedMessage>(on _: M.Type, _ choices: inout Choices) {
    var slots = Slots<M>()
    while !choices.isEmpty {
        slots.step(&choices)
        slots.checkAll()
    }
}

/// The maximum size of lists that are appended to themselves, and of trees that are put into themselves.
enum Limits {
    static let largestDepth = 40
    static let largestCount = 400
}

/// A few messages of one type, which are copied into and merged with each other.
private struct Slots<M: FuzzedMessage> {
    private var messages = [M](repeating: M(), count: 3)
    private var models = [Value](repeating: M.emptyModel, count: 3)
    private let held = Held()

    func checkAll() {
        for (message, model) in zip(messages, models) {
            checkEqual(message.model, model, "A message is not what it should be")
        }
        held.checkAll()
    }

    mutating func step(_ choices: inout Choices) {
        let slot = choices.below(messages.count)
        let other = choices.below(messages.count)
        switch choices.below(16) {
        case 0: (messages[slot], models[slot]) = (messages[other], models[other])
        case 1: held.hold(messages[slot], models[slot])
        case 2: held.change(&choices)
        case 3: held.drop(&choices)
        case 4: (messages[slot], models[slot]) = M.makeOrPick(&choices, held)
        case 5: messages[slot] = encodedAndDecoded(slot)
        case 6: merge(other, into: slot)
        case 7: compare(slot, other)
        case 8: addUnknownFields(slot, &choices)
        case 9: failToMerge(other, into: slot, &choices)
        default: messages[slot].change(&models[slot], &choices, held)
        }
        let extent = models[slot].extent
        if extent.depth > Limits.largestDepth || extent.count > Limits.largestCount {
            (messages[slot], models[slot]) = (M(), M.emptyModel)
        }
    }

    private func encoded(_ slot: Int) -> [UInt8] {
        do {
            return try messages[slot].serializedBytes()
        } catch {
            fatalError("A message cannot be encoded: \(error)")
        }
    }

    private func encodedAndDecoded(_ slot: Int) -> M {
        let bytes = encoded(slot)
        do {
            let message = try M(serializedBytes: bytes)
            let again = try message.serializedBytes()
            check(message == messages[slot], "A message is not equal to what its encoding decodes to")
            check(again == bytes, "A message's encoding is not canonical")
            try messages[slot].withDelimitedBytes { delimited in
                check(delimited.suffix(bytes.count).elementsEqual(bytes))
                let prefixes = delimited.prefix { $0 >= 0x80 }
                check(delimited.count == bytes.count + prefixes.count + 1 || bytes.count < 128)
            }
            return message
        } catch {
            fatalError("What was encoded cannot be decoded: \(error)")
        }
    }

    private mutating func merge(_ other: Int, into slot: Int) {
        do {
            try messages[slot].merge(serializedBytes: encoded(other))
        } catch {
            fatalError("What was encoded cannot be merged: \(error)")
        }
        models[slot] = M.merge(models[other], into: models[slot])
    }

    private mutating func failToMerge(_ other: Int, into slot: Int, _ choices: inout Choices) {
        // Field number 0, behind something that is valid.
        let bytes = encoded(other) + [0]
        do {
            try messages[slot].merge(serializedBytes: bytes)
            fatalError("Field number 0 was accepted")
        } catch {
            check(error.code == .invalidTag)
        }
    }

    private func compare(_ slot: Int, _ other: Int) {
        let areEqual = messages[slot] == messages[other]
        check(areEqual == (models[slot] == models[other]), "== says \(areEqual), the model not")
        check(!areEqual || messages[slot].hashValue == messages[other].hashValue, "Equal, with unequal hashes")
        check(!areEqual || "\(messages[slot])" == "\(messages[other])", "Equal, with unequal descriptions")
    }

    private mutating func addUnknownFields(_ slot: Int, _ choices: inout Choices) {
        guard choices.below(3) > 0 else {
            messages[slot].removeUnknownFields()
            models[slot].fields[unknownFieldsName] = nil
            return
        }
        // A varint of field 1,000, or a group of it.
        let unknown: [UInt8] = choices.below(2) == 0 ? [0xc0, 0x3e, choices.byte() & 0x7f] : [0xc3, 0x3e, 0xc4, 0x3e]
        do {
            try messages[slot].merge(serializedBytes: unknown)
        } catch {
            fatalError("A field that is not known was refused: \(error)")
        }
        models[slot] = M.merge(.message([unknownFieldsName: .bytes(unknown)]), into: models[slot])
    }
}
