import ArgumentParser
import FaultSupport

/// Exposes a client to real network faults, and prints the results.
@main struct FaultTable: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scripts/faults",
        abstract: "Measures what a client does when its network, its connection or its peer fails.",
        discussion: """
            In network namespaces that it makes and removes, as root. First each fault once; then links that flap, black \
            holes and lost packets for a while. It ends with status 1 when a bound is missed. Times to notice and to heal \
            go from when the command that made the fault, or put it right, was started; what it took is in the table. \
            Of many, the 50th and the 99th percentile and the maximum are printed. A silent peer's bound is what the \
            heartbeat's configuration promises, and \(Int(Bounds().tolerance.milliseconds)) ms for the timers of a busy machine.
            """
    )

    @Option(help: "How often the link goes down and up.") var flaps: Int?
    @Option(help: "How often packets vanish until that is noticed.") var blackHoles: Int?
    @Option(
        help: """
            For how many minutes 20 % of the packets are lost: with the default heartbeat; below 3 minutes with one that could give \
            up a peer in 9.5 s.
            """
    ) var lossMinutes: Double?
    @Flag(
        help: """
            As briefly as shows that all of it works: 5 flaps, 3 black holes, 0.8 minutes of loss. For a busy machine: times \
            that are over their bounds are told, but are no failure, late acknowledgements may report messages that arrived, \
            and a fault that shows otherwise than by silence has a heartbeat of 10 s beside it.
            """
    ) var quick = false
    @Flag(help: "Over IPv6.") var ipv6 = false

    func validate() throws {
        for count in [flaps, blackHoles].compactMap({ $0 }) where count < 0 {
            throw ValidationError("No number of faults is below 0.")
        }
        if let lossMinutes, !(0...1440).contains(lossMinutes) {
            throw ValidationError("Packets can be lost for 0 to 1440 minutes.")
        }
    }

    func run() async throws {
        try TestNetwork.checkRequirements()
        let family: TestNetwork.Family = ipv6 ? .ipv6 : .ipv4
        let trials = Trials(family: family, isPatient: quick)
        let flaps = flaps ?? (quick ? 5 : 100)
        let blackHoles = blackHoles ?? (quick ? 3 : 100)
        let lossMinutes = lossMinutes ?? (quick ? 0.8 : 10)

        let isMissed = try await cancellingOnSignals {
            var report = Report(areTimesBound: !quick)
            report.begin()
            for trial in Trials.all { try report.add(await trials.once(trial)) }
            if flaps > 0 { try report.add(await trials.flaps(flaps)) }
            if blackHoles > 0 { try report.add(await trials.blackHoles(blackHoles)) }
            if lossMinutes > 0 { try report.add(await trials.loss(.seconds(lossMinutes * 60))) }
            report.end()
            return report.isMissed
        }
        if isMissed { throw ExitCode.failure }
    }
}
