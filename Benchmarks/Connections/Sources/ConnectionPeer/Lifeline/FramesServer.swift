internal import Lifeline

/// A server with the public API that handles frames on their loop.
func runFramesServer(_ mode: ServerMode) async throws {
    let endpoint = try Endpoint("tcp://127.0.0.1:0")
    switch mode {
    case .echo: try await withFrameServer(listeningOn: endpoint, handler: { _ in FrameEcho() }, serve)
    case .sink: try await withFrameServer(listeningOn: endpoint, handler: { _ in FrameSink() }, serve)
    }
}

private nonisolated(nonsending) func serve(_ server: Server) async throws {
    try await sayPort(of: server.boundEndpoint)
    try await server.waitUntilShutDown()
}

private struct FrameEcho: FrameHandler {
    func received(_ frames: FrameRun, _ replies: inout FrameWriter) throws {
        for payload in frames { try replies.write(payload) }
    }
}

/// Answers only empty frames.
private struct FrameSink: FrameHandler {
    func received(_ frames: FrameRun, _ replies: inout FrameWriter) throws {
        for payload in frames where payload.isEmpty { try replies.write(payload) }
    }
}
