import FaultSupport
import FleetProofSupport
import LifelineCore
import LifelineRuntime

/// The fault in which all servers end at once and all clients come back at once.
struct ColdRestart {
    let load: FleetScene.Load

    /// The time within which all clients must have sessions again.
    private static let bound = Duration.seconds(60)

    /// The number of sessions that may begin in a second at each of three servers, so that all need half of the bound.
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
        // A server without new sessions for a second admits the sessions of one second at once.
        if mostInTen > rate * 11 { misses.append("more sessions began than \(rate) a second") }
        let note = """
            all ready after \(Int(duration.milliseconds)) ms, \
            \(summary.openingCount(after: start.nanoseconds)) sessions begun; \
            of \(rate) a second at each server, \(most) in one second at most and \(mostInTen) in ten
            """
        return FleetOutcome("cold restart", note, tally, reports, misses: misses)
    }
}
