package import LifelineCore

// Sending frames over the present connection.
extension SessionMachine {
    /// Hands out the frames to send over the present connection.
    ///
    /// - Parameters:
    ///   - hasRoom: whether the connection has room; without room, only frames that need not wait for it are handed
    ///     out.
    ///   - byteCount: about the most bytes to hand out.
    ///   - output: receives bytes, which are valid only during the call.
    /// - Returns: whether anything was handed out: then there may be more.
    package mutating func offer(
        hasRoom: Bool,
        atMost byteCount: Int,
        now: MonotonicTime,
        into actions: inout [Action],
        to output: (UnsafeRawBufferPointer) -> Void
    ) -> Bool {
        if !control.isEmpty {
            control.withUnsafeBytes(output)
            control.removeAll()
            return true
        }
        guard hasRoom, life.canSend else { return false }
        var isAnything = offerCredits(to: output)
        let hasMessages = canOfferMessages
        if hasMessages || inbound.isReportDue(now: now) || urgentInbound.isReportDue(now: now) {
            isAnything = offerAcknowledgement(to: output) || isAnything
        }
        // Before the response or the end that follows them, if possible.
        isAnything = offerUnplaced(into: &actions, to: output) || isAnything
        if hasMessages { isAnything = offerMessages(atMost: byteCount, to: output) || isAnything }
        isAnything = offerUnplaced(into: &actions, to: output) || isAnything
        if isAnything { return true }
        guard let goodbye = life.takeDrain(isIdle: !hasUnsent, now: now) else { return false }
        var bytes: [UInt8] = []
        goodbye.write(to: &bytes)
        bytes.withUnsafeBytes(output)
        return true
    }

    /// Notes that the present connection has taken all frames that were handed out.
    package mutating func written() { beforeUnwritten = nil }

    /// Notes that the present connection has taken everything that there was to offer.
    ///
    /// - Parameter hasRoom: whether it had room for all of it. Frames that wait for room are written later.
    package mutating func offered(hasRoom: Bool, now: MonotonicTime, into actions: inout [Action]) {
        written()
        let closing = life.offered(
            hasRoom: hasRoom,
            isIdle: life.isLeaving && isIdle,
            role: role,
            goodbyeDeadline: now + options.goodbyeTimeout
        )
        if let closing { actions.append(.closeConnection(life.connectionID, closing)) }
        endIfDone(now: now, into: &actions)
    }

    /// Notes that the present connection has refused the last frames that were handed out, and is about to end. Refused
    /// messages were not sent.
    package mutating func sendingFailed(into actions: inout [Action]) {
        control = []
        if let before = beforeUnwritten.take() {
            ordinary.takeBack(to: before.ordinary)
            urgent.takeBack(to: before.urgent)
        }
        if let closing = life.sendingFailed() { actions.append(.closeConnection(life.connectionID, closing)) }
    }

    /// Whether there may be something to offer, or an action after everything was offered: a hint, which may be wrong.
    @inline(__always)
    package func wantsOffer(now: MonotonicTime) -> Bool {
        !life.isSteady || canOfferMessages || !dueCredits.isEmpty || !unplaced.isEmpty || !control.isEmpty
            || inbound.isReportDue(now: now) || urgentInbound.isReportDue(now: now)
    }

    /// Whether the next bytes are an opening or a goodbye: they are few, and need not wait for room.
    package var hasControlFrames: Bool { !control.isEmpty }

    private var canOfferMessages: Bool {
        ordinary.nextToSend < ordinary.next || urgent.nextToSend < urgent.next
    }

    /// Ordinary messages that are sent again go first, so that no cancellation comes before its request.
    private mutating func offerMessages(atMost byteCount: Int, to output: (UnsafeRawBufferPointer) -> Void) -> Bool {
        var count = 0
        if beforeUnwritten == nil { beforeUnwritten = (ordinary.sendingState, urgent.sendingState) }
        if ordinary.nextToSend >= ordinary.sentEnd {
            count += urgent.send(within: peerWindow, atMost: byteCount, to: output)
        }
        count += ordinary.send(within: peerWindow, atMost: byteCount, to: output)
        return count > 0
    }

    private mutating func offerUnplaced(
        into actions: inout [Action],
        to output: (UnsafeRawBufferPointer) -> Void
    ) -> Bool {
        // The name of a push's method, and the request of a part, go first.
        guard !unplaced.isEmpty, ordinary.nextToSend > unplacedPlace else { return false }
        unplaced.withUnsafeBytes(output)
        unplaced.removeAll()
        for number in unplacedNumbers { actions.append(.messageEnded(number: number, .sent)) }
        unplacedNumbers = []
        return true
    }

    private mutating func offerAcknowledgement(to output: (UnsafeRawBufferPointer) -> Void) -> Bool {
        guard inbound.hasUntold || urgentInbound.hasUntold else { return false }
        let report = inbound.takeReport(rangeLimit: Acknowledgement.rangeLimit(frameLimit: peerFrameLimit))
        let acknowledgement = Acknowledgement(
            ordinary: report.processed,
            urgent: urgentInbound.takeReport(),
            ranges: report.ranges
        )
        var bytes: [UInt8] = []
        acknowledgement.write(to: &bytes)
        bytes.withUnsafeBytes(output)
        return true
    }

    private mutating func offerCredits(to output: (UnsafeRawBufferPointer) -> Void) -> Bool {
        guard !dueCredits.isEmpty else { return false }
        var bytes: [UInt8] = []
        for target in dueCredits {
            if let sum = creditToTell(target) { CreditGrant(target: target, bytes: sum).write(to: &bytes) }
        }
        forgetDueCredits()
        if bytes.isEmpty { return false }
        bytes.withUnsafeBytes(output)
        return true
    }

    mutating func forgetDueCredits() {
        dueCredits.removeAll(keepingCapacity: dueCredits.count <= 64)
        isCreditDue.removeAll(keepingCapacity: dueCredits.count <= 64)
    }

    /// Reports processed frames to the peer together with a goodbye.
    mutating func sayWhatWasProcessed() {
        guard life.canSend else { return }
        var bytes: [UInt8] = []
        while offerAcknowledgement(to: { bytes.append(contentsOf: $0) }) {}
        control.append(contentsOf: bytes)
    }

    /// Whether nothing is under way: the peer has processed all sent frames and knows that all of its frames are
    /// processed, and no sent request waits for its response.
    private var isIdle: Bool {
        ordinary.keptSize.frameCount == 0 && urgent.keptSize.frameCount == 0 && requests.count == waitingRequestCount
            && inbound.processed == inbound.received && !inbound.hasUntold && !urgentInbound.hasUntold
            && running.isEmpty
    }

    /// The number of requests that wait for another connection.
    private var waitingRequestCount: Int { waiting.count(of: .requests) }

    /// Whether any message waits for room, for credit, or for the peer's window. Messages that are sent at most once
    /// wait only for frames of the ordinary lane.
    private var hasUnsent: Bool {
        ordinary.nextToSend < ordinary.next || urgent.nextToSend < urgent.next || !waiting.isEmpty
    }

    /// The time at which to call `timerFired`; nil to wait for another event.
    package var nextDeadline: MonotonicTime? {
        let own = life.nextDeadline
        guard !life.isOver else { return .earliest(own, storeDeadline) }
        let report: MonotonicTime? =
            life.canSend ? .earliest(inbound.nextDeadline, urgentInbound.nextDeadline) : nil
        return .earliest(
            .earliest(.earliest(own, report), .earliest(logDeadlines.next, waitingDeadlines.next)),
            .earliest(
                .earliest(requests.nextDeadline, running.nextDeadline),
                .earliest(.earliest(spareMemoryDeadline, heldCalls.deadline), storeDeadline)
            )
        )
    }

    /// Notes that `nextDeadline` has passed; calling this early does no harm. Afterwards there may be something to
    /// offer.
    package mutating func timerFired(now: MonotonicTime, into actions: inout [Action]) {
        while let (id, closing) = life.takeOverdue(now: now) { actions.append(.closeConnection(id, closing)) }
        guard !life.isOver else { return }
        if case .opening(let deadline) = life.connection, deadline <= now {
            giveUpConnection(.abortNotWelcomed)
            actions.append(.notWelcomed)
        }
        life.drainTimerFired(now: now)
        if let goodbye = life.takeDrain(isIdle: false, now: now) { goodbye.write(to: &control) }
        expire(now: now, into: &actions)
        for request in requests.timerFired(now: now) {
            actions.append(.failed(request.id, .timedOut, asker: request.waiter.asker))
            giveUp(RequestTable<OwnRequest>.serial(of: request.id), request.waiter, into: &actions)
        }
        for request in running.timerFired(now: now) {
            endPeerStream(request.serial, into: &actions)
            actions.append(.cancelRequest(request))
        }
        moveTimerFired(now: now, into: &actions)
        roomTimerFired(now: now)
        callTimersFired(now: now, into: &actions)
        inbound.timerFired(now: now)
        urgentInbound.timerFired(now: now)
        giveBackMemory(now: now)
        admitWaiting(now: now, into: &actions)
        if life.isOverdue(now: now) {
            end(.abandoned, now: now, into: &actions)
        } else {
            endIfDone(now: now, into: &actions)
        }
    }

    /// Ends expired messages that have not reached the peer.
    private mutating func expire(now: MonotonicTime, into actions: inout [Action]) {
        while let number = waitingDeadlines.takeDue(now: now) {
            guard let message = waiting.remove(number) else { continue }
            forgetWaiting(message)
            waiting.makeReady(message.scope)
            finishedDurable(message.durable, isLeftOut: true, now: now)
            tellEnd(message, message.mayHaveCome ? .inDoubt : .expired, into: &actions)
        }
        while let number = logDeadlines.takeDue(now: now) {
            // A message that was sent may have arrived. It ends when the next connection shows that it has not.
            guard let place = expiringPlaces[number], place >= ordinary.sentEnd else { continue }
            blank(place, .expired, now: now, into: &actions)
        }
        expireStored(now: now, into: &actions)
    }

    /// Replaces a message that need not be sent by a blank.
    mutating func blank(
        _ place: UInt64,
        _ outcome: SessionDeliveryOutcome,
        now: MonotonicTime,
        into actions: inout [Action]
    ) {
        guard let details = forgetDetails(of: place) else { return }
        var payload: [UInt8] = []
        let (cost, parsed) = ordinary.withFrame(place) { frame in
            let parsed = Self.parsed(frame)
            if details.durable != 0, let message = parsed?.1 { payload = [UInt8](message.payload) }
            return (OutboundLog.cost(frame.count), parsed.map { ($0, $1.method, $1.serial) })
        }
        ordinary.blank(place)
        if details.durable == 0 {
            actions.append(.messageEnded(number: details.number, outcome))
        } else {
            finishedDurable(details.durable, isLeftOut: true, now: now)
            var message = WaitingMessage(kind: .push, scope: details.scope, number: details.number)
            message.method = parsed.map { methods.name($0.1) } ?? ""
            (message.payload, message.delivery, message.durable) = (payload, details.delivery, details.durable)
            (message.isObserved, message.isAwaited) = (details.isObserved, false)
            tellEnd(message, details.mayHaveCome ? .inDoubt : outcome, into: &actions)
        }
        guard let (kind, method, serial) = parsed else { return }
        giveBackCredit(cost, OutgoingMessage(kind: kind, scope: details.scope, method: method, serial: serial))
    }
}
