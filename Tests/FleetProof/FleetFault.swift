import ArgumentParser
import FaultSupport
import Foundation

/// A fault of a fleet under load.
enum FleetFault: String, CaseIterable, ExpressibleByArgument {
    case rollingRestart = "rolling-restart"
    case serverKilled = "server-killed"
    case redisKilled = "redis-killed"
    case redisPaused = "redis-paused"
    case partition

    /// Whether the fault must not lose anything, not even with a report.
    var isHarmless: Bool {
        switch self {
        case .rollingRestart, .redisPaused, .partition: true
        case .serverKilled, .redisKilled: false
        }
    }

    /// The longest pause in deliveries that 99 % of the clients may see; nil for no limit.
    var pauseBound: Duration? { self == .rollingRestart ? .seconds(1) : nil }

    /// The time for which Redis is unreachable in some way.
    private static let absence = Duration.seconds(3)

    /// Causes the fault, and repairs it. Returns a description.
    func happen(to scene: FleetScene) async throws -> String {
        switch self {
        case .rollingRestart:
            var longest = Duration.zero
            for index in 0..<(await scene.serverCount) {
                if index > 0 { try await Task.sleep(for: scene.load.timeBetween) }
                longest = max(longest, try await scene.drainServer(index))
                try await scene.restartServer(index)
            }
            return "3 servers, \(Int(longest.milliseconds)) ms to drain at most"
        case .serverKilled:
            try await scene.killServers(0..<1)
            try await Task.sleep(for: .seconds(1))
            try await scene.restartServer(0)
            return "1 server"
        case .redisKilled:
            try await scene.killRedis()
            try await Task.sleep(for: .seconds(1))
            try await scene.startRedis()
            return "back after 1 s, empty"
        case .redisPaused:
            try await scene.commandRedis(["CLIENT", "PAUSE", "\(Int(FleetFault.absence.milliseconds))", "ALL"])
            try await Task.sleep(for: FleetFault.absence)
            return "for 3 s"
        case .partition:
            _ = try await scene.network.filter(by: .drop(port: FleetScene.redisPort))
            try await Task.sleep(for: FleetFault.absence)
            let count = try await scene.network.affectedPacketCount()
            _ = try await scene.network.stopFiltering()
            guard count > 0 else { throw FaultFailure("No packet was dropped between a server and Redis.") }
            return "1 server and Redis, for 3 s, \(count) packets"
        }
    }
}
