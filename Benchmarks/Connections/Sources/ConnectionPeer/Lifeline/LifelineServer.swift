internal import Lifeline

/// A server with the public API.
struct LifelineServer<Message: BenchmarkMessage> {
    let takes: Taking
    let mode: ServerMode

    func run() async throws {
        try await withServer(
            listeningOn: Endpoint("tcp://127.0.0.1:0"),
            receiving: Message.self,
            sending: Message.self
        ) { [self] connection in
            switch (takes, mode) {
            case (.batches, .echo):
                for try await batch in connection.messages.batches { try await connection.send(contentsOf: batch) }
            case (.batches, .sink):
                for try await batch in connection.messages.batches {
                    for message in batch where message.isEmpty { try await connection.send(message) }
                }
            case (.messages, .echo):
                for try await message in connection.messages { try await connection.send(message) }
            case (.messages, .sink):
                for try await message in connection.messages where message.isEmpty {
                    try await connection.send(message)
                }
            }
        } _: { server in
            try await sayPort(of: server.boundEndpoint)
            try await server.waitUntilShutDown()
        }
    }
}

/// The last part of the endpoint's description.
func sayPort(of endpoint: Endpoint) {
    say("port \("\(endpoint)".split(separator: ":").last ?? "")")
}
