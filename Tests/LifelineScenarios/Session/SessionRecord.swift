internal import Lifeline
internal import LifelineCore
internal import LifelineProtos
internal import LifelineTesting

/// What one end of a scenario's sessions has offered, was told, and processed; what does not hold goes to `fail`.
///
/// A client's is one for all its sessions, as its messages go on with the next one; a server's is of one session.
final class SessionRecord {
    typealias Machine = SimulatedSessionEnd.Machine

    /// An accepted push, or a request.
    struct Sent {
        let delivery: SessionDelivery
        let method: String
        /// How long its frame may become.
        let frameLength: Int
        /// What it was accepted for, of requests; nil: for good.
        var deadline: MonotonicTime?
    }

    struct Unprocessed {
        let receipt: Machine.Receipt
        let number: Int
        let byteCount: Int
        let isPart: Bool
    }

    struct Running {
        let request: IncomingRequest
        let number: Int
        let byteCount: Int
        /// When who asks stops to wait; nil: never.
        let deadline: MonotonicTime?
        /// How many parts of its response were accepted, and of those how many have to come.
        var partCount = 0
        var reliablePartCount = 0
        var isCancelled = false
    }

    let end: SimulatedSessionEnd
    let name: String
    let fail: (String) -> Void
    /// What it is told once of a message: nil while that is open.
    private(set) var pushes: [Int: Sent] = [:]
    private(set) var outcomes: [Int: SessionDeliveryOutcome] = [:]
    private var numbers: [Machine.Number: Int] = [:]
    /// Those that were accepted and are not admitted, parts of responses among them.
    private(set) var waitingPushers: Set<Machine.Number> = []
    /// Those that are to be sent over the present connection or not at all, and of which neither is told.
    private(set) var openAtMostOnce: Set<Int> = []

    private(set) var requests: [Int: Sent] = [:]
    private(set) var openRequests: [Int: Machine.RequestID] = [:]
    private(set) var results: [Int: RequestError.Code?] = [:]
    private var numberBySerial: [UInt32: Int] = [:]
    /// Of each request the last part, and the last of those that are not replaced, which are every other one.
    private var receivedParts: [Int: (last: Int, lastReliable: Int)] = [:]

    /// What came here: pushes and requests in the order in which they came.
    private(set) var came: [Int] = []
    private(set) var begun: Set<Int> = []
    private(set) var finished: Set<Int> = []
    private(set) var unprocessed: [Unprocessed] = []
    /// Of a session that was lost.
    private(set) var stale: [Machine.Receipt] = []
    private(set) var running: [Running] = []
    /// Requests that were answered here, or of which it was said that nobody waits.
    private(set) var ended: Set<Int> = []
    private(set) var lossCount = 0
    private(set) var refusedCount = 0
    private(set) var isOver = false
    /// Whether the user has asked it to end.
    var isClosing = false
    /// By when at the latest; nil: when everything is done.
    var closeDeadline: MonotonicTime?
    /// Whether the user has asked it to end at once.
    var isAbandoned = false
    /// Whether the peer says less than it has, so that it may have processed what is told to be expired or replaced.
    let peerUnderstates: Bool
    /// How long a frame the peer takes.
    let peerFrameLimit: Int

    init(
        _ end: SimulatedSessionEnd,
        _ name: String,
        peerUnderstates: Bool,
        peerFrameLimit: Int,
        fail: @escaping (String) -> Void
    ) {
        (self.end, self.name, self.fail) = (end, name, fail)
        (self.peerUnderstates, self.peerFrameLimit) = (peerUnderstates, peerFrameLimit)
    }

    func demand(_ condition: Bool, _ what: @autoclosure () -> String) {
        if !condition { fail("\(name): \(what())") }
    }

    /// Whether the peer may be spared a message of its own.
    func isTooLong(_ sent: Sent) -> Bool { sent.frameLength > peerFrameLimit }

    // MARK: What the user did

    func accepted(_ number: Int, _ sent: Sent, as id: Machine.Number, isAdmitted: Bool) {
        numbers[id] = number
        pushes[number] = sent
        if sent.delivery.isAtMostOnce { openAtMostOnce.insert(number) }
        if !isAdmitted { waitingPushers.insert(id) }
    }

    func acceptedPart(at index: Int, isReliable: Bool, as id: Machine.Number, isAdmitted: Bool) {
        running[index].partCount += 1
        if isReliable { running[index].reliablePartCount += 1 }
        if !isAdmitted { waitingPushers.insert(id) }
    }

    /// The pushers that may give up: not those of parts, which handlers wait for.
    var withdrawable: [Machine.Number] { waitingPushers.filter { numbers[$0] != nil }.sorted() }

    func withdrew(_ id: Machine.Number) {
        demand(waitingPushers.remove(id) != nil, "message \(id) was withdrawn and did not wait")
        guard let number = numbers[id] else { return }
        outcomes[number] = .unsent
        openAtMostOnce.remove(number)
    }

    func asked(_ number: Int, _ sent: Sent, as id: Machine.RequestID) {
        requests[number] = sent
        openRequests[number] = id
        numberBySerial[Machine.serial(of: id)] = number
    }

    func requestEnded(_ number: Int, _ failure: RequestError.Code?) {
        demand(openRequests.removeValue(forKey: number) != nil, "request \(number) ended twice")
        demand(results.updateValue(failure, forKey: number) == nil, "request \(number) has two results")
    }

    func takeUnprocessed(at index: Int) -> Unprocessed {
        let message = unprocessed.remove(at: index)
        if !message.isPart { finished.insert(message.number) }
        return message
    }

    func takeStale() -> Machine.Receipt? { stale.popLast() }

    func takeRunning(at index: Int) -> Running {
        let taken = running.remove(at: index)
        ended.insert(taken.number)
        return taken
    }

    // MARK: What it was told

    func told(_ actions: [Machine.Action]) {
        let isLoss = actions.contains { if case .sessionLost = $0 { true } else { false } }
        let isEnd = actions.contains { if case .ended = $0 { true } else { false } }
        // Then nothing is left to do, so that nothing ends with the session.
        let isClosed = actions.contains { if case .ended(.closed) = $0 { true } else { false } }
        if isLoss { sessionLost() }
        for action in actions {
            switch action {
            case .opened, .peerLeaving, .notWelcomed, .sayGoodbye, .closeConnection: break
            case .sessionLost(let loss):
                if case .forgotten = loss { break }
                fail("\(name): the session is lost, as \(loss)")
            case .accused(let goodbye): fail("\(name): the peer says that it broke the rules: \(goodbye.message)")
            case .violated(let violation): fail("\(name): the peer broke the rules: \(violation.message)")
            case .ended(let end):
                demand(!isOver, "it ended twice")
                isOver = true
                demand(isRight(end), "it ended as \(end)")
            case .admitted(let ids):
                for id in ids { demand(waitingPushers.remove(id) != nil, "message \(id) was admitted twice") }
            case .messageEnded(let id, let outcome):
                messageEnded(id, outcome, isLoss: isLoss, isEnd: isEnd && !isClosed)
            case .complete(let number, let content):
                completed(number, content)
            case .fail(let number, let code):
                let isRight =
                    switch code {
                    case .timedOut: requests[number]?.deadline != nil
                    case .sessionLost: isLoss || isEnd && !isClosed
                    case .notSent: isEnd && !isClosed
                    case .messageRefused: requests[number].map(isTooLong) ?? false
                    default: false
                    }
                demand(isRight, "request \(number) ended with \(code)")
                requestEnded(number, code)
            case .deliverPush(let serial, let content, let receipt):
                received(content, of: serial, receipt)
            case .beginRequest(let request, let deadline, let content):
                guard let number = beganRequest(content) else { break }
                running.append(
                    Running(request: request, number: number, byteCount: content.byteCount, deadline: deadline)
                )
            case .refuseRequest(_, let content, let refusal):
                refusedCount += 1
                switch refusal {
                case .closing: demand(isClosing, "a request is refused as if it were closing")
                case .tooManyRunning: demand(!isClosing, "a request is refused though it closes")
                case .serverHandlers, .serverMemory:
                    demand(!isClosing && self.end.budget != nil, "a request is refused as \(refusal)")
                default: fail("\(name): a request is refused as \(refusal)")
                }
                if let number = beganRequest(content) { ended.insert(number) }
            case .cancelRequest(let request):
                guard let index = running.firstIndex(where: { $0.request == request }) else { break }
                demand(!running[index].isCancelled, "request \(running[index].number) was cancelled twice")
                running[index].isCancelled = true
                ended.insert(running[index].number)
            }
        }
        if isLoss || isEnd {
            demand(running.allSatisfy(\.isCancelled), "a handler was not told that the session is lost")
        }
        demand(!isClosed || running.isEmpty, "it closes while the handlers of \(running.map(\.number)) run")
        if isEnd {
            demand(openRequests.isEmpty, "requests \(openRequests.keys.sorted()) did not end with the session")
            demand(waitingPushers.isEmpty, "pushers wait for a session that has ended")
        }
    }

    private func isRight(_ end: SessionEndReason) -> Bool {
        switch end {
        case .closed: isClosing
        case .abandoned: isAbandoned || closeDeadline != nil
        case .expired, .shutDown: self.end.side == .server
        case .saidByPeer(let goodbye): goodbye.code == .closed
        case .madeWay, .misconfigured, .violated: false
        }
    }

    private func sessionLost() {
        lossCount += 1
        stale += unprocessed.map(\.receipt)
        for message in unprocessed where !message.isPart { finished.insert(message.number) }
        unprocessed = []
        receivedParts = [:]
    }

    private func messageEnded(
        _ id: Machine.Number,
        _ outcome: SessionDeliveryOutcome,
        isLoss: Bool,
        isEnd: Bool
    ) {
        waitingPushers.remove(id)
        // Parts of responses are not counted one by one.
        guard let number = numbers[id], let push = pushes[number] else { return }
        openAtMostOnce.remove(number)
        demand(outcomes.updateValue(outcome, forKey: number) == nil, "message \(number) ended twice")
        let isRight =
            switch outcome {
            case .processed: !push.delivery.isAtMostOnce
            case .sent, .dropped: push.delivery.isAtMostOnce
            case .expired: push.delivery.timeToLive != nil
            case .replaced: push.delivery.key != nil
            case .refused: isTooLong(push)
            case .inDoubt: (isLoss || isEnd) && !push.delivery.isAtMostOnce
            case .unsent: isEnd
            }
        demand(isRight, "message \(number) of \(push.delivery) ended as \(outcome)")
    }

    private func completed(_ number: Int, _ content: SessionPayload) {
        if let note = SessionNote(content) {
            demand(note.number == number, "request \(number) got the response of \(note.number)")
            let partCount = (receivedParts.removeValue(forKey: number)?.lastReliable ?? 0) / 2
            demand(note.part == partCount, "the response of \(number) came after \(partCount) of \(note.part) parts")
        } else {
            // A refusal has no content; parts may have come of a response that is too long.
            demand(content.isRefusal, "the response of \(number) is none")
            receivedParts[number] = nil
        }
        requestEnded(number, nil)
    }

    private func received(_ content: SessionPayload, of serial: UInt32, _ receipt: Machine.Receipt) {
        guard let note = SessionNote(content) else { return fail("\(name): a push came whose bytes are not its own") }
        let byteCount = content.byteCount
        unprocessed.append(
            Unprocessed(receipt: receipt, number: note.number, byteCount: byteCount, isPart: serial != 0)
        )
        guard serial != 0 else { return came.append(note.number) }
        demand(numberBySerial[serial] == note.number, "a part of \(note.number) came for another request")
        demand(openRequests[note.number] != nil, "a part of \(note.number) came after its end")
        var parts = receivedParts[note.number] ?? (0, 0)
        if note.part % 2 == 0 {
            demand(
                note.part == parts.lastReliable + 2,
                "part \(note.part) of \(note.number) came after \(parts.lastReliable)"
            )
            parts.lastReliable = note.part
        } else {
            demand(
                note.part > parts.last,
                "part \(note.part) of \(note.number) came after \(parts.last), which it replaces"
            )
            parts.last = note.part
        }
        receivedParts[note.number] = parts
    }

    private func beganRequest(_ content: SessionPayload) -> Int? {
        guard let note = SessionNote(content) else {
            fail("\(name): a request came whose bytes are not its own")
            return nil
        }
        demand(begun.insert(note.number).inserted, "request \(note.number) began twice")
        came.append(note.number)
        return note.number
    }
}

extension SessionPayload {
    /// A scenario's only response that is no note.
    fileprivate var isRefusal: Bool {
        guard case .response(let response) = self else { return false }
        return response.status != 0 && payload.isEmpty
    }
}
