internal import LifelineCore

/// Tells which request a message answers: the rule of one framing or protocol. Time, waiters and limits are the same for
/// all, and are `RequestStateMachine`'s.
package protocol AnswerMatching<Head>: Sendable {
    /// What a message says of itself besides its content.
    associatedtype Head
    /// What a request says of its answer.
    associatedtype AnswerKind: Sendable

    /// Requests that were begun and neither answered nor given up: those that have ended for who asked, but whose answers
    /// the peer owes us, included. 0 where answers say what they answer, as nothing is kept for them then.
    var heldCount: Int { get }
    /// A request with this serial is to be sent.
    mutating func began(serial: UInt32, answerKind: AnswerKind)
    /// It will not be written.
    mutating func gaveUp(serial: UInt32)
    /// It is being written: in the order on the wire.
    mutating func wrote(serial: UInt32)
    /// The connection is lost, and with it what the peer owes us.
    ///
    /// - Parameter unsent: the serials of requests that go over the next one.
    mutating func connectionLost(keeping unsent: Set<UInt32>)

    /// What a message that came in is.
    mutating func received(_ head: Head) -> ReceivedAnswer
}

/// What a message that came in is.
package enum ReceivedAnswer: Equatable, Sendable {
    /// The answer to the request with this serial, if there is one.
    case answer(serial: UInt32)
    /// Nobody asked for it.
    case push
}

/// Answers carry the serials of their requests, as with fixed headers.
package struct SerialMatching: AnswerMatching {
    package init() {}

    package var heldCount: Int { 0 }

    package mutating func began(serial: UInt32, answerKind: Void) {}
    package mutating func gaveUp(serial: UInt32) {}
    package mutating func wrote(serial: UInt32) {}
    package mutating func connectionLost(keeping unsent: Set<UInt32>) {}

    package mutating func received(_ head: FixedHeader.Response) -> ReceivedAnswer {
        head.meaning == .response ? .answer(serial: head.serial) : .push
    }
}

/// Answers come in the order of the requests, and may be told from pushes by their types, as with head lines.
///
/// The peer is expected to answer in order, each request once. When it leaves a request without an answer for good, those
/// behind it never get theirs; then they time out one by one, until no more can be begun, and only a new connection helps.
package struct OrderMatching: AnswerMatching {
    /// Requests that were written, and the types of their answers; nil: any. Each keeps its place until its answer comes,
    /// whether or not anybody still waits: else the next request would be given that answer.
    private var written = FIFO<(serial: UInt32, answerType: String?)>()
    /// Those that were not: the types of their answers.
    private var answerTypes: [UInt32: String?] = [:]

    package init() {}

    package var heldCount: Int { answerTypes.count + written.count }

    package mutating func began(serial: UInt32, answerKind: String?) {
        answerTypes.updateValue(answerKind, forKey: serial)
    }

    package mutating func gaveUp(serial: UInt32) {
        answerTypes[serial] = nil
    }

    package mutating func wrote(serial: UInt32) {
        written.append((serial, answerTypes.removeValue(forKey: serial) ?? nil))
    }

    package mutating func connectionLost(keeping unsent: Set<UInt32>) {
        written = FIFO()
        answerTypes = answerTypes.filter { unsent.contains($0.key) }
    }

    package mutating func received(_ head: HeadLine) -> ReceivedAnswer {
        guard let (serial, answerType) = written.first, answerType ?? head.type == head.type else { return .push }
        written.removeFirst()
        return .answer(serial: serial)
    }
}
