internal import LifelineMessages

/// The content of messages: a number of bytes, or for `chat` an encoded `Benchmark_ChatMessage`.
struct Payload: Sendable {
    /// The runner's name for it: a number of bytes, or `chat`.
    let name: String
    let bytes: [UInt8]

    init?(_ name: String) {
        self.name = name
        if name == "chat" {
            bytes = Self.chat
        } else if let count = Int(name), count >= 0 {
            // No two parts are equal, so that a swapped part is detected.
            bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8) }
        } else {
            return nil
        }
    }

    var isChat: Bool { name == "chat" }

    /// About 300 bytes.
    private static let chat: [UInt8] = {
        let message = Benchmark_ChatMessage.with {
            $0.id = "0192f3a4-77b1-7c3e-9a52-3f1d2c8e4b60"
            $0.from = "ada@example.org"
            $0.to = "grace@example.org"
            $0.text = "The tests on the branch are green. Shall we meet at ten, and look at the rest?"
            $0.attachments.append(
                .with {
                    $0.url = "https://example.org/f/notes.txt"
                    $0.size = 2_048
                }
            )
            $0.mentions = [4_711, 815]
            $0.headers = ["language": "en", "client": "desktop 4.2"]
            $0.kind = .text
            $0.flags = 3
            $0.author.id = 4_711
            $0.author.name = "Ada"
            $0.author.avatarURL = "https://example.org/a/4711.png"
            $0.ttl = 86_400
            $0.nonce = 0x1234_5678_9ABC_DEF0
        }
        do {
            return try message.serializedBytes()
        } catch {
            preconditionFailure("The chat message cannot be encoded: \(error)")
        }
    }()
}
