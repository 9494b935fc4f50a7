import LifelineTesting
import Testing

@Suite struct SimulationTests {
    @Test func eventsRunByTimeAndThenInTheOrderOfScheduling() {
        let simulation = Simulation(seed: 1)
        var order: [Int] = []
        simulation.schedule(after: .seconds(2)) { order.append(4) }
        simulation.schedule(after: .seconds(1)) { order.append(1) }
        simulation.schedule(after: .seconds(1)) {
            order.append(2)
            // An event in the past is due at once, after those that were due already.
            simulation.schedule(at: MonotonicTime(nanoseconds: 0)) { order.append(3) }
        }
        simulation.schedule(after: .seconds(9)) { order.append(5) }
        simulation.run(for: .seconds(3))
        #expect(order == [1, 2, 3, 4])
        #expect(simulation.now == MonotonicTime(nanoseconds: 3_000_000_000))
        #expect(simulation.pendingEventCount == 1)
    }

    @Test func randomEventsRunInTheOrderOfASortedArray() {
        let simulation = Simulation(seed: 2)
        var expected: [(time: Int64, number: Int)] = []
        var happened: [Int] = []
        var ids: [Simulation.EventID] = []
        for number in 0..<500 {
            let time = Int64.random(in: 0..<100, using: &simulation.random)
            ids.append(simulation.schedule(at: MonotonicTime(nanoseconds: time)) { happened.append(number) })
            expected.append((time, number))
        }
        for number in stride(from: 0, to: 500, by: 3) {
            simulation.cancel(ids[number])
            simulation.cancel(ids[number])
        }
        expected.removeAll { $0.number.isMultiple(of: 3) }
        expected.sort { ($0.time, $0.number) < ($1.time, $1.number) }
        while simulation.runNextEvent() {}
        #expect(happened == expected.map(\.number))
        simulation.cancel(ids[1])
        #expect(simulation.pendingEventCount == 0)
    }

    @Test func tracesHaveTimes() {
        let simulation = Simulation(seed: 3)
        simulation.schedule(after: .milliseconds(1_500)) { simulation.note("late") }
        simulation.run(for: .seconds(2))
        simulation.isTracing = false
        simulation.note("unseen")
        #expect(simulation.trace == ["1.500000000 s late"])
    }
}
