internal import Lifeline
package import LifelineProtos

/// Messages that have an order among them, or, of calls, an identity: numbered 1, 2, 3… each.
package enum CutFlow: String, CaseIterable, Sendable {
    // Pushes of two methods each way.
    case reports = "r"
    case statuses = "s"
    case news = "n"
    case alerts = "a"
    // Two streams, side by side.
    case firstStream = "f"
    case secondStream = "t"
    /// Requests, as the server's handler sees them.
    case calls = "c"
    /// How they ended, as the client sees it.
    case replies = "e"

    /// What it is called on the wire. Both streams have one method.
    package var method: String {
        switch self {
        case .reports: "cuts.v1.Cuts/Report"
        case .statuses: "cuts.v1.Cuts/Status"
        case .news: "cuts.v1.Cuts/News"
        case .alerts: "cuts.v1.Cuts/Alert"
        case .firstStream, .secondStream: "cuts.v1.Cuts/Watch"
        case .calls, .replies: "cuts.v1.Cuts/Call"
        }
    }

    /// By which the client asks for the server's pushes. It is not counted.
    package static let begin = "cuts.v1.Cuts/Begin"

    /// Requests are handled side by side, and so end in any order.
    package var isOrdered: Bool { self != .calls && self != .replies }

    /// Who processes the messages, and so has them in its record.
    package var isHandledByServer: Bool { [.reports, .statuses, .calls].contains(self) }

    /// How many there are of so many messages in all: a fifth is pushes of each method, an eighth both streams, and the
    /// rest, 7.5 %, calls. A call is one message.
    package func count(of messageCount: Int) -> Int {
        switch self {
        case .reports, .statuses, .news, .alerts: messageCount / 5
        case .firstStream, .secondStream: messageCount / 16
        case .calls, .replies: messageCount - messageCount / 5 * 4 - messageCount / 16 * 2
        }
    }
}

// Messages.
extension CutFlow {
    /// The message of a number.
    package func message(_ number: Int) -> Sample_Chat_V1_ChatMessage {
        .with { message in
            message.from = rawValue
            message.nonce = UInt64(bitPattern: Int64(number))
            message.text = text(number)
        }
    }

    /// Whether it is what was sent under its number.
    package func isIntact(_ message: Sample_Chat_V1_ChatMessage) -> Bool {
        message == self.message(Int(truncatingIfNeeded: message.nonce))
    }

    /// Some are longer than what the relay reads at once; most are shorter by far.
    private func text(_ number: Int) -> String {
        let letters = Array("abcdefghijklmnopqrstuvwxyz".utf8)
        let length = number % 1000 == 0 ? 20_000 : number % 193
        let letter = letters[((number % letters.count) + letters.count) % letters.count]
        return String(repeating: Character(UnicodeScalar(letter)), count: max(length, 0))
    }

    /// How many bytes of a connection a message takes on average, all counted: rather less than it does.
    package static let meanByteCount = 120
}
