package import LifelineCore

// Receiving frames.
extension SessionMachine {
    /// Receives a frame over a connection, without its length prefix.
    ///
    /// - Returns: the message of the frame, which comes after the actions.
    package mutating func receive(
        _ frame: UnsafeRawBufferPointer,
        over id: UInt64,
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> Arrival? {
        guard life.hears(id) else {
            receivedTooLate(frame, over: id, now: now, into: &actions)
            return nil
        }
        var arrival: Arrival?
        do {
            let inner = try InboundFrame(parsing: frame)
            if life.isOpening {
                try receiveWhileOpening(inner, now: now, into: &actions)
            } else {
                arrival = try receive(
                    inner,
                    cost: frame.count + SessionSize.frameOverhead,
                    now: now,
                    into: &actions
                )
            }
        } catch {
            if life.isOpening {
                notWelcomed(error, into: &actions)
            } else {
                violated(error, now: now, into: &actions)
            }
        }
        guard life.isClosing else { return arrival }
        // The end comes after it.
        if let arrival { actions.append(.arrived(arrival)) }
        endIfDone(now: now, into: &actions)
        return nil
    }

    /// Receives a frame over a connection that is given up, or over an older one. All frames come again, except the
    /// goodbye of a client whose session is over.
    private mutating func receivedTooLate(
        _ frame: UnsafeRawBufferPointer,
        over id: UInt64,
        now: MonotonicTime,
        into actions: inout [Action]
    ) {
        if role == .client, id > life.connectionID { return receivedTooEarly(frame, over: id) }
        guard role == .server, !life.isOver, life.isGivenUp(id),
            let inner = try? InboundFrame(parsing: frame), inner.kind == .goodbye,
            let goodbye = try? SessionGoodbye(parsing: inner.body), goodbye.code == .closed
        else { return }
        end(.saidByPeer(goodbye), now: now, into: &actions)
    }

    /// Handles a server that sends before this client's hello: it is not a session server.
    private mutating func receivedTooEarly(_ frame: UnsafeRawBufferPointer, over id: UInt64) {
        if let inner = try? InboundFrame(parsing: frame) {
            // A server may send heartbeats at any time.
            if inner.kind == nil || inner.kind == .ping || inner.kind == .pong { return }
        }
        earlyConnectionID = id
    }

    /// Handles received bytes that are not a frame: it is too long, or its length is malformed.
    package mutating func receivedViolation(
        _ violation: SessionViolation,
        over id: UInt64,
        now: MonotonicTime,
        into actions: inout [Action]
    ) {
        guard life.hears(id) else { return }
        if life.isOpening {
            notWelcomed(violation, into: &actions)
        } else {
            violated(violation, now: now, into: &actions)
        }
    }

    private mutating func receiveWhileOpening(
        _ frame: InboundFrame,
        now: MonotonicTime,
        into actions: inout [Action]
    ) throws(SessionViolation) {
        switch frame.kind {
        case .welcome?: try receiveWelcome(frame.body, now: now, into: &actions)
        case .goodbye?: receive(try SessionGoodbye(parsing: frame.body), now: now, into: &actions)
        // The connection answers pings before its session is open.
        case .ping?, .pong?, nil: return
        case .hello?: throw .unexpectedFrame
        case let kind?: if kind.lane != nil || kind.isUnplacedMessage { throw .notOpened }
        }
    }

    /// A welcome that cannot be read has no effect on the session; a readable but invalid one breaks the rules.
    private mutating func receiveWelcome(
        _ body: UnsafeRawBufferPointer,
        now: MonotonicTime,
        into actions: inout [Action]
    ) throws(SessionViolation) {
        let welcome: ServerOpening
        do {
            welcome = try ServerOpening(parsing: body)
        } catch {
            if case .undecodable = error { throw error }
            return violated(error, now: now, into: &actions)
        }
        receive(welcome, now: now, into: &actions)
    }

    @inline(__always)
    private mutating func receive(
        _ frame: InboundFrame,
        cost: Int,
        now: MonotonicTime,
        into actions: inout [Action]
    ) throws(SessionViolation) -> Arrival? {
        guard let kind = frame.kind else { return nil }
        return switch kind.lane {
        case .ordinary?: try receiveOrdinary(kind, frame.body, cost: cost, now: now, into: &actions)
        case .urgent?: try receiveUrgent(kind, frame.body, cost: cost, now: now, into: &actions)
        case nil: try receiveUnplaced(kind, frame.body, cost: cost, now: now, into: &actions)
        }
    }

    // MARK: The ordinary lane

    @inline(__always)
    private mutating func receiveOrdinary(
        _ kind: FrameKind,
        _ body: UnsafeRawBufferPointer,
        cost: Int,
        now: MonotonicTime,
        into actions: inout [Action]
    ) throws(SessionViolation) -> Arrival? {
        switch kind {
        case .push, .requestPart, .responsePart:
            // A frame that cannot be kept gets no place, and comes again.
            guard mayKeep(cost) else {
                sendAway()
                return nil
            }
        default: break
        }
        let place = try inbound.receive(cost: cost)
        var arrival: Arrival?
        switch kind {
        case .push:
            let message = try InboundMessage(kind, body)
            try checkPush(message)
            try peerPushCredits[Int(message.method) - 1].receive(cost)
            let receipt = receipt(place, cost, .push(method: message.method))
            if message.durable != 0, try !receiveDurable(message, receipt, now: now) { return nil }
            if message.isCall || message.isReply { return try receiveCallOrReply(message, receipt) }
            return .push(message, receipt)
        case .requestPart:
            if let part = try requestPart(try InboundMessage(kind, body), place, cost: cost) { return part }
        case .responsePart:
            if let part = try responsePart(try InboundMessage(kind, body), place, cost: cost) { return part }
        case .request:
            arrival = try receiveRequest(try InboundMessage(kind, body), cost: cost, now: now, into: &actions)
        case .response:
            arrival = try receiveResponse(try InboundMessage(kind, body), now: now, into: &actions)
        case .requestEnd:
            try receiveEnd(try InboundMessage(kind, body), place, into: &actions)
        case .method:
            try receiveMethod(try MethodName(parsing: body), into: &actions)
        default:
            break
        }
        inbound.finish(place, SessionSize(frameCount: 1, byteCount: cost), now: now)
        return arrival
    }

    @inline(__always)
    func receipt(_ place: UInt64, _ cost: Int, _ source: Receipt.Source) -> Receipt {
        Receipt(session: session, place: place, cost: cost, source: source)
    }

    @inline(__always)
    func checkPush(_ message: InboundMessage) throws(SessionViolation) {
        guard message.method >= 1, message.method <= peerMethods.count else { throw .unknownMethod(message.method) }
        if message.exceedsEntryLimits { throw .tooManyEntries }
    }

    @inline(__always)
    mutating func requestPart(
        _ message: InboundMessage,
        _ place: UInt64,
        cost: Int
    ) throws(SessionViolation) -> Arrival? {
        guard let stream = peerStreams[message.serial] else {
            try receivePartWithoutStream(message.serial, place)
            return nil
        }
        guard stream.receive != nil, !stream.hasEnded else {
            // A part that is sent at most once may be overtaken by the end.
            if place != 0 { throw .partsAfterEnd }
            lateMessageCount += 1
            return nil
        }
        if place != 0 { try peerStreams[message.serial]?.receive?.receive(cost) }
        return .requestPart(stream.request, message, receipt(place, cost, .requestPart(stream.request)))
    }

    @inline(__always)
    mutating func responsePart(
        _ message: InboundMessage,
        _ place: UInt64,
        cost: Int
    ) throws(SessionViolation) -> Arrival? {
        guard let id = requests.id(serial: message.serial), let request = requests.waiter(of: id) else {
            lateMessageCount += 1
            return nil
        }
        if place != 0 {
            if ownStreams[message.serial] == nil {
                let credit = ReceiveCredit(limit: options.inboundCredit)
                ownStreams[message.serial] = OwnStream(send: nil, receive: credit)
            }
            try ownStreams[message.serial]?.receive.receive(cost)
        }
        let receipt = receipt(place, cost, .responsePart(serial: message.serial))
        return .responsePart(id, message, receipt, asker: request.asker)
    }

    private mutating func receiveEnd(
        _ message: InboundMessage,
        _ place: UInt64,
        into actions: inout [Action]
    ) throws(SessionViolation) {
        guard let stream = peerStreams[message.serial] else {
            return try receivePartWithoutStream(message.serial, place)
        }
        guard stream.receive != nil, !stream.hasEnded else { throw .partsAfterEnd }
        peerStreams[message.serial]?.hasEnded = true
        actions.append(.requestEnded(stream.request))
    }

    /// Handles a part, or the end of parts, of a request that has no parts or has ended.
    private mutating func receivePartWithoutStream(_ serial: UInt32, _ place: UInt64) throws(SessionViolation) {
        // A part that is sent at most once breaks no rule.
        if place != 0, running.request(serial: serial) != nil { throw .partsAfterEnd }
        lateMessageCount += 1
    }

    private mutating func receiveMethod(_ method: MethodName, into actions: inout [Action]) throws(SessionViolation) {
        guard peerMethods.count < MethodNumbers.maximumCount else { throw .tooManyMethods }
        guard method.number == UInt32(peerMethods.count + 1) else { throw .methodNumber(method.number) }
        guard addPeerMethod(method.name, ReceiveCredit(limit: options.inboundCredit)) else {
            throw .methodNumber(method.number)
        }
        actions.append(.method(number: method.number, name: method.name))
    }

    /// Gives the next number to a method of the peer. Returns false if it already has one.
    mutating func addPeerMethod(_ name: String, _ credit: ReceiveCredit) -> Bool {
        guard peerMethodNames.insert(ExactName(name)).inserted else { return false }
        peerMethods.append(name)
        peerMethodByteCount += name.utf8.count + SessionSize.frameOverhead
        peerPushCredits.append(credit)
        return true
    }

    private mutating func receiveRequest(
        _ message: InboundMessage,
        cost: Int,
        now: MonotonicTime,
        into actions: inout [Action]
    ) throws(SessionViolation) -> Arrival? {
        guard message.serial != 0 else { throw .noSerial }
        guard message.method >= 1, message.method <= peerMethods.count else { throw .unknownMethod(message.method) }
        guard !message.hasParts || message.payload.isEmpty else { throw .payloadWithParts }
        let refusal = refusal(of: message, cost: cost)
        let deadline =
            message.timeoutMilliseconds == 0 ? nil : now + Duration(wireMilliseconds: message.timeoutMilliseconds)
        // A refused request is not kept.
        let request = running.begin(serial: message.serial, deadline: deadline, byteCount: refusal == nil ? cost : 0)
        guard let request else { throw .serialInUse(message.serial) }
        guard urgent.keptSize.frameCount < Self.urgentFrameLimit else { throw .urgentFramesUnacknowledged }
        if message.hasParts { beginPeerStream(request, receive: ReceiveCredit(limit: options.inboundCredit)) }
        guard let refusal else { return .request(request, message, deadline: deadline) }
        actions.append(.refuse(request, method: message.method, refusal))
        return nil
    }

    /// Begins the stream of a request with parts. Most requests and responses have none, and no stream.
    mutating func beginPeerStream(_ request: IncomingRequest, receive: ReceiveCredit? = nil) {
        guard peerStreams[request.serial] == nil else { return }
        peerStreams[request.serial] = PeerStream(
            request: request,
            send: SendCredit(initial: initialCredit),
            receive: receive,
            hasEnded: false
        )
    }

    /// Returns the reason why a received request is not processed; nil when it is.
    private func refusal(of message: InboundMessage, cost: Int) -> RequestRefusal? {
        if life.isClosing { return .closing }
        if message.exceedsEntryLimits { return .tooManyEntries }
        // When none runs, a received request has room: none is larger than the window.
        guard running.count < options.maximumRunningCount,
            running.byteCount + cost <= options.inboundWindow.byteCount
        else { return .tooManyRunning }
        guard running.count < allowance.handlerCount else { return .serverHandlers }
        // The unacknowledged responses, on top of everything that this side may request and push.
        let kept = ordinary.keptSize
        guard kept.frameCount <= 3 * options.outboundLimit.frameCount,
            kept.byteCount <= 3 * options.outboundLimit.byteCount
        else { return .tooManyResponses }
        return mayKeep(cost) ? nil : .serverMemory
    }

    private mutating func receiveResponse(
        _ message: InboundMessage,
        now: MonotonicTime,
        into actions: inout [Action]
    ) throws(SessionViolation) -> Arrival? {
        if message.exceedsEntryLimits { throw .tooManyEntries }
        // A request that was not sent cannot be answered.
        guard let request = requests.waiter(serial: message.serial), wasSent(request),
            case .answer(let id, let waiter) = requests.receivedResponse(serial: message.serial)
        else {
            lateMessageCount += 1
            return nil
        }
        // If the request was answered early, its remaining parts need not be sent.
        endOwnStream(message.serial, into: &actions)
        admitWaiting(now: now, into: &actions)
        return .response(id, message, asker: waiter.asker)
    }

    // MARK: The urgent lane

    private mutating func receiveUrgent(
        _ kind: FrameKind,
        _ body: UnsafeRawBufferPointer,
        cost: Int,
        now: MonotonicTime,
        into actions: inout [Action]
    ) throws(SessionViolation) -> Arrival? {
        try urgentInbound.receive(cost: cost, now: now)
        switch kind {
        case .urgentResponse:
            return try receiveResponse(try InboundMessage(kind, body), now: now, into: &actions)
        case .cancel:
            let message = try InboundMessage(kind, body)
            guard let request = running.cancel(serial: message.serial) else { return nil }
            endPeerStream(message.serial, into: &actions)
            actions.append(.cancelRequest(request))
        default: break
        }
        return nil
    }

    package static var noMemoryMessage: String { "The sessions of the server keep as much memory as its limit allows." }

    /// Sends the client away, because a received frame cannot be kept. It sends the frame again when it comes back.
    private mutating func sendAway() {
        giveUpConnection(.inOrder, saying: SessionGoodbye(.draining, Self.noMemoryMessage, pause: allowance.pause))
    }
}

extension FrameKind {
    var isUnplacedMessage: Bool {
        self == .unplacedPush || self == .unplacedRequestPart || self == .unplacedResponsePart
    }
}
