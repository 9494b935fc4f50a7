internal import Lifeline
package import LifelineProtos

/// Messages that have an order among them, or, of calls, an identity: numbered 1, 2, 3… each.
package enum CutFlow: String, CaseIterable, Sendable {
    // Pushes of two methods each way.
    case reports = "r"
    case statuses = "s"
    case news = "n"
    case alerts = "a"
    // Two streams of the server's, side by side.
    case firstStream = "f"
    case secondStream = "t"
    /// A stream of the client's.
    case upload = "u"
    /// The client's messages of a call both ways.
    case questions = "q"
    /// The server's messages of that call: one for each of the client's, of the same number.
    case answers = "w"
    /// Requests, as the server's handler sees them.
    case calls = "c"
    /// How they ended, as the client sees it.
    case replies = "e"

    /// What it is called on the wire. Both streams of the server's have one method.
    package var method: String {
        switch self {
        case .reports: "cuts.v1.Cuts/Report"
        case .statuses: "cuts.v1.Cuts/Status"
        case .news: "cuts.v1.Cuts/News"
        case .alerts: "cuts.v1.Cuts/Alert"
        case .firstStream, .secondStream: "cuts.v1.Cuts/Watch"
        case .upload: "cuts.v1.Cuts/Upload"
        case .questions, .answers: "cuts.v1.Cuts/Discuss"
        case .calls, .replies: "cuts.v1.Cuts/Call"
        }
    }

    /// By which the client asks for the server's pushes. It is not counted.
    package static let begin = "cuts.v1.Cuts/Begin"

    /// Requests are handled side by side, and so end in any order.
    package var isOrdered: Bool { self != .calls && self != .replies }

    /// Who processes the messages, and so has them in its record.
    package var isHandledByServer: Bool { [.reports, .statuses, .upload, .questions, .calls].contains(self) }

    /// How many there are of so many messages in all: 15 % are pushes of each method, a sixteenth is each direction of
    /// each stream, and the rest, 8.75 %, are calls. A call is one message.
    package func count(of messageCount: Int) -> Int {
        switch self {
        case .reports, .statuses, .news, .alerts: messageCount * 3 / 20
        case .firstStream, .secondStream, .upload, .questions, .answers: messageCount / 16
        case .calls, .replies: messageCount - messageCount * 3 / 20 * 4 - messageCount / 16 * 5
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
