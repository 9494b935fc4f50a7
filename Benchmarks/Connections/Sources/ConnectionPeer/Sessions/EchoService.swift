internal import Lifeline
internal import LifelineMessages

/// The server of requests, pushes and streams.
func runSessionServer() async throws {
    try await withSessionServer(listeningOn: Endpoint("tcp://127.0.0.1:0"), services: [EchoService()]) { server in
        try await sayPort(of: server.boundEndpoints[0])
        try await server.waitUntilShutDown()
    }
}

/// How the server handles requests and pushes.
enum SessionHandler: String {
    /// By an asynchronous function.
    case asynchronous = "Waiting"
    /// By a synchronous function.
    case synchronous = "Now"
}

/// The names of methods. There is one of each for each type of messages.
extension BenchmarkMessage {
    static func request(_ handler: SessionHandler) -> String { "\(service)/Request\(handler.rawValue)" }
    static func push(_ handler: SessionHandler) -> String { "\(service)/Push\(handler.rawValue)" }
    static var orderedPushes: String { "\(service)/OrderedPushes" }
    static var sendPushes: String { "\(service)/SendPushes" }
    static var serverStream: String { "\(service)/ServerStream" }
    static var clientStream: String { "\(service)/ClientStream" }
    static var bothWays: String { "\(service)/BothWays" }
}

private struct EchoService: SessionService {
    var methods: [SessionMethod] { methods(of: RawMessage.self) + methods(of: Benchmark_ChatMessage.self) }

    private func methods<Message: BenchmarkMessage>(of: Message.Type) -> [SessionMethod] {
        [
            .unary(Message.request(.asynchronous)) { (request: Message, _) async in request },
            .unary(Message.request(.synchronous)) { (request: Message, _) in request },
            .push(Message.push(.asynchronous)) { (_: Message, _) async in },
            .push(Message.push(.synchronous)) { (_: Message, _) in },
            .unary(Message.sendPushes) { (order: RawMessage, context) async throws in
                let order = try SendOrder(bytes: order.bytes)
                let message = try Message(payload: order.payload.bytes)
                let method = Message.orderedPushes
                var counter = SendCounter(order.limit)
                while counter.next() { try await context.session.push(method, message) }
                // Pushes of one method are processed in order.
                try await context.session.push(method, message, until: .processed)
                return RawMessage(bytes: (counter.count + 1).told)
            },
            .stream(Message.serverStream) { (order: RawMessage, stream: SessionStreamWriter<Message>, _) in
                let order = try SendOrder(bytes: order.bytes)
                let message = try Message(payload: order.payload.bytes)
                var counter = SendCounter(order.limit)
                while counter.next() { try await stream.send(message) }
            },
            .clientStream(Message.clientStream) { (messages: SessionMessages<Message>, _) in
                var count = 0
                for try await _ in messages { count += 1 }
                return RawMessage(bytes: count.told)
            },
            .bothWays(Message.bothWays) {
                (messages: SessionMessages<Message>, stream: SessionStreamWriter<Message>, _) in
                for try await message in messages { try await stream.send(message) }
            },
        ]
    }
}
