import ArgumentParser
import Foundation
import Lifeline
import Logging

/// The peer of Autobahn's WebSocket test suite: it sends back each message.
@main struct AutobahnPeer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(subcommands: [Serve.self, Connect.self])

    /// The suite's largest messages have 16 MiB.
    static let maximumFrameLength = 16 << 20

    typealias EchoConnection = Connection<WebSocketMessage, WebSocketMessage>

    static func echo(_ connection: EchoConnection) async throws {
        for try await message in connection.messages { try await connection.send(message) }
    }
}

/// For the suite's client. Prints its endpoint; ends at the end of its input.
struct Serve: AsyncParsableCommand {
    func run() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.maximumFrameLength = AutobahnPeer.maximumFrameLength
        configuration.webSocket.origins = .any
        try await withServer(
            listeningOn: Endpoint("ws://127.0.0.1:0"),
            configuration: configuration,
            // The suite's client violates the protocol on purpose.
            logger: Logger(label: "autobahn") { _ in SwiftLogNoOpLogHandler() },
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self,
            handler: AutobahnPeer.echo
        ) { server in
            // Unbuffered.
            let line = try await "\(server.boundEndpoint)\n"
            FileHandle.standardOutput.write(Data(line.utf8))
            while readLine() != nil {}
        }
    }
}

/// For the suite's server.
struct Connect: AsyncParsableCommand {
    @Option(help: "Where the suite's server listens.") var port: UInt16
    @Option(help: "What the reports call this program.") var agent = "Lifeline"

    /// The errors with which an open connection may end: most cases violate the protocol, or do not end in order.
    private static let ends: [ConnectionError.Code] = [.closedByPeer, .protocolViolation, .webSocketClosed]

    func run() async throws {
        let count = try await text(from: "/getCaseCount").flatMap(Int.init) ?? 0
        guard count > 0 else { throw ValidationError("The server has no cases.") }
        for number in 1...count {
            do {
                try await connect("/runCase?case=\(number)&agent=\(agent)", AutobahnPeer.echo)
            } catch let error as ConnectionError where Self.ends.contains(error.code) {
                continue
            }
        }
        try await connect("/updateReports?agent=\(agent)") { connection in
            for try await _ in connection.messages {}
        }
        print("ran \(count) cases")
    }

    private func text(from target: String) async throws -> String? {
        try await connect(target) { connection in
            for try await case .text(let text) in connection.messages { return text }
            return nil
        }
    }

    private func connect<Result>(
        _ target: String,
        _ body: (AutobahnPeer.EchoConnection) async throws -> Result
    ) async throws -> Result {
        var configuration = ConnectionConfiguration()
        configuration.maximumFrameLength = AutobahnPeer.maximumFrameLength
        return try await withConnection(
            to: .webSocket(host: "127.0.0.1", port: port, target: target, isEncrypted: false),
            configuration: configuration,
            receiving: WebSocketMessage.self,
            sending: WebSocketMessage.self,
            body
        )
    }
}
