import FaultSupport
import Foundation
import LifelineTestSupport

/// `lifeline monitor --json`, running at the client of a test network.
final class MonitorProcess: Sendable {
    struct Line: Decodable, Sendable, CustomStringConvertible {
        struct Interface: Decodable, Sendable {
            let name: String
            let kind: String
            let up: Bool
            let carrier: Bool
            let addresses: [String]
        }

        struct Reach: Decodable, Sendable {
            let reachable: Bool
            let reason: String
            let interface: String?
        }

        let uptime: Double
        let status: String
        let known: Bool
        let ipv4: Bool
        let ipv6: Bool
        let defaultRoute: Bool
        let interfaces: [Interface]
        let reach: Reach?

        var eth0: Interface? { interfaces.first { $0.name == "eth0" } }
        var description: String {
            "\(status) v4=\(ipv4) v6=\(ipv6) default=\(defaultRoute) eth0=\(eth0.map { "\($0)" } ?? "none")"
        }
    }

    struct Ended: Error {}

    private let process: Process
    private let lines: AsyncThrowingStream<Line, any Error>

    /// Runs it as long as `body` runs.
    static func with(
        in network: TestNetwork,
        _ arguments: String...,
        body: (_ monitor: MonitorProcess, _ first: Line) async throws -> Void
    ) async throws {
        let monitor = try MonitorProcess(network: network, arguments: arguments)
        defer { monitor.stop() }
        try await body(monitor, monitor.next { _ in true })
    }

    var identifier: Int32 { process.processIdentifier }

    func signal(_ number: Int32) {
        kill(identifier, number)
    }

    /// The next line for which `condition` holds; earlier lines are skipped.
    func next(where condition: (Line) -> Bool) async throws -> Line {
        for try await line in lines where condition(line) { return line }
        throw Ended()
    }

    private init(network: TestNetwork, arguments: [String]) throws {
        let program = try Program.product("lifeline", []).path
        let process = Process()
        process.executableURL = URL(filePath: try Tool.path(of: "ip"))
        process.arguments = network.arguments(toRun: program, ["monitor", "--json"] + arguments, at: .client)
        let pipe = Pipe.make()
        process.standardOutput = pipe
        let (lines, continuation) = AsyncThrowingStream.makeStream(of: Line.self, throwing: (any Error).self)
        try process.start()
        self.process = process
        self.lines = lines
        let file = pipe.fileHandleForReading
        Thread.detachNewThread {
            var rest = Data()
            var chunk = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                // FileHandle would wait until the chunk is full.
                let count = read(file.fileDescriptor, &chunk, chunk.count)
                guard count > 0 else { break }
                rest += chunk[..<count]
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    let text = rest[..<end]
                    rest = Data(rest[(end + 1)...])
                    do {
                        continuation.yield(try JSONDecoder().decode(Line.self, from: text))
                    } catch {
                        continuation.finish(throwing: error)
                    }
                }
            }
            continuation.finish()
        }
    }

    private func stop() {
        signal(SIGKILL)
        process.waitUntilExit()
    }
}
