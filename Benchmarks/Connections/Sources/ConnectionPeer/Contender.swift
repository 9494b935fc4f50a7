internal import LifelineMessages

/// Whom a server or a client is of.
enum Contender: String {
    case c
    case nio
    case grpcStream = "grpc-stream"
    case grpcUnary = "grpc-unary"
    case lifelineFrames = "lifeline-frames"
    case lifelineBatches = "lifeline-batches"
    case lifelineMessages = "lifeline-messages"
    case lifelineChat = "lifeline-chat"
    case lifelineRequests = "lifeline-requests"
    case lifelineRequestsOnLoop = "lifeline-requests-on-loop"
    case lifelinePushes = "lifeline-pushes"

    func serve(_ mode: ServerMode) async throws {
        switch self {
        case .c: try runCServer(mode)
        case .nio: try await runNIOServer(mode)
        case .grpcStream, .grpcUnary: try await runGRPCServer(mode)
        case .lifelineFrames: try await runFramesServer(mode)
        case .lifelineBatches: try await LifelineServer<RawMessage>(takes: .batches, mode: mode).run()
        case .lifelineMessages: try await LifelineServer<RawMessage>(takes: .messages, mode: mode).run()
        case .lifelineChat: try await LifelineServer<Benchmark_ChatMessage>(takes: .messages, mode: mode).run()
        case .lifelineRequests, .lifelineRequestsOnLoop, .lifelinePushes: try await runSessionServer()
        }
    }

    func makeClient() -> any PeerClient {
        switch self {
        case .c: CClient()
        case .nio: NIOClient()
        case .grpcStream: GRPCStreamClient()
        case .grpcUnary: GRPCUnaryClient()
        case .lifelineFrames: NoClient()
        case .lifelineBatches: LifelineClient<RawMessage>(takes: .batches)
        case .lifelineMessages: LifelineClient<RawMessage>(takes: .messages)
        case .lifelineChat: LifelineClient<Benchmark_ChatMessage>(takes: .messages)
        case .lifelineRequests: SessionRequestClient()
        case .lifelineRequestsOnLoop: SessionRequestClient(isOnLoop: true)
        case .lifelinePushes: SessionPushClient()
        }
    }
}
