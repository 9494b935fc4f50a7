package import LifelineCore

// Requests and their responses, of both sides.
extension SessionMachine {
    /// Makes a request.
    ///
    /// - Parameters:
    ///   - hasParts: whether this side's messages follow in parts; then the content has no payload.
    ///   - deadline: the time until which the caller waits; nil for no limit.
    ///   - asker: is returned with the outcome of the request.
    /// - Returns: The number with which the request can be cancelled.
    /// - Throws: `RequestError` `tooManyInFlight` when there are too many requests, too many bytes without room, or too
    ///   many unacknowledged cancellations; `messageRefused` when the request is too long for the peer, or the method
    ///   name is invalid; `notSent` when the session has ended or is about to.
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
        // Requests without room may take as many bytes again as may be kept.
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

    /// Moves a request that waited into the log.
    mutating func logRequest(_ message: WaitingMessage, now: MonotonicTime) {
        guard let id = requests.id(serial: message.serial) else { return }
        // The method's name may have to be sent first.
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

    /// Returns the remaining time of a request that is sent now. An expired one has a millisecond, because 0 means no
    /// limit.
    static func timeout(until deadline: MonotonicTime, now: MonotonicTime) -> UInt32 {
        UInt32(clamping: deadline.timeoutMilliseconds(now: now))
    }

    /// Cancels a request for its caller. Returns whether the request had not ended.
    package mutating func cancelRequest(_ id: RequestID, now: MonotonicTime, into actions: inout [Action]) -> Bool {
        guard let request = requests.cancelled(id) else { return false }
        giveUp(RequestTable<OwnRequest>.serial(of: id), request, into: &actions)
        admitWaiting(now: now, into: &actions)
        endIfDone(now: now, into: &actions)
        return true
    }

    /// Tells the peer that a request of this side is over, if the peer may have seen it.
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

    /// Ends the parts of a request of this side that has ended, and tells their senders.
    mutating func endOwnStream(_ serial: UInt32, into actions: inout [Action]) {
        guard !ownStreams.isEmpty, ownStreams.removeValue(forKey: serial) != nil, !waiting.isEmpty else { return }
        for message in waiting.removeAll(of: .requestParts(serial: serial)) {
            forgetWaiting(message)
            tellEnd(message, .unsent, into: &actions)
        }
    }

    /// Replaces the parts of a request that is not sent by blanks.
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

    /// Parses a frame of this side's log, which begins with its length.
    static func parsed(_ frame: UnsafeRawBufferPointer) -> (FrameKind, InboundMessage)? {
        guard case .value(_, let length) = Varint.decode(frame),
            let inner = try? InboundFrame(parsing: UnsafeRawBufferPointer(rebasing: frame[length...])),
            let kind = inner.kind, let message = try? InboundMessage(kind, inner.body)
        else { return nil }
        return (kind, message)
    }

    // MARK: Responses

    /// The result of offering a response.
    package enum ResponseOffer: Equatable, Sendable {
        case accepted
        /// The peer no longer waits for it.
        case notWaitedFor
        /// It cannot be sent: respond with this refusal.
        case refused(RequestRefusal)
    }

    /// Responds to a request of the peer. The request counts as running until a response was not refused.
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
        // A handler may outlive its session, and counts as running until it is done.
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

    /// Whether a request of this side has not ended.
    package func isWaiting(for request: RequestID) -> Bool { requests.waiter(of: request) != nil }

    /// Whether the peer waits for the response to its request.
    package func isWaitedFor(_ request: IncomingRequest) -> Bool {
        running.isWaitedFor(request) || running.durableCall(request) != nil
    }

    /// Returns the reason why a response cannot be sent; nil when it can. A peer that makes many requests and reads
    /// nothing must not use up the memory.
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

    /// Drops the waiting parts of a response, because the peer's request has ended here.
    mutating func endPeerStream(_ serial: UInt32, into actions: inout [Action]) {
        guard !peerStreams.isEmpty, let stream = peerStreams.removeValue(forKey: serial), !waiting.isEmpty else {
            return
        }
        for message in waiting.removeAll(of: .responseParts(stream.request)) {
            forgetWaiting(message)
            tellEnd(message, .unsent, into: &actions)
        }
    }

    // MARK: Processed messages

    /// Notes that received pushes or parts were processed.
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

    /// Returns the credit of pushes to the peer.
    mutating func consumePush(_ method: UInt32, cost: Int) {
        guard cost > 0, peerPushCredits[Int(method) - 1].consume(cost) != nil else { return }
        tellCredit(.method(method))
    }

    /// Schedules a credit to be told to the peer.
    mutating func tellCredit(_ target: CreditGrant.Target) {
        if isCreditDue.insert(target).inserted { dueCredits.append(target) }
    }

    /// Returns the sum of a credit to tell the peer; nil when its request has ended.
    func creditToTell(_ target: CreditGrant.Target) -> UInt64? {
        switch target {
        case .method(let number): peerPushCredits[Int(number) - 1].told
        case .requestParts(let serial): peerStreams[serial]?.receive?.told
        case .responseParts(let serial): ownStreams[serial]?.receive.told
        }
    }
}
