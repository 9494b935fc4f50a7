internal import LifelineCore

/// A received message's facts about the request that it answers.
package enum AnswerHead: Equatable, Sendable {
    /// The message answers the request with this serial, as with fixed headers.
    case answer(serial: UInt32)
    /// The message answers no request.
    case push
    /// The message only has its type, as with head lines. It answers the oldest request if that expects this type.
    case ofType(String)
}

/// Finds the request that a message answers. `RequestStateMachine` handles deadlines, waiters and limits.
///
/// If answers carry no serials, the peer has to answer in order, each request once. When it never answers a request,
/// later ones never get their answers: they time out one by one, until no more can begin, and only a new connection
/// helps.
package struct AnswerMatching: Sendable {
    /// Whether answers come in the order of the requests. If not, they carry serials, and nothing is kept here.
    private let isOrdered: Bool
    /// The written requests, and the types of their answers; nil for any. Each keeps its place until its answer comes,
    /// even if its task no longer waits, because otherwise the next request would get that answer.
    private var written = FIFO<(serial: UInt32, answerType: String?)>()
    /// The types of the answers to requests that were not written.
    private var answerTypes: [UInt32: String?] = [:]

    package init(isOrdered: Bool) {
        self.isOrdered = isOrdered
    }

    /// The number of begun requests that are neither answered nor given up, including those that have ended for their
    /// caller and still expect an answer. 0 if answers carry serials.
    package var heldCount: Int { answerTypes.count + written.count }

    /// Adds a request that will be sent.
    package mutating func began(serial: UInt32, answerType: String?) {
        if isOrdered { answerTypes.updateValue(answerType, forKey: serial) }
    }

    /// Notes that the request will not be written.
    package mutating func gaveUp(serial: UInt32) {
        answerTypes[serial] = nil
    }

    /// Notes that the request is being written. Call it in the order on the wire.
    package mutating func wrote(serial: UInt32) {
        if isOrdered { written.append((serial, answerTypes.removeValue(forKey: serial) ?? nil)) }
    }

    /// Notes that the connection is lost, with the expected answers.
    ///
    /// - Parameter unsent: the serials of requests that go over the next connection.
    package mutating func connectionLost(keeping unsent: Set<UInt32>) {
        written = FIFO()
        answerTypes = answerTypes.filter { unsent.contains($0.key) }
    }

    /// Returns the serial of the request that a message answers; nil for a push.
    package mutating func received(_ head: AnswerHead) -> UInt32? {
        switch head {
        case .answer(let serial): return serial
        case .push: return nil
        case .ofType(let type):
            guard let (serial, answerType) = written.first, answerType ?? type == type else { return nil }
            written.removeFirst()
            return serial
        }
    }
}
