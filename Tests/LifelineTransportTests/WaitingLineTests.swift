import LifelineTestSupport
import Testing

@testable import LifelineTransport

@Suite struct WaitingLineTests {
    /// Beside an array that does the same the simple way.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func likeAnArray(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var line = WaitingLine()
        var model: [(id: UInt64, byteCount: Int)] = []
        var lastID: UInt64 = 0
        for _ in 0..<3_000 {
            switch Int.random(in: 0..<100, using: &random) {
            case ..<50:
                let byteCount = Int.random(in: 0..<10, using: &random)
                lastID += 1
                let id = line.append(byteCount: byteCount)
                #expect(id == lastID)
                model.append((lastID, byteCount))
            case ..<75:
                let id = UInt64.random(in: 0...lastID + 1, using: &random)
                let index = model.firstIndex { $0.id == id }
                let wasRemoved = line.remove(id)
                #expect(wasRemoved == (index != nil))
                if let index { model.remove(at: index) }
            case ..<99:
                let first = line.popFirst()
                let expected = model.isEmpty ? nil : model.removeFirst()
                #expect(first?.id == expected?.id && first?.byteCount == expected?.byteCount)
            default:
                let all = line.removeAll()
                #expect(all == model.map(\.id))
                model = []
            }
            #expect(line.count == model.count && line.isEmpty == model.isEmpty)
            #expect(line.placeCount <= 2 * model.count + 64)
        }
    }

    /// Sends with a time limit, behind one that waits for ever.
    @Test func cancelledSendsTakeNoMemory() {
        var line = WaitingLine()
        _ = line.append(byteCount: 1)
        for _ in 0..<10_000 {
            let wasRemoved = line.remove(line.append(byteCount: 1))
            #expect(wasRemoved)
        }
        #expect(line.placeCount < 100)
        let rest = [line.popFirst()?.id, line.popFirst()?.id]
        #expect(rest == [1, nil])
    }
}
