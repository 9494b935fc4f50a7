import LifelineTesting
import Testing

@Suite struct SimulationTests {
    @Test func eventsHappenInTheOrderOfTheirTimes() {
        let simulation = Simulation(seed: 1)
        var order: [Int] = []
        simulation.schedule(after: .seconds(2)) { order.append(3) }
        simulation.schedule(after: .seconds(1)) { order.append(1) }
        simulation.schedule(after: .seconds(1)) { order.append(2) }
        simulation.run(for: .seconds(3))
        #expect(order == [1, 2, 3])
        #expect(simulation.now == MonotonicTime(nanoseconds: 3_000_000_000))
    }
}
