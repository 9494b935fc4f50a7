internal import LifelineCore

/// Tells which request a message answers: the rule of one framing or protocol. Time, waiters and limits are the same for
/// all, and are `RequestExchange`'s.
protocol AnswerMatching<Message>: Sendable {
    associatedtype Message: Sendable
    /// What a request says of its answer.
    associatedtype AnswerKind: Sendable

    /// Answers that the peer owes us, those to requests that have ended included.
    var owedCount: Int { get }
    /// A request with this serial is to be sent.
    mutating func began(serial: UInt32, answerKind: AnswerKind)
    /// It will not be sent.
    mutating func gaveUp(serial: UInt32)
    /// It is being written: in the order on the wire.
    mutating func wrote(serial: UInt32)
    /// The connection is lost, and with it what the peer owes us.
    ///
    /// - Parameter unsent: the serials of requests that go over the next one.
    mutating func connectionLost(keeping unsent: Set<UInt32>)

    /// What a message is.
    mutating func received(_ message: Message) -> ReceivedAnswer
}

/// What a message that came in is.
enum ReceivedAnswer: Equatable {
    /// The answer to the request with this serial, if there is one.
    case answer(serial: UInt32)
    /// Nobody asked for it.
    case push
}

/// Answers carry the serials of their requests.
struct SerialMatching: AnswerMatching {
    var owedCount: Int { 0 }

    mutating func began(serial: UInt32, answerKind: Void) {}
    mutating func gaveUp(serial: UInt32) {}
    mutating func wrote(serial: UInt32) {}
    mutating func connectionLost(keeping unsent: Set<UInt32>) {}

    mutating func received(_ message: FixedHeaderResponse) -> ReceivedAnswer {
        message.head.meaning == .response ? .answer(serial: message.serial) : .push
    }
}

/// Answers come in the order of the requests, and may be told from pushes by their types.
struct OrderMatching: AnswerMatching {
    /// Requests that were written. Each keeps its place until its answer comes, whether or not anybody still waits.
    private var written = RequestQueue<UInt32, String>(maximumCount: .max)
    /// Those that were not: the types of their answers.
    private var answerTypes: [UInt32: String?] = [:]

    var owedCount: Int { written.expectedCount }

    mutating func began(serial: UInt32, answerKind: String?) {
        answerTypes.updateValue(answerKind, forKey: serial)
    }

    mutating func gaveUp(serial: UInt32) {
        answerTypes[serial] = nil
    }

    mutating func wrote(serial: UInt32) {
        let answerType = answerTypes.removeValue(forKey: serial) ?? nil
        // Without a limit, this does not throw.
        _ = try? written.began(serial, answerKind: answerType, deadline: nil)
    }

    mutating func connectionLost(keeping unsent: Set<UInt32>) {
        _ = written.connectionLost()
        answerTypes = answerTypes.filter { unsent.contains($0.key) }
    }

    mutating func received(_ message: HeadLineMessage) -> ReceivedAnswer {
        guard case .answer(_, let serial) = written.received(message.type) else { return .push }
        return .answer(serial: serial)
    }
}
