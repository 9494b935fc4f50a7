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
        guard try inbound.receive(place, byteCount: message.byteCount) else { return [] }
        switch (message.kind, message.content) {
        case (.push(let serial), let content?):
            guard isWaitedFor(serial) else {
                inbound.finish(place.sequence, now: now)
                return []
            }
            let receipt = Receipt(session: session, isPlaced: true, number: place.sequence)
            return [.deliverPush(serial: serial, content, receipt)]
        case (.request(let serial, let deadline), let content?):
            return try receivedRequest(serial, deadline, content, message.byteCount, place.sequence, now: now)
        case (.response(let serial, _), let content?):
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
            guard isWaitedFor(serial) else { return [] }
            guard let number = inbound.receiveUnplaced(byteCount: message.byteCount) else {
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
        _ serial: UInt32,
        _ deadline: MonotonicTime?,
        _ content: Content,
        _ byteCount: Int,
        _ sequence: UInt64,
        now: MonotonicTime
    ) throws(SessionViolation) -> [Action] {
        guard serial != 0 else { throw .noSerial }
        // Responses that wait for room take up as much as requests that run. One request alone may be larger than the window.
        let taken =
            SessionSize(frameCount: running.count, byteCount: running.byteCount) + outbound.unadmittedResponseSize
        let limit = SessionWindow(
            frameCount: options.maximumRunningCount,
            byteCount: options.inboundWindow.byteCount
        )
        let isRefused = isClosing || !limit.takes(byteCount, besides: taken)
        guard let request = running.begin(serial: serial, deadline: deadline, byteCount: byteCount) else {
            throw .serialInUse(serial)
        }
        if hasRoomForRequests { inbound.finish(sequence, now: now) } else { inbound.hold(sequence) }
        return isRefused ? [.refuseRequest(request, content)] : [.beginRequest(request, deadline: deadline, content)]
    }
}
