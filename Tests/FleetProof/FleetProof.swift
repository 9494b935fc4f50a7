import ArgumentParser
import FaultSupport
import FleetProofSupport
import Foundation
import LifelineRuntime

/// Has a fleet of servers fail in several ways under load, and counts every message at its receiver.
@main struct FleetProof: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scripts/fleet",
        abstract: "Lets servers of a fleet and their Redis fail, and counts what that does to the messages.",
        discussion: """
            Three servers share a Redis. Clients come to them through HAProxy, which knows nothing of sessions and \
            sends each connection to the server with the fewest. All are processes in network namespaces that the \
            script makes and removes, as root. Each client sends numbered pushes and calls; each server sends numbered \
            messages to each of its sessions, to a group of all sessions, and to rooms that clients join by \
            themselves. Each message is noted by who gets it, and each that is not known to be lost must be there \
            once, in the order of its sender. For each fault all begins anew:

              rolling-restart  one server after the other gets SIGTERM, ends, and is started again, 13 s after one \
            another: nothing may be lost, and 99 % of the clients see no pause of more than 1 s
              server-killed    a server gets SIGKILL, and is started again: what it had not processed is in doubt
              redis-killed     Redis gets SIGKILL, and is started again without its data: gaps are told
              redis-paused     Redis answers nobody for 3 s: nothing may be lost
              partition        no packet goes between one server and Redis for 3 s: nothing may be lost

            The table has, for each fault, the messages that came; that were lost, doubled or reordered, and nobody \
            was told; that are in doubt, as their senders were told; that clients did not get, as they were told; how \
            many gaps members of groups were told of; how many sessions were lost; and how long a client got nothing \
            at the longest. That is measured at each tenth client, to which its server sends each 100 ms. It ends with \
            status 1 where anything was lost, doubled or reordered that was not told, or a bound is missed.
            """,
        subcommands: [FleetServer.self, FleetClients.self]
    )

    @Option(help: "Which fault; may be repeated. Default: all of them.") var only: [FleetFault] = []
    @Option(help: "How many clients there are. Default: 2000, with --quick 60, with --cold-restart 10000.")
    var clients: Int?
    @Option(
        help: """
            How often each sender sends, in milliseconds. Default: 4000, with --quick 200, with --cold-restart 20000.
            """
    ) var interval: Int?
    @Flag(
        help: """
            As briefly as shows that all of it works. For a busy machine: a pause that is over its bound is told, but \
            is no failure.
            """
    ) var quick = false
    @Flag(
        help: """
            In place of the other faults: all servers get SIGKILL at once, and are started again. All clients must \
            have sessions again within 60 s, and each server begins no more sessions in a second than it may.
            """
    ) var coldRestart = false
    @Flag(help: "Keep the servers' records.") var keep = false
    @Option(
        help: """
            To see that faults are found: what servers note wrongly of one message: drop, double or swap.
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
            // Clients whose connections are as short-lived come back later each time.
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

    /// Runs `body` in a scene of its own, and prints what came of it. Returns whether that is not as it must be.
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

    /// At once, also into a file.
    private func put(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
