package import LifelineCore

/// A clock that jumps from event to event, and everything that waits for a time on it.
///
/// Time passes only while the simulation runs, and then as fast as its events can be worked off: an hour of outages
/// takes milliseconds. Everything that happens follows from the seed: the same program with the same seed gives the
/// same trace, byte for byte.
///
/// It belongs to one task or thread, as does everything that is part of it.
package final class Simulation {
    /// The number from which all randomness follows.
    package let seed: UInt64
    /// The time.
    package private(set) var now = MonotonicTime(nanoseconds: 0)
    /// The source of all randomness. Taking numbers from it changes the rest of the simulation.
    package var random: SimulationRandom
    /// Whether lines are added to the trace. Default: true. Without them, a simulation takes about half the time.
    package var isTracing = true
    /// The events until now, a line each, beginning with the time.
    package var trace: [String] { notes.map(\.line) }
    /// The same, as it was noted.
    private(set) var notes: [Note] = []

    private struct Event {
        let id: EventID
        let body: () -> Void
    }

    /// The next one last. Few events are pending at a time, so that a sorted array is the fastest queue, and forgets
    /// what is cancelled.
    private var events: [Event] = []
    private var lastNumber: UInt64 = 0

    /// Makes a simulation at time 0.
    package init(seed: UInt64) {
        self.seed = seed
        random = SimulationRandom(seed: seed)
    }

    /// The name of an event that is to happen.
    package struct EventID: Hashable, Sendable {
        /// When it happens.
        package let time: MonotonicTime
        /// Events of one time happen in the order in which they were scheduled.
        fileprivate let number: UInt64

        fileprivate func isBefore(_ other: EventID) -> Bool {
            (time, number) < (other.time, other.number)
        }
    }

    /// How many events are to happen.
    package var pendingEventCount: Int { events.count }

    /// When the next event happens; nil when none will.
    package var nextEventTime: MonotonicTime? { events.last?.id.time }

    /// Runs `body` at `time`; a time that is past counts as now.
    @discardableResult
    package func schedule(at time: MonotonicTime, _ body: @escaping () -> Void) -> EventID {
        lastNumber += 1
        let id = EventID(time: max(time, now), number: lastNumber)
        events.insert(Event(id: id, body: body), at: place(of: id))
        return id
    }

    /// Runs `body` after `delay`.
    @discardableResult
    package func schedule(after delay: Duration, _ body: @escaping () -> Void) -> EventID {
        schedule(at: now + delay, body)
    }

    /// Takes an event back; one that has happened is none of its business.
    package func cancel(_ id: EventID) {
        let place = place(of: id)
        if place < events.count, events[place].id == id { events.remove(at: place) }
    }

    /// Takes everything back. Who has finished with a simulation calls this: events that are to happen keep what they
    /// concern in memory, the simulation itself included.
    package func cancelAllEvents() {
        events = []
    }

    /// Whether an event is still to happen.
    package func isPending(_ id: EventID) -> Bool {
        let place = place(of: id)
        return place < events.count && events[place].id == id
    }

    /// Runs the next event. False when there is none.
    @discardableResult
    package func runNextEvent() -> Bool {
        guard let event = events.popLast() else { return false }
        now = event.id.time
        event.body()
        return true
    }

    /// Runs what happens up to `time`, that time included; then it is `time`.
    package func run(until time: MonotonicTime) {
        while let next = nextEventTime, next <= time { runNextEvent() }
        now = max(now, time)
    }

    /// Runs what happens within `duration`.
    package func run(for duration: Duration) {
        run(until: now + duration)
    }

    /// Adds a line to the trace.
    package func note(_ line: @autoclosure () -> String) {
        note(.text(line()), at: .simulation)
    }

    /// Adds an event to the trace.
    func note(_ event: @autoclosure () -> Note.Event, at place: @autoclosure () -> Note.Place) {
        if isTracing { notes.append(Note(time: now, place: place(), event: event())) }
    }

    /// Where an event is, or would be.
    private func place(of id: EventID) -> Int {
        var low = 0
        var high = events.count
        while low < high {
            let middle = low + (high - low) / 2
            if id.isBefore(events[middle].id) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
