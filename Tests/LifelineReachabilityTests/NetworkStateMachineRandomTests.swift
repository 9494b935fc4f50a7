import LifelineCore
import LifelineReachability
import LifelineTestSupport
import Testing

/// Random networks, kernels and timers, against a plain model of the required reports and their deadlines.
@Suite struct NetworkStateMachineRandomTests {
    @Test(arguments: 0..<60 as Range<UInt64>)
    func reportsAreTrueAndInTime(seed: UInt64) throws {
        var world = World(seed: seed)
        try world.run(for: 40_000)
        // Each of them had events.
        #expect(world.changeCount > 20 && world.publications > 10 && world.dumpCount > 50, "\(world.summary)")
    }

    @Test func whereNothingHappensTheKernelIsAskedEveryFiveSeconds() throws {
        var world = World(seed: 1)
        world.isQuiet = true
        try world.run(for: 60_000)
        #expect(world.publications == 1 && (12...13).contains(world.dumpCount), "\(world.summary)")
    }
}

/// A changing network, the kernel that reports changes, and a driver, in milliseconds.
private struct World {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The events that the machine waits for.
    private enum Pending {
        case opening(until: Int64, fails: Bool)
        /// `seen` is the result of the dump; nil while the kernel has not begun it.
        case dump(begun: Int64, until: Int64, seen: Int?, isConsistent: Bool)
    }

    var isQuiet = false
    private(set) var changeCount = 0
    private(set) var publications = 0
    private(set) var dumpCount = 0

    private let seed: UInt64
    private var random: SeededGenerator
    private var machine = NetworkStateMachine(configuration: NetworkMonitorConfiguration())
    private var now: Int64 = 0
    private var pending: Pending?
    private var hasSocket = false
    private var timerAt: Int64?

    // The real state.
    private var truth = 1
    private var truthSince: Int64 = 0
    /// The deadline for reporting it if the machine gets no event.
    private var dueUntold = afterSilence
    /// The same, if there were events after it.
    private var told: (first: Int64, last: Int64)?
    /// The machine has an excuse until then, because the kernel failed.
    private var excusedUntil: Int64 = 0
    /// Lost carriers that the kernel will report later.
    private var lateEvents: [Int64] = []
    private var lastCarrierReport = Int64.min / 2
    private var knowsOfCarrierReport = false
    /// The times of received events.
    private var events: [Int64] = []
    /// The times of signs of change: events, and dumps that found a change.
    private var signs: [Int64] = []
    private var isFirstDumpOfSocket = true

    private static let quiet: Int64 = 100
    private static let poll: Int64 = 5_000
    private static let dumpLength: Int64 = 6
    /// Timers are up to 3 ms late, up to twice in a row, and opening a socket takes up to 4 ms.
    private static let slack: Int64 = 12
    /// From the last event to the report: the current dump, the quiet period, a dump.
    private static let afterEvent = dumpLength + quiet + dumpLength + slack
    /// Without an event: until the next poll, which checks twice.
    private static let afterSilence = poll + dumpLength + afterEvent
    /// While the kernel may hold events back, it is polled more often.
    private static let afterHiddenLoss = quiet / 4 + dumpLength + afterEvent
    /// While it is never quiet: three quiet periods, and repeated dumps.
    private static let afterFirstEvent = 3 * quiet + 6 * (dumpLength + slack)
    private static let afterFailure = slack + dumpLength + afterFirstEvent
    private static let dumpTimeout: Int64 = 5_000

    init(seed: UInt64) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
    }

    var summary: String { "seed \(seed): \(changeCount) changes, \(publications) publications, \(dumpCount) dumps" }

    // MARK: -

    mutating func run(for duration: Int64) throws {
        try perform(machine.started(now: time))
        while now < duration {
            now += 1
            if !isQuiet { try happen() }
            deliverLateEvents()
            try finishPending()
            try fireTimer()
            try check()
        }
    }

    private var time: MonotonicTime { MonotonicTime(nanoseconds: now * 1_000_000) }

    private mutating func chance(_ perMille: Int) -> Bool { Int.random(in: 0..<1_000, using: &random) < perMille }

    // MARK: The network

    /// Calm and stormy seconds alternate.
    private mutating func happen() throws {
        let isStorm = now / 1_000 % 7 == Int64(seed % 7)
        if chance(isStorm ? 15 : 1) {
            change()
            if chance(400) {
                event(.other)
            } else if chance(700) {
                reportCarrier()
            }
        }
        // Events without meaning for the path.
        if chance(isStorm ? 30 : 1) { event(chance(300) ? .link : .other) }
        if chance(1), chance(200), hasSocket { try loseSocket() }
    }

    private mutating func change() {
        // A few values, so that a change may be reversed.
        truth = (truth + Int.random(in: 1...2, using: &random)) % 3
        (truthSince, changeCount) = (now, changeCount + 1)
        (dueUntold, told) = (now + Self.afterSilence, nil)
    }

    /// The kernel reports once a second. It holds earlier changes until the end of that second.
    private mutating func reportCarrier() {
        let report = max(now, lastCarrierReport + 1_000)
        if lateEvents.last != report { lateEvents.append(report) }
        // After the last report, the machine knows that the next one may be held back.
        if knowsOfCarrierReport, report > now { dueUntold = now + Self.afterHiddenLoss }
    }

    private mutating func deliverLateEvents() {
        while let report = lateEvents.first, report <= now {
            lateEvents.removeFirst()
            (lastCarrierReport, knowsOfCarrierReport) = (now, hasSocket)
            event(.link)
        }
    }

    /// The change is reported, unless there is no socket.
    private mutating func event(_ subject: NetworkStateMachine.Subject) {
        guard hasSocket else { return }
        events.append(now)
        signs.append(now)
        machine.receivedEvent(about: subject, now: time)
        if case .dump(let begun, let until, let seen, _) = pending, chance(500) {
            pending = .dump(begun: begun, until: until, seen: seen, isConsistent: false)
        }
        told = (told?.first ?? now, now)
    }

    private mutating func excuse(for duration: Int64) {
        excusedUntil = max(excusedUntil, now + duration)
    }

    private mutating func loseSocket() throws {
        hasSocket = false
        pending = nil
        // The socket may be the third in a row that fails.
        excuse(for: (isFirstDumpOfSocket ? Self.poll : Self.quiet) + Self.afterFailure)
        try perform(machine.socketFailed(now: time))
    }

    // MARK: The driver

    private mutating func perform(_ actions: [NetworkStateMachine.Action]) throws {
        for action in actions {
            switch action {
            case .open:
                try require(pending == nil, "it opens a socket while something is under way")
                (hasSocket, isFirstDumpOfSocket) = (false, true)
                let fails = !isQuiet && chance(30)
                pending = .opening(until: now + .random(in: 0...4, using: &random), fails: fails)
            case .dump:
                try require(hasSocket && pending == nil, "it asks while something is under way, or without a socket")
                dumpCount += 1
                if !isQuiet, chance(2) {
                    // No answer ever comes.
                    pending = .dump(begun: now, until: .max, seen: nil, isConsistent: true)
                    excuse(for: Self.dumpTimeout + Self.poll + Self.afterFailure)
                } else {
                    let until = now + .random(in: 0...Self.dumpLength, using: &random)
                    pending = .dump(begun: now, until: until, seen: chance(500) ? truth : nil, isConsistent: true)
                }
            case .publish(let path):
                publications += 1
                try require(path != lastPublished, "it tells the same twice")
                lastPublished = path
            }
        }
    }

    private var lastPublished: NetworkPath?

    private mutating func finishPending() throws {
        switch pending {
        case .opening(let until, let fails) where until <= now:
            pending = nil
            hasSocket = !fails
            if fails { excuse(for: Self.poll + Self.afterFailure) }
            try perform(fails ? machine.openingFailed(now: time) : machine.opened(now: time))
        case .dump(let begun, let until, let seen, let isConsistent) where until <= now:
            pending = nil
            // The dump saw the network at its beginning, or sees it now.
            let found = NetworkStateMachineTests.path(seen ?? truth)
            let actions = machine.dumpEnded(found, isConsistent: isConsistent, now: time)
            for case .publish(let path) in actions {
                try require(path == found, "it tells what was not found in the dump from \(begun) on")
                if !isFirstDumpOfSocket { try checkThatItWasQuiet(at: begun) }
            }
            isFirstDumpOfSocket = false
            if !isConsistent || found != lastPublished { signs.append(now) }
            try perform(actions)
        default:
            break
        }
    }

    private mutating func fireTimer() throws {
        guard let deadline = machine.nextDeadline.map({ ($0.nanoseconds + 999_999) / 1_000_000 }) else {
            timerAt = nil
            try require(pending != nil, "it waits for nothing")
            return
        }
        if deadline > now {
            timerAt = nil
            // An early timer does no harm.
            if chance(5) { try require(machine.timerFired(now: time) == [], "it acts before its time") }
            return
        }
        let fires = timerAt ?? now + .random(in: 0...3, using: &random)
        timerAt = fires
        guard fires <= now else { return }
        timerAt = nil
        if case .dump(_, .max, _, _) = pending {
            // The machine gives up the dump and its socket.
            (pending, hasSocket) = (nil, false)
        }
        try perform(machine.timerFired(now: time))
        let next = machine.nextDeadline
        try require(next.map { $0 > time } ?? true, "a timer that fired is due at once")
    }

    // MARK: Rules

    /// A report waits for the quiet period, unless it is never quiet.
    private func checkThatItWasQuiet(at begun: Int64) throws {
        guard let last = events.last(where: { $0 <= begun }), begun - last < Self.quiet else { return }
        var beginning = last
        for sign in signs.reversed() where sign <= beginning {
            guard beginning - sign <= Self.quiet + Self.dumpLength + Self.slack else { break }
            beginning = sign
        }
        try require(
            begun - beginning >= 3 * Self.quiet,
            "it asked \(begun - last) ms after an event, \(begun - beginning) ms after the first"
        )
    }

    private func check() throws {
        try require(machine.path == lastPublished, "its path is not what it told")
        var due = dueUntold
        if let told {
            // Events may delay a change that a poll has found.
            due = min(due + 3 * Self.quiet, told.first + Self.afterFirstEvent, told.last + Self.afterEvent)
        }
        guard now > max(due, excusedUntil) else { return }
        try require(
            machine.path == NetworkStateMachineTests.path(truth),
            "it has not told of what is since \(truthSince), and was to by \(due)"
        )
    }

    private func require(_ condition: Bool, _ text: String) throws {
        if !condition { throw Failure(description: "Seed \(seed), at \(now) ms: \(text).") }
    }
}
