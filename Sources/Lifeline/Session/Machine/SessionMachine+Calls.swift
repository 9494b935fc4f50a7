package import LifelineCore

// Requests and their responses, of both sides.
extension SessionMachine {
    /// Asks for a response.
    ///
    /// - Parameters:
    ///   - hasParts: whether this side's messages follow in parts; then the content has no payload.
    ///   - deadline: until when the asker waits; nil: as long as it takes.
    ///   - asker: comes back with what becomes of it.
    /// - Returns: Its number, with which it can be cancelled.
    /// - Throws: `RequestError` `tooManyInFlight` by their count, by what has no room, or by cancellations that the
    ///   peer does not acknowledge; `messageRefused` when the peer takes no frame that is long enough, or the name is
    ///   none; `notSent` when the session has ended or is about to.
    package mutating func request(
        _ method: String,
        _ content: Content,
        hasParts: Bool = false,
        deadline: MonotonicTime?,
        asker: Asker? = nil,
        now: MonotonicTime
    ) throws(RequestError) -> RequestID {
        guard !life.isOver, !life.isClosing else { throw .sessionEnded }
        if let limit = limit(for: content.byteCount) { throw .messageRefused(limit: limit) }
        let limit = peerTerms?.maximumRequestCount ?? Self.requestLimitBeforeTerms
        guard requests.count < limit else { throw .tooManyInFlight(limit: limit) }
        guard urgent.keptSize.frameCount < Self.urgentFrameLimit / 2 else { throw .tooManyCancelled }
        let cost = content.byteCount + SessionSize.frameOverhead
        // Those that have no room may be as much as is kept once more.
        guard hasRoom(for: cost, besides: options.outboundLimit.byteCount), mayKeep(cost) else {
            throw .tooManyWithoutRoom
        }
        guard methodNumber(method) != nil else { throw .messageRefused(limit: MethodName.maximumByteCount) }
        let isHeld = life.isLeaving || waiting.isWaiting(in: .requests)
        var request = OwnRequest(asker: asker, place: isHeld ? 0 : ordinary.next, deadline: deadline)
        if isHeld { request.waitingNumber = takeNumber() }
        let id = try requests.began(request, deadline: deadline)
        let serial = RequestTable<OwnRequest>.serial(of: id)
        // Most requests have no parts. The first part of a response begins its stream.
        if hasParts {
            ownStreams[serial] = OwnStream(
                send: SendCredit(initial: initialCredit),
                receive: ReceiveCredit(limit: options.inboundCredit)
            )
        }
        if isHeld {
            waiting.append(
                WaitingMessage(
                    kind: .request,
                    scope: .requests,
                    number: request.waitingNumber,
                    serial: serial,
                    method: method,
                    fields: [UInt8](content.fields),
                    payload: [UInt8](content.payload),
                    deadline: deadline,
                    isAwaited: false,
                    hasParts: hasParts
                )
            )
        } else {
            appendRequest(serial, method, content, hasParts: hasParts, deadline: deadline, now: now)
        }
        return id
    }

    /// Brings a request that waited into the log.
    mutating func logRequest(_ message: WaitingMessage, now: MonotonicTime) {
        guard let id = requests.id(serial: message.serial) else { return }
        // Its name may have to be said first.
        _ = methodNumber(message.method)
        let place = ordinary.next
        requests.update(id) { $0.place = place }
        message.fields.withUnsafeBytes { fields in
            message.payload.withUnsafeBytes { payload in
                appendRequest(
                    message.serial,
                    message.method,
                    Content(fields: fields, payload: payload),
                    hasParts: message.hasParts,
                    deadline: message.deadline,
                    now: now
                )
            }
        }
        waiting.makeReady(.requestParts(serial: message.serial))
    }

    private mutating func appendRequest(
        _ serial: UInt32,
        _ method: String,
        _ content: Content,
        hasParts: Bool,
        deadline: MonotonicTime?,
        now: MonotonicTime
    ) {
        let frame = OutboundFrame(
            .request,
            serial: serial,
            method: methodNumber(method) ?? 0,
            timeoutMilliseconds: deadline.map { Self.timeout(until: $0, now: now) },
            hasParts: hasParts,
            fields: content.fields,
            payload: content.payload
        )
        appendOrdinary(frame, tag: OutboundLog.Tag(.request))
    }

    /// The time that a request that is sent now has left. What is over has a millisecond, as 0 stands for no limit.
    static func timeout(until deadline: MonotonicTime, now: MonotonicTime) -> UInt32 {
        UInt32(clamping: deadline.timeoutMilliseconds(now: now))
    }

    /// The asker does not wait any more. Returns whether the request had not ended.
    package mutating func cancelRequest(_ id: RequestID, now: MonotonicTime, into actions: inout [Action]) -> Bool {
        guard let request = requests.cancelled(id) else { return false }
        giveUp(RequestTable<OwnRequest>.serial(of: id), request, into: &actions)
        admitWaiting(now: now, into: &actions)
        endIfDone(now: now, into: &actions)
        return true
    }

    /// Lets the peer know that a request of this side's is over, if it may know of it at all.
    mutating func giveUp(_ serial: UInt32, _ request: OwnRequest, into actions: inout [Action]) {
        let hasParts = ownStreams[serial]?.send != nil
        endOwnStream(serial, into: &actions)
        if request.place == 0 {
            waiting.remove(request.waitingNumber)
        } else if request.place >= ordinary.sentEnd {
            if hasParts { blankParts(of: serial, from: request.place, into: &actions) }
            ordinary.blank(request.place)
        } else {
            let frame = OutboundFrame(.cancel, serial: serial)
            _ = urgent.append(byteCount: frame.byteCount, tag: OutboundLog.Tag(.plain)) { frame.write(to: $0) }
        }
    }

    /// A request of this side's has ended: parts of it that wait end with it. Those who sent them hear it.
    mutating func endOwnStream(_ serial: UInt32, into actions: inout [Action]) {
        guard !ownStreams.isEmpty, ownStreams.removeValue(forKey: serial) != nil, !waiting.isEmpty else { return }
        for message in waiting.removeAll(of: .requestParts(serial: serial)) {
            forgetWaiting(message)
            tellEnd(message, .unsent, into: &actions)
        }
    }

    /// The parts of a request that is not sent are not sent either.
    private mutating func blankParts(of serial: UInt32, from place: UInt64, into actions: inout [Action]) {
        var places: [UInt64] = []
        ordinary.forEachUnsent(from: place) { place, tag, frame in
            guard tag.role != .blank, tag.role != .method,
                let (kind, message) = Self.parsed(UnsafeRawBufferPointer(frame)), message.serial == serial,
                kind == .requestPart || kind == .requestEnd
            else { return }
            places.append(place)
        }
        for place in places {
            if let details = forgetDetails(of: place) {
                actions.append(.messageEnded(number: details.number, .unsent))
            }
            ordinary.blank(place)
        }
    }

    /// The kind and the fields of a frame of this side's log, its length in front.
    static func parsed(_ frame: UnsafeRawBufferPointer) -> (FrameKind, InboundMessage)? {
        guard case .value(_, let length) = Varint.decode(frame),
            let inner = try? InboundFrame(parsing: UnsafeRawBufferPointer(rebasing: frame[length...])),
            let kind = inner.kind, let message = try? InboundMessage(kind, inner.body)
        else { return nil }
        return (kind, message)
    }

    // MARK: Responses

    /// The fate of an offered response.
    package enum ResponseOffer: Equatable, Sendable {
        case accepted
        /// The peer does not wait for it any more.
        case notWaitedFor
        /// It cannot be sent: respond with this refusal.
        case refused(RequestRefusal)
    }

    /// Responds to a request of the peer's. It counts as running until this was called once without being refused.
    package mutating func respond(
        to request: IncomingRequest,
        _ content: Content,
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> ResponseOffer {
        if let call = running.durableCall(request) {
            return reply(to: call, request, content, now: now, into: &actions)
        }
        if !life.isOver, let refusal = refusal(ofResponse: content), running.isWaitedFor(request) {
            return .refused(refusal)
        }
        // A handler may outlive its session, and counts until it is done.
        guard let entry = running.end(request), !life.isOver else { return .notWaitedFor }
        guard !entry.isCancelled else {
            endIfDone(now: now, into: &actions)
            return .notWaitedFor
        }
        endPeerStream(request.serial, into: &actions)
        let kind: FrameKind = entry.hasParts ? .response : .urgentResponse
        let frame = OutboundFrame(
            kind,
            serial: request.serial,
            fields: content.fields,
            payload: content.payload
        )
        if entry.hasParts {
            appendOrdinary(frame, tag: OutboundLog.Tag(.plain))
        } else {
            _ = urgent.append(byteCount: frame.byteCount, tag: OutboundLog.Tag(.plain)) { frame.write(to: $0) }
        }
        endIfDone(now: now, into: &actions)
        return .accepted
    }

    /// Whether a request of this side's has not ended.
    package func isWaiting(for request: RequestID) -> Bool { requests.waiter(of: request) != nil }

    /// Whether the peer waits for the response to a request of its own.
    package func isWaitedFor(_ request: IncomingRequest) -> Bool {
        running.isWaitedFor(request) || running.durableCall(request) != nil
    }

    /// Why a response cannot be sent; nil when it can: a peer that asks for much and reads nothing must not take all
    /// memory.
    private func refusal(ofResponse content: Content) -> RequestRefusal? {
        if limit(for: content.byteCount) != nil { return .responseTooLarge }
        // A status always has room, so that every request ends.
        if content.byteCount <= SessionOptions.smallResponseByteCount { return nil }
        let kept = ordinary.keptSize.byteCount + urgent.keptSize.byteCount
        guard
            kept == 0
                || content.byteCount <= options.outboundLimit.byteCount + options.outboundLimit.byteCount / 2 - kept
        else { return .tooManyResponses }
        return mayKeep(content.byteCount + SessionSize.frameOverhead) ? nil : .serverMemory
    }

    /// A request of the peer's has ended here: parts of its response that wait are dropped.
    mutating func endPeerStream(_ serial: UInt32, into actions: inout [Action]) {
        guard !peerStreams.isEmpty, let stream = peerStreams.removeValue(forKey: serial), !waiting.isEmpty else {
            return
        }
        for message in waiting.removeAll(of: .responseParts(stream.request)) {
            forgetWaiting(message)
            tellEnd(message, .unsent, into: &actions)
        }
    }

    // MARK: What was consumed

    /// Pushes or parts that came in were processed.
    package mutating func finish(_ receipt: Receipt, now: MonotonicTime) {
        guard receipt.session == session else {
            finishDurable(receipt, now: now)
            return
        }
        guard receipt.place != 0 else {
            return unplacedSize = unplacedSize - SessionSize(frameCount: receipt.count, byteCount: receipt.cost)
        }
        let cost = finishPlaces(receipt, now: now)
        switch receipt.source {
        case .push(let method): consumePush(method, cost: cost)
        case .requestPart(let request):
            // Another request may have its serial by now.
            let serial = request.serial
            guard let stream = peerStreams[serial], stream.request == request else { return }
            let isDue = peerStreams[serial]?.receive?.consume(receipt.cost) != nil
            if isDue, !stream.hasEnded { tellCredit(.requestParts(serial: serial)) }
        case .responsePart(let serial):
            let isDue = ownStreams[serial]?.receive.consume(receipt.cost) != nil
            if isDue { tellCredit(.responseParts(serial: serial)) }
        }
    }

    /// Gives the credit of pushes back.
    mutating func consumePush(_ method: UInt32, cost: Int) {
        guard cost > 0, peerPushCredits[Int(method) - 1].consume(cost) != nil else { return }
        tellCredit(.method(method))
    }

    /// Has the peer told of a credit.
    mutating func tellCredit(_ target: CreditGrant.Target) {
        if isCreditDue.insert(target).inserted { dueCredits.append(target) }
    }

    /// The sum of a credit to tell the peer; nil where its request has ended.
    func creditToTell(_ target: CreditGrant.Target) -> UInt64? {
        switch target {
        case .method(let number): peerPushCredits[Int(number) - 1].told
        case .requestParts(let serial): peerStreams[serial]?.receive?.told
        case .responseParts(let serial): ownStreams[serial]?.receive.told
        }
    }
}
