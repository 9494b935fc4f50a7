import LifelineCore
import Testing

struct SerialTableTests {
    /// Beside a dictionary: numbers that follow one another, that meet, and that are anywhere.
    @Test(arguments: 1...40 as ClosedRange<UInt64>) func itAgreesWithADictionary(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var (table, model) = (SerialTable<Int>(), [UInt32: Int]())
        var next: UInt32 = seed % 2 == 0 ? 0 : .max - 50
        for step in 0..<2_000 {
            let key: UInt32
            switch Int.random(in: 0..<4, using: &random) {
            case 0: key = model.keys.sorted().randomElement(using: &random) ?? 0
            case 1: key = UInt32.random(in: 0...UInt32.max, using: &random)
            case 2: key = UInt32.random(in: 0..<64, using: &random) << 26
            default:
                next &+= 1
                key = next
            }
            // Fuller and emptier by turns.
            switch Int.random(in: 0..<(step / 300 % 2 == 0 ? 6 : 12), using: &random) {
            case 0, 1, 2:
                #expect(table.insertNew(key, step) == (model[key] == nil))
                model[key] = model[key] ?? step
            case 3:
                table[key] = step
                model[key] = step
            case 4:
                table[key]? += 1
                model[key]? += 1
            case 5, 6, 7:
                table[key] = nil
                model[key] = nil
            default: #expect(table.removeValue(forKey: key) == model.removeValue(forKey: key))
            }
            #expect(table.count == model.count && table[key] == model[key])
        }
        #expect(table.elements.map(\.key) == model.keys.sorted())
        for (key, value) in table.elements { #expect(model[key] == value) }
        for key in model.keys { #expect(table.removeValue(forKey: key) != nil) }
        #expect(table.isEmpty && table.elements.isEmpty)
    }

    @Test func whatThrowsInTheMiddleLeavesTheValue() {
        struct Failure: Error {}
        func fail(_ value: inout Int) throws { throw Failure() }
        var table = SerialTable<Int>()
        table[7] = 1
        #expect(throws: Failure.self) { try table[7].map { _ in throw Failure() } }
        #expect(throws: Failure.self) { if table[7] != nil { try fail(&table[7]!) } }
        #expect(table[7] == 1 && table.count == 1)
    }
}
