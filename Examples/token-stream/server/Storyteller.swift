internal import Lifeline
internal import TokenStreamProtos

/// Tells stories at the pace of a language model. It does not depend on connections: while there is none, `send` keeps
/// the messages for the client, and waits when there are too many.
struct Storyteller: Example_Story_V1_StorytellerHandler {
    private static let maximumTokenCount: UInt32 = 1_000_000

    /// The time that each token takes.
    let pause: Duration

    func tell(
        _ request: Example_Story_V1_TellRequest,
        to stream: SessionStreamWriter<Example_Story_V1_Token>,
        context: SessionContext
    ) async throws {
        guard 1...Storyteller.maximumTokenCount ~= request.tokenCount else {
            throw SessionStatus(.invalidArgument, "A story has 1 to \(Storyteller.maximumTokenCount) tokens.")
        }
        for (number, text) in zip(1...request.tokenCount, Story(seed: request.seed)) {
            try await Task.sleep(for: pause)
            try await stream.send(.with { ($0.number, $0.text) = (number, text) })
        }
    }
}
