internal import LifelineCore

/// How a received message names the request that it answers.
package enum AnswerHead: Equatable, Sendable {
    /// It answers the request with this serial, as with fixed headers.
    case answer(serial: UInt32)
    /// It answers no request.
    case push
    /// It says its type only, as with head lines. It answers the oldest request, if that expects this type.
    case ofType(String)
}

/// Finds the request that a message answers. Deadlines, waiters and limits are `RequestStateMachine`'s.
///
/// Where answers carry no serials, the peer is expected to answer in order, each request once. When it leaves a request
/// without an answer for good, those behind it never get theirs; then they time out one by one, until no more can be
/// begun, and only a new connection helps.
package struct AnswerMatching: Sendable {
    /// Whether answers come in the order of the requests. Otherwise they carry serials, and nothing is kept here.
    private let isOrdered: Bool
    /// Requests that were written, and the types of their answers; nil: any. Each keeps its place until its answer
    /// comes, whether or not its task still waits: else the next request would be given that answer.
    private var written = FIFO<(serial: UInt32, answerType: String?)>()
    /// The types of the answers to requests that were not written.
    private var answerTypes: [UInt32: String?] = [:]

    package init(isOrdered: Bool) {
        self.isOrdered = isOrdered
    }

    /// The number of requests that were begun and neither answered nor given up, with those that have ended for their
    /// caller and whose answers are still to come. 0 where answers carry serials.
    package var heldCount: Int { answerTypes.count + written.count }

    /// A request is to be sent.
    package mutating func began(serial: UInt32, answerType: String?) {
        if isOrdered { answerTypes.updateValue(answerType, forKey: serial) }
    }

    /// The request will not be written.
    package mutating func gaveUp(serial: UInt32) {
        answerTypes[serial] = nil
    }

    /// The request is being written. Call it in the order on the wire.
    package mutating func wrote(serial: UInt32) {
        if isOrdered { written.append((serial, answerTypes.removeValue(forKey: serial) ?? nil)) }
    }

    /// The connection is lost, and with it the answers that were to come.
    ///
    /// - Parameter unsent: the serials of requests that go over the next one.
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
