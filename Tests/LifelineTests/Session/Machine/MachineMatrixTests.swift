import Lifeline
import LifelineCore
import Testing

/// Every state × every event: the actions, the frames that are then offered, and the next state, so that no pair is
/// undecided.
@Suite struct MachineMatrixTests {
    /// Returns the actions of an event in a situation, the frames that are then offered, and the changes.
    static func result(of event: MachineMatrixEvent, in situation: MachineMatrixSituation) -> String {
        let end = situation.makeEnd()
        let before = end.state
        let done = end.apply(event)
        if let now = event.time {
            // Otherwise the timer would fire again and again while there is no room for frames.
            #expect(end.machine.nextDeadline.map { $0 > now } ?? true, "\(situation.name): \(event)")
        }
        let isOfferWanted = end.machine.wantsOffer(now: .ms(10))
        let said = end.settle(hasRoom: event != .offeredWithoutRoom, now: .ms(10))
        #expect(isOfferWanted || said.isEmpty, "\(situation.name): \(event)")
        let changes = end.state.changes(since: before)
        let parts = [abbreviated(done), abbreviated(said), changes.isEmpty ? "" : "=> \(changes)"]
        let result = parts.filter { !$0.isEmpty }.joined(separator: " ")
        return result.isEmpty ? "nothing" : result
    }

    /// Shortens the outcomes of busy situations when their session is lost or ends, and the end of the first connection
    /// when another one takes over the session.
    private static func abbreviated(_ result: String) -> String {
        result
            .replacing(
                "fail r1 sessionLost, fail r2 sessionLost, cancel 7, cancel 8, #1 inDoubt, left over 50 inDoubt, "
                    + "#2 inDoubt, left over 51 inDoubt",
                with: "<lost>"
            )
            .replacing(
                "fail r1 sessionLost, fail r2 sessionLost, fail r3 notSent, cancel 7, cancel 8, #1 inDoubt, "
                    + "left over 50 inDoubt, #2 inDoubt, left over 51 inDoubt, #3 unsent, left over 52 unsent",
                with: "<over>"
            )
            .replacing(
                "fail r1 sessionLost, fail r2 sessionLost, fail r3 notSent, cancel 7, cancel 8, #1 inDoubt, "
                    + "left over 50 inDoubt, #2 inDoubt, left over 51 inDoubt, #3 inDoubt, left over 52 inDoubt",
                with: "<over, #3 inDoubt>"
            )
            .replacing("say replaced on 1, close 1 endSending", with: "<replaced>")
    }

    /// Returns the result in few words: `nothing` if it is the same as in the rows of `offered`, in which nothing
    /// happens; and only the violation if the rest is the same as in the rows of `noFrame`.
    private static func summary(of event: MachineMatrixEvent, in situation: MachineMatrixSituation) -> String {
        let result = result(of: event, in: situation)
        if event != .offered, result == offered[situation.name] { return "nothing" }
        if event != .noFrame, let violation = result.firstMatch(of: /violated (\w+)/)?.1,
            result == noFrame[situation.name]?.replacing("violated undecodable", with: "violated \(violation)")
        {
            return "violated \(violation)"
        }
        return result
    }

    private static let offered = results(of: .offered)
    private static let noFrame = results(of: .noFrame)

    private static func results(of event: MachineMatrixEvent) -> [String: String] {
        let results = MachineMatrixSituation.all.map { ($0.name, result(of: event, in: $0)) }
        return Dictionary(uniqueKeysWithValues: results)
    }

    /// The rows of an event: the situations and their results. The most frequent result is last.
    static func rows(of event: MachineMatrixEvent) -> [String] {
        var results: [(situations: [String], result: String)] = []
        for situation in MachineMatrixSituation.all {
            let result = summary(of: event, in: situation)
            if let same = results.firstIndex(where: { $0.result == result }) {
                results[same].situations.append(situation.name)
            } else {
                results.append(([situation.name], result))
            }
        }
        let most = results.map(\.situations.count).max() ?? 0
        let last = results.firstIndex { $0.situations.count == most } ?? 0
        let rows = results.indices.filter { $0 != last }.map { index in
            "\(shortened(results[index].situations)): \(results[index].result)"
        }
        return rows + ["others: \(results[last].result)"]
    }

    /// A star stands for a state together with its draining variants.
    private static func shortened(_ names: [String]) -> String {
        var names = names
        for state in names where names.contains(state + "-draining") {
            let all = MachineMatrixSituation.all.map(\.name).filter { $0 == state || $0.hasPrefix(state + "-drain") }
            guard all.allSatisfy(names.contains), let index = names.firstIndex(of: state) else { continue }
            names[index] = state + "*"
            names.removeAll { all.contains($0) }
        }
        return names.joined(separator: " ")
    }

    @Test(arguments: MachineMatrixEvent.allCases) func everyPair(event: MachineMatrixEvent) {
        let rows = Self.rows(of: event)
        if rows != Self.expected[event] {
            let text = rows.map { "            \"\($0)\"," }.joined(separator: "\n")
            Issue.record("        .\(event): [\n\(text)\n        ],")
        }
    }

    @Test(arguments: MachineNarrowSituation.allCases) func everyNarrowPair(situation: MachineNarrowSituation) throws {
        let expected = try #require(Self.expectedOfNarrow[situation])
        let rows = try expected.map { row in
            let event = try #require(MachineMatrixEvent(rawValue: String(row.prefix { $0 != ":" })), "\(row)")
            return "\(event): \(Self.result(of: event, in: MachineMatrixSituation(situation)))"
        }
        if rows != expected {
            let text = rows.map { "            \"\($0)\"," }.joined(separator: "\n")
            Issue.record("        .\(situation): [\n\(text)\n        ],")
        }
    }

    /// The situations cover all states: no event leads out of them.
    @Test func noEventLeadsOutOfTheStates() {
        func kind(_ end: MachineMatrixEnd) -> String {
            let state = end.state
            return "\(end.role) \(state.stage) \(state.connection) \(state.drain)"
        }
        let known = Set(MachineMatrixSituation.all.map { kind($0.makeEnd()) })
        var reached: [String: String] = [:]
        for situation in MachineMatrixSituation.all {
            for event in MachineMatrixEvent.allCases {
                let end = situation.makeEnd()
                _ = end.apply(event)
                reached[kind(end)] = "\(situation.name), \(event)"
                _ = end.settle(hasRoom: event != .offeredWithoutRoom, now: .ms(10))
                reached[kind(end)] = "\(situation.name), \(event)"
            }
        }
        for (state, path) in reached where !known.contains(state) { Issue.record("\(state) by \(path)") }
    }
}
