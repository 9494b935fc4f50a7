internal import Lifeline
internal import LifelineProtos

extension LineReader {
    /// Says the lines of standard input over a stream, each as it comes.
    static func sendAll(to stream: SessionStreamWriter<Sample_Room_V1_SayRequest>) async throws {
        var lines = LineReader()
        while let line = try await lines.next() { try await stream.send(.with { $0.text = line }) }
    }
}
