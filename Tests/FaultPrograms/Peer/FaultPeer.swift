import ArgumentParser
import FaultSupport
import Lifeline
import LifelineProtos
import Logging

/// The server of the fault trials. It prints the messages that it receives.
///
/// Commands: `pause` and `resume` reading. It shuts down in order at the end of its input.
@main struct FaultPeer: AsyncParsableCommand {
    @Option(help: "The endpoint to listen on.") var on: String

    func run() async throws {
        let gate = Gate()
        var configuration = ServerConfiguration()
        // Messages that clients send before they end their side are still read.
        configuration.shutdownOrder = .peersFirst
        try await withServer(
            listeningOn: Endpoint(on),
            configuration: configuration,
            logger: Logger(label: "peer") { _ in SwiftLogNoOpLogHandler() },
            receiving: Sample_Chat_V1_ChatMessage.self,
            sending: Sample_Chat_V1_ChatMessage.self,
            handler: { connection in try await serve(connection, gate) },
            { server in
                try await FaultEvent.listening(on: server.boundEndpoint.description).print()
                while let command = try await CommandLines.next() {
                    switch command {
                    case ["pause"]:
                        gate.close()
                        FaultEvent(.paused).print()
                    case ["resume"]:
                        gate.open()
                        FaultEvent(.resumed).print()
                    default: throw FaultFailure("The peer knows no command like \(command).")
                    }
                }
                gate.open()
            }
        )
    }

    private func serve(
        _ connection: Connection<Sample_Chat_V1_ChatMessage, Sample_Chat_V1_ChatMessage>,
        _ gate: Gate
    ) async throws {
        FaultEvent(.accepted).print()
        do {
            for try await batch in connection.messages.batches {
                await gate.pass()
                for message in batch where message.kind == .system { try await answer(message, on: connection) }
                for ids in batch.filter({ $0.kind != .system }).map(\.nonce).runs {
                    FaultEvent.messages(.received, ids).print()
                }
            }
            FaultEvent.ended("the client has ended").print()
        } catch {
            FaultEvent.ended("\(error)").print()
            throw error
        }
    }
}

/// While the server shuts down there are no answers.
private func answer(
    _ message: Sample_Chat_V1_ChatMessage,
    on connection: Connection<Sample_Chat_V1_ChatMessage, Sample_Chat_V1_ChatMessage>
) async throws {
    do {
        try await connection.send(message)
    } catch let error as ConnectionError where error.code == .sendingFinished {
        return
    }
}

extension [UInt64] {
    /// Numbers without gaps.
    fileprivate var runs: [ClosedRange<UInt64>] {
        reduce(into: []) { runs, id in
            if let last = runs.last, last.upperBound + 1 == id {
                runs[runs.count - 1] = last.lowerBound...id
            } else {
                runs.append(id...id)
            }
        }
    }
}
