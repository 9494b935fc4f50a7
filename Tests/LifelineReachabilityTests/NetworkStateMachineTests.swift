import LifelineCore
import LifelineReachability
import LifelineTestSupport
import Testing

/// The times of dumps, and the changes that are reported.
@Suite struct NetworkStateMachineTests {
    typealias Machine = NetworkStateMachine

    static func path(_ number: Int) -> NetworkPath {
        let interface = NetworkInterface(
            name: "eth\(number)",
            index: number,
            kind: .ethernet,
            isUp: true,
            hasCarrier: true,
            addresses: [],
            usesIPv4: true,
            usesIPv6: false,
            hasDefaultRoute: false
        )
        return NetworkPath(interfaces: [interface])
    }

    private static func at(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    private func at(_ milliseconds: Int64) -> MonotonicTime { Self.at(milliseconds) }
    private var a: NetworkPath { Self.path(1) }
    private var b: NetworkPath { Self.path(2) }

    // MARK: Every state and every event

    enum Situation: CaseIterable {
        case stopped, opening, resting, settled, gathering, firstDump, pollDump, burstDump

        /// A machine at 10 s that knows path 1, except in states where it cannot yet.
        func machine() -> Machine {
            var machine = Machine(configuration: NetworkMonitorConfiguration())
            if self == .stopped { return machine }
            _ = machine.started(now: at(0))
            if self == .opening { return machine }
            if self == .resting {
                _ = machine.openingFailed(now: at(9_000))
                return machine
            }
            if self == .firstDump {
                _ = machine.opened(now: at(10_000))
                return machine
            }
            _ = machine.opened(now: at(4_999))
            _ = machine.dumpEnded(path(1), isConsistent: true, now: at(5_000))
            switch self {
            case .settled:
                break
            case .pollDump:
                _ = machine.timerFired(now: at(10_000))
            default:
                machine.receivedEvent(about: .other, now: at(9_900))
                if self == .burstDump { _ = machine.timerFired(now: at(10_000)) }
            }
            return machine
        }
    }

    enum Event: CaseIterable {
        case started, opened, openingFailed, socketFailed, receivedEvent, receivedLinkEvent, dumpedSame, dumpedOther,
            dumpedInconsistent,
            timer

        func happen(to machine: inout Machine, now: MonotonicTime) -> [Machine.Action] {
            switch self {
            case .started: machine.started(now: now)
            case .opened: machine.opened(now: now)
            case .openingFailed: machine.openingFailed(now: now)
            case .socketFailed: machine.socketFailed(now: now)
            case .receivedEvent:
                {
                    machine.receivedEvent(about: .other, now: now); return []
                }()
            case .receivedLinkEvent:
                {
                    machine.receivedEvent(about: .link, now: now); return []
                }()
            case .dumpedSame: machine.dumpEnded(path(1), isConsistent: true, now: now)
            case .dumpedOther: machine.dumpEnded(path(2), isConsistent: true, now: now)
            case .dumpedInconsistent: machine.dumpEnded(path(2), isConsistent: false, now: now)
            case .timer: machine.timerFired(now: now)
            }
        }
    }

    struct Expectation: Equatable {
        var actions: [Machine.Action] = []
        /// In milliseconds.
        var deadline: Int64?
    }

    /// At 10 s. Missing pairs change nothing.
    static let changes: [Situation: [Event: Expectation]] = [
        .stopped: [.started: Expectation(actions: [.open])],
        .opening: [
            .opened: Expectation(actions: [.dump], deadline: 15_000),
            .openingFailed: Expectation(actions: [.publish(.unknown)], deadline: 15_000),
        ],
        .resting: [:],
        .settled: [
            .receivedEvent: Expectation(deadline: 10_100),
            .receivedLinkEvent: Expectation(deadline: 10_100),
            .socketFailed: Expectation(deadline: 10_100),
            .timer: Expectation(actions: [.dump], deadline: 15_000),
        ],
        .gathering: [
            .receivedEvent: Expectation(deadline: 10_100),
            .receivedLinkEvent: Expectation(deadline: 10_100),
            .socketFailed: Expectation(deadline: 10_100),
            .timer: Expectation(actions: [.dump], deadline: 15_000),
        ],
        .firstDump: [
            .socketFailed: Expectation(actions: [.publish(.unknown)], deadline: 10_100),
            .dumpedSame: Expectation(actions: [.publish(path(1))], deadline: 15_000),
            .dumpedOther: Expectation(actions: [.publish(path(2))], deadline: 15_000),
            .dumpedInconsistent: Expectation(deadline: 10_100),
        ],
        .pollDump: [
            .socketFailed: Expectation(deadline: 10_100),
            .dumpedSame: Expectation(deadline: 15_000),
            .dumpedOther: Expectation(deadline: 10_100),
            .dumpedInconsistent: Expectation(deadline: 10_100),
        ],
        .burstDump: [
            .socketFailed: Expectation(deadline: 10_100),
            .dumpedSame: Expectation(deadline: 15_000),
            .dumpedOther: Expectation(actions: [.publish(path(2))], deadline: 15_000),
            .dumpedInconsistent: Expectation(deadline: 10_100),
        ],
    ]

    @Test(arguments: Situation.allCases, Event.allCases)
    func everyStateAndEvent(situation: Situation, event: Event) {
        var machine = situation.machine()
        let unchanged = Expectation(deadline: machine.nextDeadline.map { $0.nanoseconds / 1_000_000 })
        let actions = event.happen(to: &machine, now: at(10_000))
        let deadline = machine.nextDeadline.map { $0.nanoseconds / 1_000_000 }
        #expect(
            Expectation(actions: actions, deadline: deadline) == Self.changes[situation]?[event] ?? unchanged
        )
    }

    // MARK: Bursts

    /// Settled on path 1 at 0, and polled at 5 s.
    private func settled() -> Machine {
        var machine = Machine(configuration: NetworkMonitorConfiguration())
        _ = machine.started(now: at(0))
        _ = machine.opened(now: at(0))
        _ = machine.dumpEnded(a, isConsistent: true, now: at(0))
        return machine
    }

    @Test func aFlapThatLeavesNothingIsNoChange() {
        var machine = settled()
        machine.receivedEvent(about: .other, now: at(1_000))
        machine.receivedEvent(about: .other, now: at(1_099))
        #expect(machine.timerFired(now: at(1_100)) == [])
        #expect(machine.timerFired(now: at(1_199)) == [.dump])
        #expect(machine.dumpEnded(a, isConsistent: true, now: at(1_200)) == [])
    }

    @Test func aFlapThatLeavesADifferenceIsOneChange() {
        var machine = settled()
        machine.receivedEvent(about: .other, now: at(1_000))
        machine.receivedEvent(about: .other, now: at(1_099))
        #expect(machine.timerFired(now: at(1_199)) == [.dump])
        #expect(machine.dumpEnded(b, isConsistent: true, now: at(1_200)) == [.publish(b)])
        #expect(machine.path == b)
    }

    @Test func aFlapThatBeginsDuringTheDumpIsWaitedFor() {
        var machine = settled()
        machine.receivedEvent(about: .other, now: at(1_000))
        #expect(machine.timerFired(now: at(1_100)) == [.dump])
        machine.receivedEvent(about: .other, now: at(1_101))
        #expect(machine.dumpEnded(b, isConsistent: true, now: at(1_102)) == [])
        machine.receivedEvent(about: .other, now: at(1_150))
        #expect(machine.timerFired(now: at(1_250)) == [.dump])
        #expect(machine.dumpEnded(a, isConsistent: true, now: at(1_251)) == [])
    }

    @Test func changesWithoutEndAreReportedAfterThreeQuietPeriods() {
        var machine = settled()
        var time: Int64 = 1_000
        while time < 1_300 {
            machine.receivedEvent(about: .other, now: at(time))
            #expect(machine.timerFired(now: at(time)) == [])
            time += 50
        }
        #expect(machine.nextDeadline == at(1_300))
        #expect(machine.timerFired(now: at(1_300)) == [.dump])
        machine.receivedEvent(about: .other, now: at(1_301))
        #expect(machine.dumpEnded(b, isConsistent: true, now: at(1_302)) == [.publish(b)])
        #expect(machine.nextDeadline == at(1_401))
    }

    @Test func aChangeFoundByAPollIsCheckedBeforeItIsReported() {
        var machine = settled()
        #expect(machine.timerFired(now: at(5_000)) == [.dump])
        #expect(machine.dumpEnded(b, isConsistent: true, now: at(5_001)) == [])
        #expect(machine.timerFired(now: at(5_101)) == [.dump])
        #expect(machine.dumpEnded(b, isConsistent: true, now: at(5_102)) == [.publish(b)])
    }

    @Test func whereDumpsAreNeverConsistentTheFifthIsTaken() {
        var machine = settled()
        machine.receivedEvent(about: .other, now: at(1_000))
        var time: Int64 = 1_000
        for _ in 1..<Machine.maximumInterruptions {
            time += 100
            #expect(machine.timerFired(now: at(time)) == [.dump])
            #expect(machine.dumpEnded(b, isConsistent: false, now: at(time)) == [])
        }
        #expect(machine.timerFired(now: at(time + 100)) == [.dump])
        #expect(machine.dumpEnded(b, isConsistent: false, now: at(time + 100)) == [.publish(b)])
    }

    @Test func eventsDuringSlowDumpsDoNotKeepNewsBack() {
        var machine = settled()
        machine.receivedEvent(about: .other, now: at(1_000))
        #expect(machine.timerFired(now: at(1_100)) == [.dump])
        machine.receivedEvent(about: .other, now: at(1_200))
        #expect(machine.dumpEnded(b, isConsistent: true, now: at(1_600)) == [])
        // The third quiet period is over, so the count begins again.
        let next = at(1_600 + 2_000)
        #expect(machine.nextDeadline == next)
        #expect(machine.timerFired(now: next) == [.dump])
        machine.receivedEvent(about: .other, now: at(3_700))
        #expect(machine.dumpEnded(b, isConsistent: true, now: at(4_100)) == [.publish(b)])
    }

    @Test func dumpsRestForFourTimesAsLongAsOneTook() {
        var machine = settled()
        machine.receivedEvent(about: .other, now: at(1_000))
        #expect(machine.timerFired(now: at(1_100)) == [.dump])
        #expect(machine.dumpEnded(a, isConsistent: true, now: at(1_150)) == [])
        machine.receivedEvent(about: .other, now: at(1_151))
        #expect(machine.nextDeadline == at(1_350))
        #expect(machine.timerFired(now: at(1_349)) == [])
        #expect(machine.timerFired(now: at(1_350)) == [.dump])
        // A period that was long because the process was suspended counts less.
        #expect(machine.dumpEnded(a, isConsistent: true, now: at(100_000)) == [])
        machine.receivedEvent(about: .other, now: at(100_001))
        #expect(machine.nextDeadline == at(102_000))
    }

    @Test func afterAnEventOfALinkTheKernelIsAskedOftenerForASecond() {
        var machine = settled()
        machine.receivedEvent(about: .link, now: at(1_000))
        #expect(machine.timerFired(now: at(1_100)) == [.dump])
        #expect(machine.dumpEnded(b, isConsistent: true, now: at(1_100)) == [.publish(b)])
        var polls: [Int64] = []
        while let deadline = machine.nextDeadline, polls.count < 100 {
            let time = deadline.nanoseconds / 1_000_000
            guard time < 3_000 else { break }
            polls.append(time)
            #expect(machine.timerFired(now: deadline) == [.dump])
            #expect(machine.dumpEnded(b, isConsistent: true, now: deadline) == [])
        }
        #expect(polls == Array(stride(from: 1_125, through: 2_000, by: 25)))
        #expect(machine.nextDeadline == at(7_000))
    }

    // MARK: Failures

    @Test func theKnownStateIsKeptUntilTheThirdSocketInARowFails() {
        var machine = settled()
        #expect(machine.socketFailed(now: at(1_000)) == [])
        for time in [1_100, 1_200, 1_300] as [Int64] {
            #expect(machine.path == a)
            #expect(machine.timerFired(now: at(time)) == [.open])
            #expect(machine.opened(now: at(time)) == [.dump])
            #expect(machine.socketFailed(now: at(time)) == (time == 1_300 ? [.publish(.unknown)] : []))
        }
        // There is no urgency any more.
        #expect(machine.nextDeadline == at(6_300))
        #expect(machine.timerFired(now: at(6_300)) == [.open])
        #expect(machine.opened(now: at(6_300)) == [.dump])
        #expect(machine.dumpEnded(a, isConsistent: true, now: at(6_300)) == [.publish(a)])
        // A finished dump resets the count.
        #expect(machine.socketFailed(now: at(6_400)) == [])
        #expect(machine.timerFired(now: at(6_500)) == [.open])
        #expect(machine.opened(now: at(6_500)) == [.dump])
        #expect(machine.socketFailed(now: at(6_500)) == [])
    }

    @Test func afterAnOverrunEverythingIsReadAnewOnAnotherSocket() {
        var machine = settled()
        #expect(machine.socketFailed(now: at(1_000)) == [])
        #expect(machine.timerFired(now: at(1_100)) == [.open])
        #expect(machine.opened(now: at(1_100)) == [.dump])
        #expect(machine.dumpEnded(b, isConsistent: true, now: at(1_101)) == [.publish(b)])
    }

    @Test func aDumpThatDoesNotEndIsAFailure() {
        var machine = settled()
        machine.receivedEvent(about: .other, now: at(1_000))
        #expect(machine.timerFired(now: at(1_100)) == [.dump])
        #expect(machine.timerFired(now: at(6_099)) == [])
        #expect(machine.timerFired(now: at(6_100)) == [])
        #expect(machine.timerFired(now: at(6_200)) == [.open])
    }

    @Test func aMachineThatRefusesIsAskedAgain() {
        var machine = Machine(configuration: NetworkMonitorConfiguration())
        #expect(machine.started(now: at(0)) == [.open])
        #expect(machine.openingFailed(now: at(0)) == [.publish(.unknown)])
        #expect(machine.timerFired(now: at(5_000)) == [.open])
        #expect(machine.openingFailed(now: at(5_000)) == [])
        #expect(machine.timerFired(now: at(10_000)) == [.open])
        #expect(machine.opened(now: at(10_000)) == [.dump])
        #expect(machine.dumpEnded(a, isConsistent: true, now: at(10_000)) == [.publish(a)])
    }

    @Test func timeThatGoesBackCountsAsTheLatest() {
        var machine = settled()
        machine.receivedEvent(about: .other, now: at(1_000))
        machine.receivedEvent(about: .other, now: at(10))
        #expect(machine.nextDeadline == at(1_100))
    }

    @Test func absurdConfigurationsAreBroughtIntoBounds() {
        var configuration = NetworkMonitorConfiguration()
        configuration.quietPeriod = .seconds(-1)
        configuration.pollInterval = .seconds(Int64.max)
        #expect(configuration.quietPeriod == .milliseconds(1))
        #expect(configuration.pollInterval == .seconds(365 * 24 * 3600))
        configuration.quietPeriod = .seconds(Int64.max)
        var machine = Machine(configuration: configuration)
        _ = machine.started(now: at(0))
        _ = machine.opened(now: at(0))
        _ = machine.dumpEnded(a, isConsistent: true, now: MonotonicTime(nanoseconds: .max))
        machine.receivedEvent(about: .other, now: MonotonicTime(nanoseconds: .max))
        #expect(machine.nextDeadline == MonotonicTime(nanoseconds: .max))
    }
}
