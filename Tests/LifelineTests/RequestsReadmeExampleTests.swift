import Lifeline
import Testing

/// The README's example of requests over an older framing, as it stands there but for the endpoints.
@Suite(.timeLimit(.minutes(1))) struct RequestsReadmeExampleTests {
    @Test func requestsAndPushes() async throws {
        let question: [UInt8] = [1, 2, 3]
        let answers = try await withServer(
            listeningOn: anyPort,
            receiving: FixedHeaderRequest.self,
            sending: FixedHeaderResponse.self,
            heartbeat: .fixedHeader
        ) { connection in
            try await connection.send(.push(7, content: [0]))
            for try await request in connection.messages where !request.isNotification {
                try await connection.send(request.response(status: 0, content: request.content))
            }
        } _: { server in
            try await withFixedHeaderClient(to: server.endpoint) { client in
                let reply = try await client.request(url: 0x500, content: question, timeout: .seconds(5))
                try await client.notify(9)
                for try await push in client.pushes {
                    return [reply.content, push.content]
                }
                return []
            }
        }
        #expect(answers == [[1, 2, 3], [0]])
    }
}
