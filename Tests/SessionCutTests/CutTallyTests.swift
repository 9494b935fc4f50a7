import SessionCutSupport
import Testing

/// The check of two records of sent messages.
@Suite struct CutTallyTests {
    private static let messageCount = 160

    private let server: [CutRecord.Entry?]
    private let client: [CutRecord.Entry?]

    init() {
        (server, client) = (CutTallyTests.entries(ofServer: true), CutTallyTests.entries(ofServer: false))
    }

    @Test func allInOrder() {
        let tally = CutTally(of: CutTallyTests.messageCount, server: server, client: client)
        #expect([tally.lost, tally.doubled, tally.reordered, tally.damaged] == [0, 0, 0, 0])
        #expect(tally.findings.isEmpty)
        let counted = CutFlow.allCases.filter { $0 != .replies }.map { $0.count(of: CutTallyTests.messageCount) }
        #expect(counted.reduce(0, +) == CutTallyTests.messageCount)
    }

    @Test(arguments: CutFlow.allCases) func oneIsLost(_ flow: CutFlow) {
        let tally = tally(changing: flow) { $0.remove(at: 3) }
        #expect(tally.lost == 1 && tally.doubled == 0 && tally.reordered == 0 && tally.damaged == 0)
        #expect(tally.findings == ["\(flow): 1 lost: 4"])
    }

    @Test(arguments: CutFlow.allCases) func theLastIsLost(_ flow: CutFlow) {
        #expect(tally(changing: flow) { $0.removeLast() }.lost == 1)
    }

    @Test(arguments: CutFlow.allCases) func oneComesTwice(_ flow: CutFlow) {
        // Directly after, and much later.
        for distance in [1, 5] {
            let tally = tally(changing: flow) { $0.insert($0[2], at: 2 + distance) }
            #expect(tally.doubled == 1 && tally.lost == 0 && tally.reordered == 0 && tally.damaged == 0)
        }
    }

    @Test(arguments: CutFlow.allCases) func twoChangePlaces(_ flow: CutFlow) {
        let tally = tally(changing: flow) { $0.swapAt(4, 5) }
        #expect(tally.reordered == (flow.isOrdered ? 1 : 0))
        #expect(tally.lost == 0 && tally.doubled == 0 && tally.damaged == 0)
    }

    @Test(arguments: CutFlow.allCases) func oneIsDamaged(_ flow: CutFlow) {
        let tally = tally(changing: flow) { $0[1] = CutRecord.Entry(flow, 2, isIntact: false) }
        #expect(tally.damaged == 1 && tally.lost == 1 && tally.doubled == 0 && tally.reordered == 0)
    }

    @Test(arguments: CutFlow.allCases) func oneWasNotSent(_ flow: CutFlow) {
        let count = flow.count(of: CutTallyTests.messageCount)
        for number in [0, -1, count + 1] {
            let tally = tally(changing: flow) { $0.append(CutRecord.Entry(flow, number)) }
            #expect(tally.damaged == 1 && tally.lost == 0 && tally.doubled == 0 && tally.reordered == 0)
        }
    }

    @Test(arguments: CutFlow.allCases) func oneIsOnTheWrongSide(_ flow: CutFlow) {
        let stray = [CutRecord.Entry(flow, 1)]
        let tally = CutTally(
            of: CutTallyTests.messageCount,
            server: server + (flow.isHandledByServer ? [] : stray),
            client: client + (flow.isHandledByServer ? stray : [])
        )
        #expect(tally.damaged == 1)
    }

    @Test func aLineIsNoEntry() {
        #expect(CutTally(of: CutTallyTests.messageCount, server: server + [nil], client: client).damaged == 1)
    }

    /// Entries of the other flows are in between.
    private func tally(changing flow: CutFlow, _ change: (inout [CutRecord.Entry]) -> Void) -> CutTally {
        func changed(_ entries: [CutRecord.Entry?]) -> [CutRecord.Entry?] {
            var own = entries.compactMap { $0 }.filter { $0.flow == flow }
            change(&own)
            return entries.filter { $0?.flow != flow } + own
        }
        return CutTally(
            of: CutTallyTests.messageCount,
            server: flow.isHandledByServer ? changed(server) : server,
            client: flow.isHandledByServer ? client : changed(client)
        )
    }

    /// The entries of all flows are mixed.
    private static func entries(ofServer isServer: Bool) -> [CutRecord.Entry?] {
        let flows = CutFlow.allCases.filter { $0.isHandledByServer == isServer }
        return (1...messageCount).flatMap { number in
            flows.filter { number <= $0.count(of: messageCount) }.map { CutRecord.Entry($0, number) }
        }
    }
}
