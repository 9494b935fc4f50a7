import LifelineClientTestSupport
import LifelineCore
import LifelineRuntime
import Testing

@Suite(.timeLimit(.minutes(1))) struct SharedTimerTests {
    private let clock = ManualClock()
    private let ran = Notes<Int>()
    private var timer: SharedTimer { SharedTimer(clock: clock) }

    private func run(_ number: Int, in milliseconds: Int, by timer: SharedTimer) -> SharedTimer.CallID {
        timer.run(at: clock.now + .milliseconds(milliseconds)) { [ran] in ran.add(number) }
    }

    /// Moves the clock once the timer sleeps until then.
    private func advance(by milliseconds: Int) async throws {
        let time = clock.now + .milliseconds(milliseconds)
        try await until { clock.nextWakeUp == time }
        clock.advance(to: time)
    }

    @Test func callsRunAtTheirDeadlines() async throws {
        let timer = timer
        for (number, delay) in [(1, 20), (2, 10), (3, 30)] { _ = run(number, in: delay, by: timer) }
        for numbers in [[2], [2, 1], [2, 1, 3]] {
            try await advance(by: 10)
            try await until { ran.count == numbers.count }
            #expect(ran.all == numbers)
        }
        try await until { clock.nextWakeUp == nil }
    }

    @Test func anEarlierDeadlineShortensTheSleep() async throws {
        let timer = timer
        _ = run(1, in: 1_000, by: timer)
        try await until { clock.nextWakeUp == clock.now + .seconds(1) }
        _ = run(2, in: 5, by: timer)
        try await advance(by: 5)
        try await until { ran.all == [2] }
        try await advance(by: 995)
        try await until { ran.all == [2, 1] }
    }

    @Test func aDeadlineThatHasPassedRunsAtOnce() async throws {
        let timer = timer
        _ = run(1, in: -5, by: timer)
        try await until { ran.all == [1] }
    }

    @Test func whatIsCancelledDoesNotRun() async throws {
        let timer = timer
        let first = run(1, in: 10, by: timer)
        _ = run(2, in: 20, by: timer)
        let third = run(3, in: 20, by: timer)
        timer.cancel(first)
        timer.cancel(third)
        // It wakes up for the first, as that is cheaper than to sleep anew.
        try await advance(by: 10)
        try await advance(by: 10)
        try await until { ran.count == 1 }
        #expect(ran.all == [2])
    }

    @Test func withoutCallsNothingSleeps() async throws {
        let timer = timer
        let only = run(1, in: 10, by: timer)
        try await until { clock.nextWakeUp != nil }
        timer.cancel(only)
        try await until { clock.nextWakeUp == nil }
        // It may have run, or never was.
        timer.cancel(only)
        timer.cancel(99)
        _ = run(2, in: 10, by: timer)
        try await advance(by: 10)
        try await until { ran.all == [2] }
    }

    /// With thousands of deadlines a second, it sleeps at least 1 ms after it has woken up.
    @Test func closeDeadlinesWakeItUpTogether() async throws {
        let timer = timer
        _ = run(0, in: 10, by: timer)
        for number in 1...9 {
            _ = timer.run(at: clock.now + .milliseconds(10) + .microseconds(100 * number)) { [ran] in ran.add(number) }
        }
        try await advance(by: 10)
        try await until { ran.all == [0] }
        try await advance(by: 1)
        try await until { ran.count == 10 }
        #expect(Set(ran.all) == Set(0...9))
    }

    @Test func aCancelledCallIsReleased() {
        let timer = timer
        weak var held: Notes<Int>?
        let call: SharedTimer.CallID
        do {
            let notes = Notes<Int>()
            held = notes
            call = timer.run(at: clock.now + .seconds(1)) { notes.add(1) }
        }
        #expect(held != nil)
        timer.cancel(call)
        #expect(held == nil)
    }
}
