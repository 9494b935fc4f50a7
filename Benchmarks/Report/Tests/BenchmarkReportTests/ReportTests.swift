internal import BenchmarkReport
internal import Foundation
internal import Testing

@Suite struct ReportTests {
    @Test func ratiosSayHowManyTimesWorseThanTheFirst() {
        var results = Results()
        results.add([("lifeline", 20), ("other", 50)], case: "parse", workload: "chat", unit: "ns")
        results.add([("lifeline", 20), ("other", 50)], case: "send", workload: "chat", unit: "1/s", isRate: true)
        #expect(results.rows.map(\.ratio) == [1, 2.5, 1, 0.4])
    }

    @Test func ratiosHaveThreeDigits() {
        var results = Results()
        results.add([("lifeline", 30), ("other", 7000), ("third", 0.4)], case: "parse", workload: "chat", unit: "ns")
        #expect(results.rows.map(\.ratio) == [1, 233, 0.0133])
    }

    @Test func whatCannotBeDividedHasNoRatio() throws {
        var results = Results()
        results.add([("lifeline", 0), ("other", 5)], case: "idle", workload: "after", unit: "bytes")
        results.add([("lifeline", 5), ("other", 0)], case: "send", workload: "chat", unit: "1/s", isRate: true)
        #expect(results.rows.map(\.ratio) == [nil, nil, 1, nil])
        #expect(try JSONDecoder().decode(Results.self, from: results.encoded()).rows == results.rows)
        #expect(results.table(of: ["lifeline", "other"]).contains(" 5.0 (     -)"))
        let chart = Chart(results, title: "Cost", contenders: ["lifeline", "other"], footnote: "")
        #expect(chart.svg.contains("<title>other: 5.0 bytes</title>"))
    }

    @Test func nothingToCompareAddsNoRows() {
        var results = Results()
        results.add([], case: "parse", workload: "chat", unit: "ns")
        #expect(results.rows.isEmpty)
    }

    @Test func rowsAreShownByCaseAndUnit() {
        var results = Results()
        for workload in ["small", "large"] {
            results.add([("lifeline", 2), ("other", 3)], case: "echo", workload: workload, unit: "ns")
            results.add([("lifeline", 2)], case: "echo", workload: workload, unit: "1/s", isRate: true)
        }
        #expect(results.panels.map(\.unit) == ["ns", "1/s"])
        #expect(results.panels.map(\.workloads) == [["small", "large"], ["small", "large"]])
        let order = ["other", "lifeline"]
        #expect(results.panels.map { $0.contenders(of: order) } == [["other", "lifeline"], ["lifeline"]])
        #expect(results.panels[0].reference(of: "large")?.contender == "lifeline")
        #expect(results.panels[0].row("large", "other")?.value == 3)
    }

    @Test func jsonIsReadBack() throws {
        var results = Results()
        results.add([("lifeline", 20), ("other", 50)], case: "parse", workload: "chat", unit: "ns")
        #expect(try JSONDecoder().decode(Results.self, from: results.encoded()).rows == results.rows)
    }

    @Test func tableComparesWithTheFirst() {
        var results = Results()
        results.add([("lifeline", 20), ("other", 5)], case: "parse", workload: "chat", unit: "ns")
        let lines = results.table(of: ["lifeline", "other"]).split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines[1].hasSuffix(" 20         "))
        #expect(lines[2].hasSuffix(" 5.0 ( 0.250)"))
    }

    @Test func chartDrawsABarForEachRow() {
        var results = Results()
        results.add([("lifeline", 20), ("other", 50)], case: "parse", workload: "chat", unit: "ns")
        let svg = Chart(results, title: "Cost", contenders: ["lifeline", "other"], footnote: "").svg
        #expect(svg.contains("<title>lifeline: 20.0 ns</title>"))
        #expect(svg.contains("<title>other: 50.0 ns</title>"))
    }

    @Test func chartNamesContendersInAsManyLinesAsTheyTake() {
        var results = Results()
        let contenders = (1...9).map { "a contender's long name \($0)" }
        results.add(contenders.map { ($0, 20) }, case: "parse", workload: "chat", unit: "ns")
        let svg = Chart(results, title: "Cost", contenders: contenders, footnote: "").svg
        let lines = svg.matches(of: #/<text x="41" y="(\d+)"/#).map(\.output.1)
        #expect(lines == ["74", "92", "110", "128", "146"])
        #expect(svg.contains("height=\"396\""))
    }

    @Test(arguments: [([], nil), ([3], 3), ([5, 1, 3], 3), ([4, 1, 2, 9], 3)] as [([Double], Double?)])
    func medianIsTheMiddle(values: [Double], median: Double?) {
        #expect(values.median == median)
    }

    @Test func goalsAreMetAtTheirBound() {
        #expect(Goal("rate", .atLeast(2), value: 2).verdict == .met)
        #expect(Goal("rate", .atLeast(2), value: 1.99).verdict == .missed)
        #expect(Goal("cost", .atMost(2), value: 2).verdict == .met)
        #expect(Goal("cost", .atMost(2), value: 2.01).verdict == .missed)
        #expect(Goal("cost", .atMost(2), value: nil).verdict == nil)
        #expect(Goal("cost", .atMost(2), value: .nan).verdict == nil)
    }

    @Test func goalsSayWhenTheClockAndTheProcessorDisagree() {
        #expect(Goal("rate", .atLeast(2), value: 2, byCPU: 3).verdict == .met)
        #expect(Goal("rate", .atLeast(2), value: 1, byCPU: 1).verdict == .missed)
        #expect(Goal("rate", .atLeast(2), value: 1, byCPU: 3).verdict == .metByCPU)
        #expect(Goal("rate", .atLeast(2), value: 3, byCPU: 1).verdict == .missedByCPU)
        #expect(Goal("rate", .atLeast(2), value: 3, byCPU: .infinity).verdict == .met)
    }

    @Test func goalsThatWereNotMeasuredAreShownAsSuch() {
        let goals = [Goal("rate", .atLeast(2), value: 3), Goal("cost", .atMost(2), value: nil)]
        let lines = goals.table.split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines[1].hasSuffix(" met"))
        #expect(lines[2].hasSuffix(" not measured"))
    }

    @Test func goalsTellBoundsAndNumbersApartThatAreNearlyTheSame() {
        let table = [Goal("cost", .atMost(1.0 / 12), value: 0.0841)].table
        #expect(table.contains("<= 0.0833"))
        #expect(table.contains(" 0.0841"))
        #expect(table.hasSuffix(" MISSED"))
    }
}
