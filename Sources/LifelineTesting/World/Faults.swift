internal import LifelineCore

/// The faults of a world. They hit hosts and connections again and again, at times that follow from the seed.
public struct Faults: Sendable, Hashable {
    /// The mean time between two connections that are cut at any byte, half of them with a reset, half silently.
    /// Default: nil, never. All of the following are such mean times, with the same default.
    public var cuts: Duration?
    /// Between two hosts that lose their links for up to 5 s.
    public var outages: Duration?
    /// Between two hosts that stand still for up to 5 s, as a sleeping laptop does.
    public var pauses: Duration?
    /// Between two kills of processes that `WorldHost.serve` runs. They are started again within 3 s.
    public var kills: Duration?
    /// Between two changes of a host's address, which break its connections silently.
    public var addressChanges: Duration?
    /// Between two jumps of the date, by up to an hour either way. No other clock is moved.
    public var dateJumps: Duration?
    /// Between two times at which a disk becomes slow, for up to 5 s: a commit takes up to a second more. This and the
    /// next two affect only hosts with a database.
    public var slowDisks: Duration?
    /// Between two times at which a disk becomes full, for up to 5 s: commits throw `StoreError` with the code `full`,
    /// and nothing changes.
    public var fullDisks: Duration?
    /// Between two commits that throw `StoreError` with the code `failed`. Half of them happen nevertheless, which the
    /// program cannot know. A failed commit of a session's messages may be found by the next process.
    public var failedCommits: Duration?
    /// The time that everything takes to pass the link of a host. It is set in the `machine.conditions` of each host,
    /// which may be changed afterwards. Default: 10 ms.
    public var latency = Duration.milliseconds(10)
    /// The random part that is added to the latency. Default: none.
    public var jitter = Duration.zero

    /// No faults.
    public init() {}

    /// A bad day: about once a second, a fault of any of these kinds happens, except those of disks. For disks that
    /// fail as well, set `slowDisks`, `fullDisks` and `failedCommits`.
    public static var harsh: Faults {
        var faults = Faults()
        faults.cuts = .seconds(2)
        faults.outages = .seconds(5)
        faults.pauses = .seconds(8)
        faults.kills = .seconds(8)
        faults.addressChanges = .seconds(20)
        faults.dateJumps = .seconds(20)
        faults.jitter = .milliseconds(20)
        return faults
    }
}

/// A fault that has happened.
struct Fault: Sendable {
    let number: Int
    let time: Duration
    let text: String
}

/// Makes faults happen. Its decisions follow from the seed alone, so leaving out one fault does not change the times of
/// the others.
final class FaultPlan {
    private enum Kind: Int, CaseIterable {
        case cut, outage, pause, kill, addressChange, dateJump, slowDisk, fullDisk, failedCommit
    }

    private let seed: UInt64
    private let kept: Set<Int>?
    private var randoms: [SimulationRandom]
    private var streams: [() -> SimulatedStream?] = []
    /// Faults of an earlier plan stop when this changes.
    private var generation = 0
    private var count = 0
    private(set) var happened: [Fault] = []

    init(seed: UInt64, kept: Set<Int>?) {
        (self.seed, self.kept) = (seed, kept)
        randoms = Kind.allCases.map { SimulationRandom(seed: seed &* 31 &+ UInt64($0.rawValue) &+ 1) }
    }

    func add(_ stream: SimulatedStream) {
        streams.removeAll { $0()?.isKnown != true }
        streams.append { [weak stream] in stream }
    }

    /// Stops new faults. Present ones end by themselves.
    func end() {
        generation += 1
        for stream in streams { stream()?.cancelCut() }
    }

    func begin(_ faults: Faults, in world: World) {
        end()
        for host in world.hosts {
            (host.machine.conditions.latency, host.machine.conditions.jitter) = (faults.latency, faults.jitter)
            host.disk.nextFailure = nil
        }
        schedule(.cut, every: faults.cuts, in: world)
        schedule(.outage, every: faults.outages, in: world)
        schedule(.pause, every: faults.pauses, in: world)
        schedule(.kill, every: faults.kills, in: world)
        schedule(.addressChange, every: faults.addressChanges, in: world)
        schedule(.dateJump, every: faults.dateJumps, in: world)
        schedule(.slowDisk, every: faults.slowDisks, in: world)
        schedule(.fullDisk, every: faults.fullDisks, in: world)
        schedule(.failedCommit, every: faults.failedCommits, in: world)
    }

    private func schedule(_ kind: Kind, every mean: Duration?, in world: World) {
        guard let mean else { return }
        // From none to twice as long.
        let delay = randoms[kind.rawValue].duration(upTo: mean * 2)
        let present = generation
        world.simulation.schedule(after: max(delay, .microseconds(1))) { [weak self, weak world] in
            guard let self, let world, present == generation else { return }
            happen(kind, in: world)
            schedule(kind, every: mean, in: world)
        }
    }

    /// Takes the same random numbers whether or not the fault happens.
    private func happen(_ kind: Kind, in world: World) {
        count += 1
        let (choice, amount) = (randoms[kind.rawValue].next(), Double.random(in: 0..<1, using: &randoms[kind.rawValue]))
        if let kept, !kept.contains(count) { return }
        func choose<Element>(_ elements: [Element]) -> Element? {
            elements.isEmpty ? nil : elements[Int(choice % UInt64(elements.count))]
        }
        func report(_ text: String) {
            happened.append(Fault(number: count, time: world.now, text: text))
            world.simulation.note(.fault(number: count, text), at: .simulation)
        }
        let upTo5s = Duration.milliseconds(Int64(amount * 5_000) + 1)
        switch kind {
        case .cut:
            guard let stream = choose(streams.compactMap { $0() }.filter(\.isKnown)) else { return }
            // Mostly after few bytes, because many connections carry little.
            let (bytes, isReset) = (Int(amount * amount * amount * 4_000), choice >> 32 & 1 == 0)
            report(
                "connection \(stream.number) of \(stream.clientHost.name) is \(isReset ? "reset" : "cut in silence") "
                    + "after \(bytes) more bytes of its client"
            )
            stream.cut(isReset ? .reset : .silence, afterClientBytes: bytes)
        case .outage:
            guard let host = choose(world.hosts)?.machine, host.isLinkUp else { return }
            report("\(host.name) has no link for \(upTo5s)")
            host.setLink(up: false)
            world.simulation.schedule(after: upTo5s) { host.setLink(up: true) }
        case .pause:
            guard let host = choose(world.hosts)?.machine else { return }
            report("\(host.name) stands still for \(upTo5s)")
            host.sleep(for: upTo5s)
        case .kill:
            guard let host = choose(world.hosts.filter(\.isService)) else { return }
            let delay = Duration.milliseconds(Int64(amount * 3_000) + 1)
            report("the process on \(host.name) is killed, and started again after \(delay)")
            host.kill(restartingAfter: delay)
        case .addressChange:
            guard let host = choose(world.hosts)?.machine else { return }
            report("\(host.name) gets another address")
            host.changeAddress()
        case .dateJump:
            let step = Duration.seconds(Int64(amount * 7_200) - 3_600)
            report("the date jumps by \(step)")
            world.moveDate(by: step)
        case .slowDisk:
            guard let host = choose(world.hosts.filter(\.hasDatabase)) else { return }
            report("the disk of \(host.name) is slow for \(upTo5s)")
            host.disk.slowUntil = max(host.disk.slowUntil, world.simulation.now + upTo5s)
        case .fullDisk:
            guard let host = choose(world.hosts.filter(\.hasDatabase)) else { return }
            report("the disk of \(host.name) is full for \(upTo5s)")
            host.disk.fullUntil = max(host.disk.fullUntil, world.simulation.now + upTo5s)
        case .failedCommit:
            guard let host = choose(world.hosts.filter(\.hasDatabase)) else { return }
            let isCommitted = choice >> 32 & 1 == 0
            report("the next commit on \(host.name) fails\(isCommitted ? ", and happens nevertheless" : "")")
            host.disk.nextFailure = isCommitted ? .afterCommit : .beforeCommit
        }
    }
}
