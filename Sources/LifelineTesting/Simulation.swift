package import LifelineCore

/// A clock that jumps from event to event, and the queue of these events.
///
/// Time passes only while the simulation runs, as fast as it can run its events: an hour of outages takes milliseconds.
/// Everything follows from the seed: the same program with the same seed gives the same trace, byte for byte.
///
/// A simulation and its parts belong to one task or thread.
package final class Simulation {
    /// The number from which all randomness follows.
    package let seed: UInt64
    /// The time.
    package private(set) var now = MonotonicTime(nanoseconds: 0)
    /// The source of all randomness. Taking numbers from it changes the rest of the simulation.
    package var random: SimulationRandom
    /// Whether to record the trace. Default: true. Without it, a simulation takes about half the time.
    package var isTracing = true
    /// The events until now, one line each, which begins with the time.
    package var trace: [String] { notes.map(\.line) }
    /// The events until now.
    private(set) var notes: [Note] = []

    private struct Event {
        let id: EventID
        let body: () -> Void
    }

    /// The next event is the last element. Few events are pending at a time, so a sorted array is the fastest queue,
    /// and keeps no cancelled events.
    private var events: [Event] = []
    private var lastNumber: UInt64 = 0

    /// Makes a simulation at time 0.
    package init(seed: UInt64) {
        self.seed = seed
        random = SimulationRandom(seed: seed)
    }

    /// The identity of a scheduled event.
    package struct EventID: Hashable, Sendable {
        /// When it happens.
        package let time: MonotonicTime
        /// Events of the same time happen in the order of their scheduling.
        fileprivate let number: UInt64

        fileprivate func isBefore(_ other: EventID) -> Bool {
            (time, number) < (other.time, other.number)
        }
    }

    /// The number of scheduled events.
    package var pendingEventCount: Int { events.count }

    /// The time of the next event, if any.
    package var nextEventTime: MonotonicTime? { events.last?.id.time }

    /// Runs `body` at `time`, or now if that is past.
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

    /// Cancels an event; does nothing if it has happened.
    package func cancel(_ id: EventID) {
        let place = place(of: id)
        if place < events.count, events[place].id == id { events.remove(at: place) }
    }

    /// Cancels all events. Call it at the end, because scheduled events keep what they use in memory, including the
    /// simulation.
    package func cancelAllEvents() {
        events = []
    }

    /// Whether an event has not happened yet.
    package func isPending(_ id: EventID) -> Bool {
        let place = place(of: id)
        return place < events.count && events[place].id == id
    }

    /// Runs the next event. Returns false if there is none.
    @discardableResult
    package func runNextEvent() -> Bool {
        guard let event = events.popLast() else { return false }
        now = event.id.time
        event.body()
        return true
    }

    /// Runs all events up to and including `time`, which is then the present time.
    package func run(until time: MonotonicTime) {
        while let next = nextEventTime, next <= time { runNextEvent() }
        now = max(now, time)
    }

    /// Runs all events within `duration`.
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

    /// The position of an event, or where it belongs.
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
