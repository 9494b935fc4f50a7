internal import BenchmarkReport
internal import Testing

@Suite struct MeasurementsTests {
    @Test func resultsAreMediansInTheOrderOfContenders() {
        var measurements = Measurements()
        for value in [3.0, 1, 8] { measurements.add(CaseName.oneWay, "32 B", ContenderName.c, [(.rate, value)]) }
        measurements.add(CaseName.oneWay, "32 B", ContenderName.batches, [(.rate, 6)])
        let rows = measurements.results().rows
        #expect(rows.map(\.contender) == [ContenderName.batches, ContenderName.c])
        #expect(rows.map(\.value) == [6, 3])
        #expect(rows.map(\.ratio) == [1, 2])
        #expect(measurements.results(of: [CaseName.accept]).rows.isEmpty)
    }

    @Test func ratesAreOursOverTheOthersAndByCPUThoseOfTheBusierSide() throws {
        var measurements = Measurements()
        let ours: [(Metric, Double)] = [(.rate, 30), (.clientCPU, 4), (.serverCPU, 5)]
        let theirs: [(Metric, Double)] = [(.rate, 120), (.clientCPU, 2), (.serverCPU, 1)]
        measurements.add(CaseName.oneWay, "32 B", ContenderName.batches, ours)
        measurements.add(CaseName.oneWay, "32 B", ContenderName.c, theirs)
        let goal = try #require(measurements.goal("one-way, 32 B: batches over C"))
        #expect(goal.value == 0.25)
        #expect(goal.valueByCPU == 0.4)
        #expect(goal.verdict == .missed)
    }

    @Test func ratesOfMessagesAreInMillions() throws {
        var measurements = Measurements()
        let values: [(Metric, Double)] = [(.rate, 6_000_000), (.clientCPU, 100), (.serverCPU, 250)]
        measurements.add(CaseName.pushes, "32 B", ContenderName.pushes, values)
        let goal = try #require(measurements.goal("pushes, 32 B, millions/s"))
        #expect(goal.value == 6)
        #expect(goal.valueByCPU == 4)
        #expect(measurements.goal("pushes, 32 B: client, CPU ns")?.verdict == .met)
        #expect(measurements.goal("pushes, 32 B: server, CPU ns")?.verdict == .missed)
    }

    @Test func decodedMessagesOfSessionsAreComparedWithPlainOnesByTheCostOfBothSides() {
        var measurements = Measurements()
        let plain: [(Metric, Double)] = [(.clientCPU, 200), (.serverCPU, 600)]
        measurements.add(CaseName.oneWayChat, WorkloadName.chat, ContenderName.chat, plain)
        let session: [(Metric, Double)] = [(.clientCPU, 700), (.serverCPU, 300)]
        measurements.add(CaseName.serverStream, WorkloadName.chat, ContenderName.streams, session)
        #expect(measurements.goal("server-stream, chat: CPU over plain messages")?.value == 1.25)
        #expect(measurements.goal("client-stream, chat: CPU over plain messages")?.verdict == nil)
    }

    @Test func roundTripsAreOursOverTheOthers() throws {
        var measurements = Measurements()
        measurements.add(CaseName.roundTrip, "32 B", ContenderName.batches, [(.median, 40)])
        measurements.add(CaseName.roundTrip, "32 B", ContenderName.grpcStream, [(.median, 500)])
        #expect(measurements.goal("round trip: both ours over gRPC")?.value == 0.08)
        #expect(measurements.goal("round trip: both ours over gRPC")?.verdict == .met)
        #expect(measurements.goal("round trip: both ours over C")?.verdict == nil)
    }

    @Test func memoryIsTheServersInKilobytes() {
        var measurements = Measurements()
        let server = ContenderName.pair(ContenderName.c, ContenderName.batches)
        let bytes: [(Metric, Double)] = [(.clientMemory, 100), (.serverMemory, 4_500)]
        measurements.add(CaseName.idleMemory, WorkloadName.idle, server, bytes)
        #expect(measurements.goal("idle server connection, KB")?.value == 4.5)
    }

    @Test func growthIsTheLastOverTheLeastBeforeAndOverThatOfC() {
        var measurements = Measurements()
        let server = ContenderName.pair(ContenderName.c, ContenderName.batches)
        let costs = [(1, 20.0, 10.0), (100, 10, 4), (10_000, 30, 8)]
        for (count, ours, theirs) in costs {
            let workload = WorkloadName.connections(count)
            measurements.add(CaseName.growthWithConnections, workload, server, [(.serverCPU, ours)])
            measurements.add(CaseName.growthWithConnections, workload, ContenderName.c, [(.serverCPU, theirs)])
        }
        #expect(measurements.goal("growth of server CPU with connections, over C's")?.value == 1.5)
    }

    @Test func withoutMeasurementsNoGoalHasAVerdict() {
        let goals = Measurements().goals
        #expect(goals.count == 40)
        #expect(goals.allSatisfy { $0.verdict == nil })
    }
}

extension Measurements {
    fileprivate mutating func add(_ case: String, _ workload: String, _ contender: String, _ values: [(Metric, Double)])
    {
        let samples = values.map { Sample(workload: workload, metric: $0, value: $1) }
        add(samples, case: `case`, contender: contender)
    }

    fileprivate func goal(_ name: String) -> Goal? { goals.first { $0.name == name } }
}
