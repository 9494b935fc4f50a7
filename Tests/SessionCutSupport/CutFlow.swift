internal import Lifeline
package import LifelineProtos

/// Messages with an order, or calls with identities, numbered 1, 2, 3….
package enum CutFlow: String, CaseIterable, Sendable {
    // Pushes of two methods each way.
    case reports = "r"
    case statuses = "s"
    case news = "n"
    case alerts = "a"
    // Two concurrent server streams.
    case firstStream = "f"
    case secondStream = "t"
    /// A client stream.
    case upload = "u"
    /// The client's messages of a call both ways.
    case questions = "q"
    /// The server's messages of that call: one for each message of the client, with the same number.
    case answers = "w"
    /// Requests, recorded by the server's handler.
    case calls = "c"
    /// Replies to requests, recorded by the client.
    case replies = "e"

    /// The name on the wire. Both server streams have the same method.
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

    /// The method with which the client requests the server's pushes. It is not counted.
    package static let begin = "cuts.v1.Cuts/Begin"

    /// Requests are handled concurrently, so they end in any order.
    package var isOrdered: Bool { self != .calls && self != .replies }

    /// The side that processes the messages, and has them in its record.
    package var isHandledByServer: Bool { [.reports, .statuses, .upload, .questions, .calls].contains(self) }

    /// The share of this flow in a number of messages: 15 % for pushes of each method, a sixteenth for each direction
    /// of each stream, and the rest, 8.75 %, for calls. A call is one message.
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
    /// The message with a number.
    package func message(_ number: Int) -> Sample_Chat_V1_ChatMessage {
        .with { message in
            message.from = rawValue
            message.nonce = UInt64(bitPattern: Int64(number))
            message.text = text(number)
        }
    }

    /// Whether it equals the message that was sent with its number.
    package func isIntact(_ message: Sample_Chat_V1_ChatMessage) -> Bool {
        message == self.message(Int(truncatingIfNeeded: message.nonce))
    }

    /// Some are longer than one read of the relay; most are far shorter.
    private func text(_ number: Int) -> String {
        let letters = Array("abcdefghijklmnopqrstuvwxyz".utf8)
        let length = number % 1000 == 0 ? 20_000 : number % 193
        let letter = letters[((number % letters.count) + letters.count) % letters.count]
        return String(repeating: Character(UnicodeScalar(letter)), count: max(length, 0))
    }

    /// A low estimate of the bytes of a connection that a message takes on average.
    package static let meanByteCount = 120
}
