import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import Testing

@Suite struct RepeatedFieldTests {
    @Test func behavesAsAnArrayUnderRandomChanges() {
        var generator = SeededGenerator(seed: 42)
        for _ in 0..<200 {
            var model: [String] = []
            var list = RepeatedField<String>()
            for step in 0..<60 {
                let position = Int.random(in: 0...model.count, using: &generator)
                let text = String(repeating: "é", count: step % 7) + "\(step)"
                switch Int.random(in: 0..<8, using: &generator) {
                case 0, 1: list.append(text); model.append(text)
                case 2: list.insert(text, at: position); model.insert(text, at: position)
                case 3 where position < model.count: list.remove(at: position); model.remove(at: position)
                case 4 where position < model.count: list[position] = text; model[position] = text
                case 5 where position < model.count: list[position] += text; model[position] += text
                case 6:
                    let range = position..<Int.random(in: position...model.count, using: &generator)
                    let new = [text, "x", text].prefix(Int.random(in: 0...3, using: &generator))
                    list.replaceSubrange(range, with: new)
                    model.replaceSubrange(range, with: new)
                default:
                    list += list[position...]
                    model += model[position...]
                    if model.count > 100 { list.removeLast(60); model.removeLast(60) }
                }
                #expect(Array(list) == model)
            }
        }
    }

    @Test func sortsAndReverses() {
        var numbers: RepeatedField<Int32> = [3, 1, 2]
        numbers.sort()
        #expect(numbers == [1, 2, 3])
        numbers.reverse()
        #expect(numbers == [3, 2, 1])
        numbers.swapAt(0, 2)
        #expect(numbers == [1, 2, 3])
        #expect(numbers.withContiguousStorageIfAvailable { $0.reduce(0, +) } == 6)
    }

    @Test func aListCanTakeItsOwnElements() {
        var message = ChatMessage.with { $0.attachments = [.with { $0.url = "a" }] }
        message.attachments.append(message.attachments[0])
        message.attachments.append(contentsOf: message.attachments)
        message.attachments[3].url = "d"
        #expect(message.attachments.map(\.url) == ["a", "a", "a", "d"])
    }

    @Test func emptyingAndRefillingKeepsNothingOld() {
        var message = ChatMessage.with { $0.mentions = [1, 2, 3] }
        message.mentions.removeAll()
        #expect(message.mentions.isEmpty)
        message.mentions += [4]
        message.mentions.removeAll(keepingCapacity: true)
        message.mentions += [5, 6]
        #expect(message.mentions == [5, 6])
    }
}

@Suite struct MapFieldTests {
    @Test func behavesAsADictionaryUnderRandomChanges() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<100 {
            var model: [Int64: String] = [:]
            var map = MapField<Int64, String>()
            for step in 0..<80 {
                let key = Int64.random(in: -10...10, using: &generator)
                switch Int.random(in: 0..<5, using: &generator) {
                case 0: #expect(map.removeValue(forKey: key) == model.removeValue(forKey: key))
                case 1: #expect(map.updateValue("\(step)", forKey: key) == model.updateValue("\(step)", forKey: key))
                case 2: map[key] = nil; model[key] = nil
                case 3: map[key, default: ""] += "\(step)"; model[key, default: ""] += "\(step)"
                default: map[key] = "\(step)"; model[key] = "\(step)"
                }
                #expect(map[key] == model[key])
                #expect(map.map(\.key) == model.keys.sorted())
                #expect(Dictionary(uniqueKeysWithValues: map.map { ($0, $1) }) == model)
            }
        }
    }

    @Test func mapsAreMergedAndTransformed() throws {
        struct Conflict: Error {}
        var map: MapField<String, Int32> = ["a": 1, "b": 2]
        map.merge(["b": 10, "c": 3]) { $0 + $1 }
        #expect(map == ["a": 1, "b": 12, "c": 3])
        #expect(map.merging(map) { _, new in new } == map)
        map.merge([(key: "d", value: 4), (key: "d", value: 5)]) { old, _ in old }
        #expect(map["d"] == 4)
        let before = map
        #expect(throws: Conflict.self) {
            try map.merge([(key: "e", value: 6), (key: "a", value: 7)]) { _, _ in throw Conflict() }
        }
        #expect(map["a"] == 1 && before["e"] == nil)
        let texts: MapField<String, String> = before.mapValues { "\($0)" }
        #expect(texts == ["a": "1", "b": "12", "c": "3", "d": "4"])
        #expect(before.compactMapValues { $0 > 3 ? [UInt8($0)] : nil } == ["b": [12], "d": [4]])
    }

    @Test func keysAreOrderedByTheirBytes() {
        let map: MapField<String, Int32> = ["b": 1, "": 2, "a": 3, "é": 4, "aa": 5]
        #expect(Array(map.keys) == ["", "a", "aa", "b", "é"])
        #expect(map["é"] == 4)
        #expect(map["z"] == nil)
        let flags: MapField<Bool, Bool> = [true: false, false: true]
        #expect(Array(flags.keys) == [false, true])
    }

    @Test func messagesInAMapAreChangedInPlace() {
        var map = MapField<UInt32, Sample_Chat_V1_User>()
        map[1, default: .init()].name = "Ada"
        let before = map
        map[1, default: .init()].name += "!"
        map[2, default: .with { $0.name = "Bob" }].level = 2
        #expect(before[1]?.name == "Ada")
        #expect(map.values.map(\.name) == ["Ada!", "Bob"])
        #expect(map[2]?.level == 2)
    }

    @Test func theLastOfEqualKeysCounts() {
        let map: MapField<String, Int32> = ["a": 1, "a": 2]
        #expect(map == ["a": 2])
        #expect(map.count == 1)
    }

    /// "é" in its two forms is two keys of a map, for their bytes differ, but one of a dictionary.
    @Test func aDictionaryOfKeysThatAreCanonicallyEquivalent() throws {
        let (composed, decomposed) = ("\u{E9}", "\u{65}\u{301}")
        let map: MapField<String, Int32> = [composed: 1, decomposed: 2, "z": 3]
        #expect(map.keys.map { Array($0.utf8) } == [Array(decomposed.utf8), Array("z".utf8), Array(composed.utf8)])
        #expect(Dictionary(map) == ["z": 3, composed: 1])
        let message = try ChatMessage(
            serializedBytes: ChatMessage.with { $0.reactions[composed] = 1 }.serializedBytes()
        )
        #expect(Dictionary(message.reactions) == [decomposed: 1])
    }

    @Test func aDictionaryOfAMap() {
        #expect(Dictionary(MapField<UInt64, Bool>()) == [:])
        #expect(Dictionary([1: .with { $0.name = "Ada" }] as MapField<UInt32, Sample_Chat_V1_User>)[1]?.name == "Ada")
    }
}
