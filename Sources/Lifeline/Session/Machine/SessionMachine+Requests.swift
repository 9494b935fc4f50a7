package import LifelineCore

// What this side asks and tells.
extension SessionMachine {
    /// What became of an offered message.
    package enum Offer: Equatable, Sendable {
        /// It is accepted. Unless it is admitted, whoever brings it waits for the action.
        case accepted(Number, isAdmitted: Bool)
        /// It was to be sent now or not at all, and cannot be; or the request that it is for is not waited for any
        /// more.
        case dropped
        /// The peer takes no frame that is long enough for it, or its window is smaller.
        case tooLong(limit: Int)
        /// All sessions of the server keep as much as they may.
        case exhausted
        /// The session has ended, or is about to.
        case closed
    }

    /// Sends a push: of a request of the peer's, or of none.
    ///
    /// - Parameter isObserved: whether to tell when it was sent or processed. What does not come to that is always
    ///   told.
    package mutating func push(
        _ content: Content,
        of request: IncomingRequest? = nil,
        _ delivery: SessionDelivery = .reliable,
        isObserved: Bool = false,
        now: MonotonicTime
    ) -> (Offer, [Action]) {
        // What runs may be finished while this side closes.
        guard !life.isOver, !life.isClosing || request != nil else { return (.closed, []) }
        if let request, !running.isWaitedFor(request) { return (.dropped, []) }
        guard peerTakes(content) else { return (.tooLong(limit: min(peerFrameLimit, peerByteLimit)), []) }
        let message = Message.push(serial: request?.serial ?? 0, content)
        let isKept = mayKeep(message.byteCount)
        if delivery.isAtMostOnce, !life.canSend || !isKept || !hasRoom(forPush: content) { return (.dropped, []) }
        guard isKept else { return (.exhausted, []) }
        let (number, isAdmitted, replaced) = outbound.accept(message, delivery, isObserved: isObserved, now: now)
        if let request { running.pushed(request) }
        return (.accepted(number, isAdmitted: isAdmitted), outcomes(of: replaced.map { [$0] } ?? [], now: now))
    }

    /// Whether the peer takes a message with the content when it takes nothing else.
    package func peerTakes(_ content: Content) -> Bool {
        content.maximumFrameLength <= peerFrameLimit && content.byteCount <= peerByteLimit - Content.messageOverhead
    }

    /// Whether a push that is accepted now needs not wait for room.
    package func hasRoom(forPush content: Content) -> Bool { outbound.hasRoom(for: .push(serial: 0, content)) }

    /// Asks for a response.
    ///
    /// - Parameter deadline: when whoever asks stops to wait; nil: never.
    /// - Returns: Its number, with which it can be cancelled.
    /// - Throws: `RequestError` `tooManyInFlight` by their count, by what has no room, or by cancellations that the
    ///   peer does not acknowledge; `messageRefused` when the peer takes no frame that is long enough; `notSent` when
    ///   the session has ended or is about to.
    package mutating func request(
        _ content: Content,
        _ waiter: Waiter,
        deadline: MonotonicTime?,
        now: MonotonicTime
    ) throws(RequestError) -> RequestID {
        guard !life.isOver, !life.isClosing else { throw .sessionEnded }
        guard peerTakes(content) else { throw .messageRefused(limit: min(peerFrameLimit, peerByteLimit)) }
        // Cancellations are always accepted, and a peer that acknowledges none would have this side keep any number of
        // them.
        let hasRoomToCancel = outbound.admittedSize(.urgent).frameCount < options.outboundLimit.frameCount
        guard requests.count < peerRequestLimit else { throw .tooManyInFlight(limit: peerRequestLimit) }
        guard hasRoomToCancel else { throw .tooManyCancelled }
        guard outbound.takesRequest(Content.messageOverhead + content.byteCount) else { throw .tooManyWithoutRoom }
        let request = RequestInFlight(waiter: waiter, number: outbound.nextNumber)
        let id = try requests.began(request, deadline: deadline)
        let message = Message.request(serial: Self.serial(of: id), deadline: deadline, content)
        outbound.accept(message, now: now)
        return id
    }

    /// The serial of a request, which pushes that belong to it carry.
    package static func serial(of id: RequestID) -> UInt32 { RequestTable<RequestInFlight>.serial(of: id) }

    /// Who waits for the response of the request of a serial; nil where that has ended.
    package func waiter(serial: UInt32) -> Waiter? { requests.waiter(serial: serial)?.waiter }

    /// How many requests wait for their responses.
    package var requestCount: Int { requests.count }

    /// How many of them the peer may have seen.
    package var sentRequestCount: Int { requests.count - outbound.waitingRequestCount }

    /// Whoever asked does not wait any more. Returns its waiter; nil when the request has ended.
    package mutating func cancelRequest(_ id: RequestID, now: MonotonicTime) -> (Waiter?, [Action]) {
        guard let request = requests.cancelled(id) else { return (nil, []) }
        giveUp(id, request, now: now)
        return (request.waiter, endingIfDone(outcomes(of: [], now: now), now: now))
    }

    /// What became of an offered response.
    package enum ResponseOffer: Equatable, Sendable {
        case accepted
        /// The peer does not wait for it any more.
        case notWaitedFor
        /// It cannot be sent. A status has taken its place, so that every request ends.
        case refused(RequestRefusal)
    }

    /// Responds to a request of the peer's.
    package mutating func respond(
        to request: IncomingRequest,
        _ content: Content,
        now: MonotonicTime
    ) -> (ResponseOffer, [Action]) {
        if !life.isOver, let refusal = refusal(ofResponse: content) {
            return (.refused(refusal), refuse(request, refusal, now: now))
        }
        return end(request, with: content, now: now)
    }

    /// Responds to a request of the peer's that is not processed, even if the peer takes no frame that long.
    package mutating func refuse(_ request: IncomingRequest, _ refusal: RequestRefusal, now: MonotonicTime) -> [Action]
    {
        end(request, with: .refusal(refusal), now: now).1
    }

    private mutating func end(
        _ request: IncomingRequest,
        with content: Content,
        now: MonotonicTime
    ) -> (ResponseOffer, [Action]) {
        // A handler may outlive its session, and counts until it is done.
        guard let entry = running.end(request), !life.isOver else { return (.notWaitedFor, []) }
        if !entry.isCancelled {
            let message = Message.response(serial: request.serial, endsPushes: entry.hasPushes, content)
            outbound.accept(message, now: now)
        }
        let actions = endingIfDone(outcomes(of: [], now: now), now: now)
        return (entry.isCancelled ? .notWaitedFor : .accepted, actions)
    }

    /// Why a response cannot be sent; nil when it can: a peer that asks for much and reads nothing must not take all
    /// memory.
    private func refusal(ofResponse content: Content) -> RequestRefusal? {
        guard peerTakes(content) else { return .responseTooLarge }
        // A status always has room, so that every request ends.
        if content.byteCount <= SessionOptions.smallResponseByteCount { return nil }
        let waiting = outbound.unadmittedResponseSize.byteCount
        let byteCount = Content.messageOverhead + content.byteCount
        guard waiting == 0 || byteCount <= options.unadmittedResponseByteLimit - waiting else {
            return .tooManyResponses
        }
        return mayKeep(byteCount) ? nil : .serverMemory
    }

    /// Gives up a push that is accepted. Returns false when it was sent, or has ended, or another one was given up for
    /// it; else nothing more is told of it.
    package mutating func withdraw(_ number: Number, now: MonotonicTime) -> (Bool, [Action]) {
        guard outbound.withdraw(number) else { return (false, []) }
        return (true, endingIfDone(outcomes(of: [], now: now), now: now))
    }

    /// Whether the peer waits for the response of a request of its own.
    package func isWaitedFor(_ request: IncomingRequest) -> Bool { running.isWaitedFor(request) }

    /// A push that came in is processed.
    package mutating func finish(_ receipt: Receipt, now: MonotonicTime) {
        guard receipt.session == session else { return }
        if receipt.isPlaced { inbound.finish(receipt.number, now: now) } else { inbound.finishUnplaced(receipt.number) }
    }
}

extension RequestError {
    static var sessionEnded: RequestError {
        RequestError(
            code: .notSent,
            message: "The session has ended, so that the peer has not seen the request. Begin another one.",
            cause: nil
        )
    }

    static var tooManyWithoutRoom: RequestError {
        RequestError(
            code: .tooManyInFlight,
            message:
                "Requests that have no room are as many, or as large, as what is kept. Ask less at once, or raise the limits.",
            cause: nil
        )
    }

    static var tooManyCancelled: RequestError {
        RequestError(
            code: .tooManyInFlight,
            message: "The peer has not acknowledged that earlier requests were cancelled. Ask again later.",
            cause: nil
        )
    }
}
