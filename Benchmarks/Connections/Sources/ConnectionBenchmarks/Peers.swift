internal import BenchmarkReport
internal import Foundation

/// The processes of a run. Most of them stay, so that none has to start or warm up again.
final class Peers {
    private let peerProgram: URL
    private let nettyClasspath: String
    private let cores: (client: Int, server: Int)?
    private var running: [Program: Peer] = [:]
    private var ports: [ObjectIdentifier: Int] = [:]

    /// - Parameter cores: the cores for clients and servers; nil if processes cannot be pinned.
    init(peerProgram: URL, nettyClasspath: String, cores: (client: Int, server: Int)?) {
        self.peerProgram = peerProgram
        self.nettyClasspath = nettyClasspath
        self.cores = cores
    }

    /// A client and a server of a trial.
    struct Pair {
        let client: Peer
        let server: Peer
        let port: Int

        /// Sends the client a command. Returns the numbers of its answer.
        func perform(_ command: String) throws -> [Double] {
            do {
                return try client.perform(command)
            } catch {
                // The end of the server may be the reason for the client's failure.
                guard let failure = server.failureOfItsOwn else { throw error }
                throw PeerFailure(description: "\(error)\n\(failure)")
            }
        }
    }

    /// Uses running processes if there are some.
    func pair(for trial: Trial) throws -> Pair {
        let client = try running(clientProgram(trial.client), core: cores?.client)
        let server = try running(serverProgram(trial.server, trial.mode), core: cores?.server)
        let port = try ports[ObjectIdentifier(server)] ?? server.readPort()
        ports[ObjectIdentifier(server)] = port
        return Pair(client: client, server: server, port: port)
    }

    /// Starts new processes, with fresh memory.
    func freshPair(for trial: Trial) throws -> Pair {
        let client = try Peer(clientProgram(trial.client), core: cores?.client)
        let server = try Peer(serverProgram(trial.server, trial.mode), core: cores?.server)
        return Pair(client: client, server: server, port: try server.readPort())
    }

    private func running(_ program: Program, core: Int?) throws -> Peer {
        if let peer = running[program] { return peer }
        let peer = try Peer(program, core: core)
        running[program] = peer
        return peer
    }

    private func serverProgram(_ contender: String, _ mode: String) -> Program {
        Program(executable: peerProgram, arguments: ["server", contender, mode])
    }

    private func clientProgram(_ contender: String) -> Program {
        guard contender.hasPrefix(ContenderName.netty) else {
            return Program(executable: peerProgram, arguments: ["client", contender])
        }
        let java = ["java", "-cp", nettyClasspath, "NettyClient", contender]
        return Program(executable: URL(fileURLWithPath: "/usr/bin/env"), arguments: java)
    }
}
