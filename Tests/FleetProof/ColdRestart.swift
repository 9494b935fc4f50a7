import FaultSupport
import FleetProofSupport
import LifelineCore
import LifelineRuntime

/// All servers end at once, and all clients come back at once.
struct ColdRestart {
    let load: FleetScene.Load

    /// Within which time all clients must have sessions again.
    private static let bound = Duration.seconds(60)

    /// So many sessions may begin at each of three servers in a second that all of them take half of the bound.
    static func openingRate(clientCount: Int) -> Int { max(clientCount / 90, 1) }

    func run(_ scene: FleetScene) async throws -> FleetOutcome {
        try await scene.start()
        try await Task.sleep(for: .seconds(2))
        try await scene.tellClients("mark")
        let start = MonotonicTime.now()
        try await scene.killServers(0..<(await scene.serverCount))
        for index in 0..<(await scene.serverCount) { try await scene.restartServer(index) }
        try await scene.tellClients("ready", within: .seconds(240))
        let duration = MonotonicTime.now() - start
        let (tally, reports) = try await scene.settle()

        let summary = try await scene.summary()
        let rate = load.openingRate ?? 0
        let most = summary.mostOpenings(within: 1, after: start.nanoseconds)
        let mostInTen = summary.mostOpenings(within: 10, after: start.nanoseconds)
        var misses: [String] = []
        if duration > ColdRestart.bound { misses.append("more than \(ColdRestart.bound)") }
        // A server that nobody has come to for a second lets so many in at once.
        if mostInTen > rate * 11 { misses.append("more sessions began than \(rate) a second") }
        let note = """
            all ready after \(Int(duration.milliseconds)) ms, \
            \(summary.openingCount(after: start.nanoseconds)) sessions begun; \
            of \(rate) a second at each server, \(most) in one second at most and \(mostInTen) in ten
            """
        return FleetOutcome("cold restart", note, tally, reports, misses: misses)
    }
}
