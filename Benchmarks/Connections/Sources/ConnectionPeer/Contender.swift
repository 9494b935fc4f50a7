internal import LifelineMessages

/// The library of a server or a client.
enum Contender: String {
    case c
    case nio
    case grpcStream = "grpc-stream"
    case grpcCalls = "grpc-calls"
    case lifelineFrames = "lifeline-frames"
    case lifelineBatches = "lifeline-batches"
    case lifelineMessages = "lifeline-messages"
    case lifelineChat = "lifeline-chat"
    case lifelineRequests = "lifeline-requests"
    case lifelineRequestsOnLoop = "lifeline-requests-on-loop"
    case lifelineRequestsSynchronous = "lifeline-requests-synchronous"
    case lifelineRequestsOnLoopSynchronous = "lifeline-requests-on-loop-synchronous"
    case lifelinePushes = "lifeline-pushes"
    case lifelinePushesSynchronous = "lifeline-pushes-synchronous"
    case lifelinePushesBatches = "lifeline-pushes-batches"
    case lifelineStreams = "lifeline-streams"
    case lifelineStreamsBatches = "lifeline-streams-batches"

    func serve(_ mode: ServerMode) async throws {
        switch self {
        case .c: try runCServer(mode)
        case .nio: try await runNIOServer(mode)
        case .grpcStream, .grpcCalls: try await runGRPCServer(mode)
        case .lifelineFrames: try await runFramesServer(mode)
        case .lifelineBatches: try await LifelineServer<RawMessage>(takes: .batches, mode: mode).run()
        case .lifelineMessages: try await LifelineServer<RawMessage>(takes: .messages, mode: mode).run()
        case .lifelineChat: try await LifelineServer<Benchmark_ChatMessage>(takes: .messages, mode: mode).run()
        case .lifelineRequests, .lifelineRequestsOnLoop, .lifelineRequestsSynchronous,
            .lifelineRequestsOnLoopSynchronous, .lifelinePushes, .lifelinePushesSynchronous, .lifelinePushesBatches,
            .lifelineStreams, .lifelineStreamsBatches:
            try await runSessionServer()
        }
    }

    func makeClient() -> any PeerClient {
        switch self {
        case .c: CClient()
        case .nio: NIOClient()
        case .grpcStream: GRPCStreamClient()
        case .grpcCalls: GRPCCallClient()
        case .lifelineFrames: NoClient()
        case .lifelineBatches: LifelineClient<RawMessage>(takes: .batches)
        case .lifelineMessages: LifelineClient<RawMessage>(takes: .messages)
        case .lifelineChat: LifelineClient<Benchmark_ChatMessage>(takes: .messages)
        case .lifelineRequests: SessionRequestClient(handler: .asynchronous, isOnLoop: false)
        case .lifelineRequestsOnLoop: SessionRequestClient(handler: .asynchronous, isOnLoop: true)
        case .lifelineRequestsSynchronous: SessionRequestClient(handler: .synchronous, isOnLoop: false)
        case .lifelineRequestsOnLoopSynchronous: SessionRequestClient(handler: .synchronous, isOnLoop: true)
        case .lifelinePushes: SessionPushClient(handler: .asynchronous, takes: .messages)
        case .lifelinePushesSynchronous: SessionPushClient(handler: .synchronous, takes: .messages)
        case .lifelinePushesBatches: SessionPushClient(handler: .asynchronous, takes: .batches)
        case .lifelineStreams: SessionStreamClient(takes: .messages)
        case .lifelineStreamsBatches: SessionStreamClient(takes: .batches)
        }
    }
}
