import FaultSupport
import Foundation
import LifelineTestSupport

/// The relay's process, which is killed from time to time, and restarted on the same port.
final class RelayProcess {
    private(set) var program: LineProgram
    let port: Int
    private let serverPort: String
    private var earlierEvents: [FaultEvent] = []

    var endpoint: String { "tcp://127.0.0.1:\(port)" }

    /// The events of all its processes.
    var events: [FaultEvent] { earlierEvents + program.events }

    private init(_ program: LineProgram, port: Int, serverPort: String) {
        self.program = program
        self.port = port
        self.serverPort = serverPort
    }

    static func start(to server: LineProgram) async throws -> RelayProcess {
        let listening = try await server.next("that it listens") { $0.event == .listening }
        let serverPort = listening.endpoint?.split(separator: ":").last.map(String.init) ?? ""
        for _ in 0..<20 {
            // Below the ports that the system gives to clients (ip_local_port_range). A client that connects while the
            // relay is away could get the relay's port, and connect to itself.
            let port = Int.random(in: TestPort.forOtherProcesses)
            let program = try LineProgram(product: "SessionCutRelay", arguments(port, serverPort))
            if await program.says(within: .seconds(30), where: { $0.event == .listening }) {
                return RelayProcess(program, port: port, serverPort: serverPort)
            }
        }
        throw FaultFailure("The relay cannot listen on any of 20 ports.")
    }

    /// Kills it, with all bytes that it holds, and starts it again.
    func restart() async throws {
        try program.signal(SIGKILL)
        try await program.waitForEnd()
        earlierEvents += program.events
        program = try LineProgram(product: "SessionCutRelay", RelayProcess.arguments(port, serverPort))
        _ = try await program.next("that it listens again") { $0.event == .listening }
    }

    private static func arguments(_ port: Int, _ serverPort: String) -> [String] {
        ["--on", "\(port)", "--to", serverPort]
    }
}
