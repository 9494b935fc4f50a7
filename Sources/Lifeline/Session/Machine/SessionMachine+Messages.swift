internal import LifelineCore

// Messages that come in.
extension SessionMachine {
    mutating func received(
        _ message: Message,
        _ place: SessionPlace?,
        now: MonotonicTime
    ) throws(SessionViolation) -> [Action] {
        guard let place else { return try receivedUnplaced(message) }
        guard message.mayStand(in: place.lane) else { throw .wrongPlace }
        if case .push = message.kind, !mayKeep(message.byteCount), inbound.isNew(place) {
            sendAway()
            return []
        }
        guard try inbound.receive(place, byteCount: message.byteCount) else { return [] }
        switch (message.kind, message.content) {
        case (.push(let serial), let content?):
            guard !message.exceedsLimits else { throw .tooManyEntries }
            guard isWaitedFor(serial) else {
                inbound.finish(place.sequence, now: now)
                return []
            }
            let receipt = Receipt(session: session, isPlaced: true, number: place.sequence)
            return [.deliverPush(serial: serial, content, receipt)]
        case (.request(let serial, let deadline), let content?):
            return try receivedRequest(message, serial, deadline, content, place.sequence, now: now)
        case (.response(let serial, _), let content?):
            guard !message.exceedsLimits else { throw .tooManyEntries }
            inbound.finish(place, now: now)
            guard case .answer(_, let request) = requests.receivedResponse(serial: serial) else {
                lateMessageCount += 1
                return []
            }
            // One that was answered before it was asked needs not be sent.
            _ = outbound.withdraw(request.number)
            return [.complete(request.waiter, content)]
        case (.cancel(let serial), _):
            inbound.finish(place, now: now)
            return running.cancel(serial: serial).map { [.cancelRequest($0)] } ?? []
        case (.blank, _), (_, nil):
            inbound.finish(place, now: now)
            return []
        }
    }

    private mutating func receivedUnplaced(_ message: Message) throws(SessionViolation) -> [Action] {
        switch (message.kind, message.content) {
        case (.blank, _):
            return []
        case (.push(let serial), let content?):
            guard !message.exceedsLimits else { throw .tooManyEntries }
            guard isWaitedFor(serial) else { return [] }
            guard mayKeep(message.byteCount), let number = inbound.receiveUnplaced(byteCount: message.byteCount) else {
                droppedPushCount += 1
                return []
            }
            return [.deliverPush(serial: serial, content, Receipt(session: session, isPlaced: false, number: number))]
        case (.request, _), (.response, _), (.cancel, _), (_, nil):
            throw .wrongPlace
        }
    }

    /// Whether a push is for nobody in particular, or for a request that has not ended; else it is late.
    private mutating func isWaitedFor(_ serial: UInt32) -> Bool {
        if serial == 0 || requests.isWaiting(serial: serial) { return true }
        lateMessageCount += 1
        return false
    }

    private mutating func receivedRequest(
        _ message: Message,
        _ serial: UInt32,
        _ deadline: MonotonicTime?,
        _ content: Content,
        _ sequence: UInt64,
        now: MonotonicTime
    ) throws(SessionViolation) -> [Action] {
        guard serial != 0 else { throw .noSerial }
        if !cancelledBeforeTheyCame.isEmpty, cancelledBeforeTheyCame.remove(sequence) != nil {
            inbound.finish(sequence, now: now)
            return []
        }
        let refusal = refusal(of: message)
        // What is refused is not kept.
        let byteCount = refusal == nil ? message.byteCount : 0
        guard let request = running.begin(serial: serial, deadline: deadline, byteCount: byteCount) else {
            throw .serialInUse(serial)
        }
        if hasRoomForRequests { inbound.finish(sequence, now: now) } else { inbound.hold(sequence) }
        if let refusal { return [.refuseRequest(request, content, refusal)] }
        return [.beginRequest(request, deadline: deadline, content)]
    }

    /// Why a request that has come is not processed; nil when it is.
    private func refusal(of message: Message) -> RequestRefusal? {
        if life.isClosing { return .closing }
        if message.exceedsLimits { return .tooManyEntries }
        // Responses that wait for room take up as much as requests that run.
        let taken =
            SessionSize(frameCount: running.count, byteCount: running.byteCount) + outbound.unadmittedResponseSize
        let limit = SessionWindow(
            frameCount: options.maximumRunningCount,
            byteCount: options.inboundWindow.byteCount
        )
        guard limit.takes(message.byteCount, besides: taken) else { return .tooManyRunning }
        guard running.count < allowance.handlerCount else { return .serverHandlers }
        // It has come, and is counted already.
        return mayKeep(0) ? nil : .serverMemory
    }

    /// Whether the session may keep so many bytes more: otherwise all sessions of the server keep as much as they may.
    func mayKeep(_ byteCount: Int) -> Bool {
        // Most have no server to share with, or a sum that does not overflow: it is what was counted before.
        allowance.byteCount == .max || keptByteCount + byteCount <= allowance.byteCount
    }

    /// What came cannot be kept, and is sent again when the client comes back.
    private mutating func sendAway() {
        let message = "The sessions of the server keep as much as they may together."
        giveUpConnection(.inOrder, saying: SessionGoodbye(.draining, message, pause: allowance.pause))
    }
}
