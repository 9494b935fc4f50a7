import ArgumentParser
import FaultSupport
import FleetProofSupport
import Foundation
import LifelineRuntime

/// Makes a fleet of servers fail in several ways under load, and counts every message at its receiver.
@main struct FleetProof: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scripts/fleet",
        abstract: "Makes the servers of a fleet and their Redis fail, and checks that each loss is reported.",
        discussion: """
            Three servers share a Redis. Clients connect to them through HAProxy, which knows nothing of sessions and \
            sends each connection to the server with the fewest. All are processes in network namespaces that the \
            script makes and removes, as root. Each client sends numbered pushes and calls. Each server sends numbered \
            messages to each of its sessions, to a group of all sessions, and to rooms that clients join themselves. \
            Each receiver records its messages. Every message that was not reported lost must be there once, in the \
            order of its sender. Each fault begins with new processes:

              rolling-restart  One server after the other gets SIGTERM, ends, and is started again, 13 s apart. \
            Nothing may be lost, and 99 % of the clients see no pause of more than 1 s.
              server-killed    A server gets SIGKILL, and is started again. The messages that it had not processed \
            are in doubt.
              redis-killed     Redis gets SIGKILL, and is started again without its data. Gaps are reported.
              redis-paused     Redis does not answer for 3 s. Nothing may be lost.
              partition        No packet passes between one server and Redis for 3 s. Nothing may be lost.

            The table has for each fault: the delivered messages; those that were lost, doubled or reordered without a \
            report; those that were reported to their senders as in doubt; those that were reported lost to the \
            clients; the gaps that were reported to members of groups; the lost sessions; and the longest pauses in \
            deliveries. Pauses are measured at every tenth client, to which its server sends every 100 ms. The exit \
            status is 1 if a message was lost, doubled or reordered without a report, or a bound is missed.
            """,
        subcommands: [FleetServer.self, FleetClients.self]
    )

    @Option(help: "A fault to run; may be repeated. Default: all faults.") var only: [FleetFault] = []
    @Option(help: "The number of clients. Default: 2000, with --quick 60, with --cold-restart 10000.")
    var clients: Int?
    @Option(
        help: """
            The interval of each sender's messages, in milliseconds. Default: 4000, with --quick 200, with \
            --cold-restart 20000.
            """
    ) var interval: Int?
    @Flag(
        help: """
            A short run, which shows that everything works, also on a busy machine: a pause over its bound is printed, \
            but is no failure.
            """
    ) var quick = false
    @Flag(
        help: """
            Runs this fault instead of the others: all servers get SIGKILL at once, and are started again. All clients \
            must have sessions again within 60 s, and no server may begin more sessions in a second than its limit.
            """
    ) var coldRestart = false
    @Flag(help: "Keep the servers' records.") var keep = false
    @Option(
        help: """
            Shows that the check works: the error that servers make when they record one message: drop, double or swap.
            """
    ) var spoil: Spoil?

    func validate() throws {
        guard (6...10_000).contains(clients ?? 6) else { throw ValidationError("There can be 6 to 10000 clients.") }
        guard (10...60_000).contains(interval ?? 10) else {
            throw ValidationError("Messages can come each 10 to 60000 milliseconds.")
        }
        if coldRestart, !only.isEmpty { throw ValidationError("A cold restart is a run of its own.") }
    }

    func run() async throws {
        try TestNetwork.checkRequirements(tools: ["ip", "nft", "redis-server", "redis-cli", "haproxy"])
        let isMissed = try await cancellingOnSignals { try await runAll() }
        if isMissed { throw ExitCode.failure }
    }

    private func runAll() async throws -> Bool {
        put(FleetOutcome.head)
        if coldRestart { return try await report(ColdRestart(load: load).run) }
        var isMissed = false
        for fault in only.isEmpty ? FleetFault.allCases : only {
            isMissed = try await report { scene in try await happen(fault, in: scene) } || isMissed
        }
        return isMissed
    }

    private var load: FleetScene.Load {
        var load = FleetScene.Load()
        load.clientCount = clients ?? (coldRestart ? 10_000 : quick ? 60 : 2_000)
        load.processCount = coldRestart ? 4 : 2
        load.interval = .milliseconds(interval ?? (coldRestart ? 20_000 : quick ? 200 : 4_000))
        load.spoil = spoil
        if quick {
            // A client whose connections last only this long waits longer before each new one.
            (load.timeBefore, load.timeBetween, load.timeAfter) = (.seconds(1), .seconds(1), .seconds(1))
        }
        if coldRestart { load.openingRate = ColdRestart.openingRate(clientCount: load.clientCount) }
        return load
    }

    private func happen(_ fault: FleetFault, in scene: FleetScene) async throws -> FleetOutcome {
        try await scene.start()
        try await Task.sleep(for: load.timeBefore)
        try await scene.tellClients("mark")
        let note = try await fault.happen(to: scene)
        try await Task.sleep(for: load.timeAfter)
        let (tally, reports) = try await scene.settle()
        return FleetOutcome(fault, note, tally, reports, isPauseBound: !quick)
    }

    /// Runs `body` in its own scene, and prints the outcome. Returns whether it has failed.
    private func report(_ body: (FleetScene) async throws -> FleetOutcome) async throws -> Bool {
        let folder = FileManager.default.temporaryDirectory.appending(path: "fleet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let outcome = try await TestNetwork.with { network in
            let scene = FleetScene(load, in: network, folder: folder)
            let outcome = try await body(scene)
            try await scene.end()
            return outcome
        }
        put(outcome.line)
        for finding in outcome.tally.findings.prefix(10) { put("    \(finding)") }
        if outcome.isMissed || keep {
            put("    The records are in \(folder.path)")
        } else {
            try FileManager.default.removeItem(at: folder)
        }
        return outcome.isMissed
    }

    /// Writes a line without buffering, even if the output is a file.
    private func put(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
