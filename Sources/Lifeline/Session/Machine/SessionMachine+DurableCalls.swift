package import LifelineCore

// Durable calls. A durable push makes the call, and another push is the reply. If the other side has a store, it stores
// the reply together with the mark that the call is processed, and sends the reply as a durable push. So both survive,
// and each is processed once.
extension SessionMachine {
    /// Makes a durable call. It is stored before it is sent; the call and its reply survive the process.
    ///
    /// - Parameters:
    ///   - deadline: the time until which the caller waits; nil for no limit. The call goes on after that.
    ///   - asker: is returned with the reply, or with `durableCallEnded`.
    /// - Returns: `waits` with the number for `cancelDurableCall`, or the reason why the call does not begin.
    package mutating func callDurably(
        _ method: String,
        _ content: Content,
        deadline: MonotonicTime?,
        asker: Asker
    ) -> Offer {
        var fields = [UInt8](content.fields)
        FieldWriter.appendField(FrameKind.callField, 1, to: &fields)
        let offer = store(method, fields: fields, content.payload, isObserved: false)
        if case .waits(let number) = offer { durability?.calls.began(number, asker: asker, deadline: deadline) }
        return offer
    }

    /// Ends the caller's waiting. Returns whether the call had not ended. A stored call goes on; its reply comes
    /// without a caller.
    package mutating func cancelDurableCall(
        _ number: UInt64,
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> Bool {
        guard durability?.calls.remove(number) != nil else { return false }
        _ = durability?.outbox.withdraw(number)
        endIfDone(now: now, into: &actions)
        return true
    }

    /// Ends a call for its caller without a reply, if one waits.
    mutating func endCall(_ number: UInt64, _ outcome: SessionDeliveryOutcome?, into actions: inout [Action]) {
        guard let asker = durability?.calls.remove(number) else { return }
        actions.append(.durableCallEnded(asker, outcome))
    }

    /// Ends a call whose stored message cannot be sent, if a caller waits.
    mutating func endRefusedCall(_ message: WaitingMessage, into actions: inout [Action]) {
        guard message.durable != 0, let asker = durability?.calls.answered(message.durable) else { return }
        actions.append(.durableCallEnded(asker, .refused))
    }

    mutating func callTimersFired(now: MonotonicTime, into actions: inout [Action]) {
        while let number = durability?.calls.takeDue(now: now) {
            // A call that is not stored by then is not made.
            _ = durability?.outbox.withdraw(number)
            endCall(number, nil, into: &actions)
        }
    }

    // MARK: The peer's

    /// Receives a push that is a durable call, or the reply to one.
    @inline(never)
    mutating func receiveCallOrReply(
        _ message: InboundMessage,
        _ receipt: Receipt
    ) throws(SessionViolation) -> Arrival? {
        // Only clients make calls.
        guard message.isReply == (role == .client), message.isReply || message.durable != 0 else {
            throw .callOrReply
        }
        if message.isReply {
            return .reply(message, receipt, asker: durability?.calls.answered(message.replyNumber))
        }
        heldCalls.append(HeldCalls.Call(receipt: receipt, body: [UInt8](message.body)))
        return nil
    }

    /// Whether calls wait to begin: see `beginHeldCall`.
    @inline(__always)
    package var hasHeldCalls: Bool {
        // A session that is about to end begins none: the calls come again.
        !heldCalls.isEmpty && heldCalls.deadline == nil && !life.isOver && !life.isClosing
    }

    /// The share that the session must hold before it begins a call; nil when it holds enough.
    package var lackingToBeginCall: SessionNeed? { lacking(0, handlerCount: 1) }

    /// Begins to process the call that has waited longest, and calls `body` with it: answer with `respond`, or call
    /// `abandoned`. Returns false when none may begin.
    package mutating func beginHeldCall(now: MonotonicTime, _ body: (IncomingRequest, InboundMessage) -> Void) -> Bool {
        guard hasHeldCalls, let call = heldCalls.first, running.count < options.maximumRunningCount else {
            return false
        }
        // Replies that cannot be stored, or sent, are kept in memory.
        let isBehind = durability?.outbox.isBehind ?? (waiting.byteCount >= options.outboundLimit.byteCount)
        guard !isBehind, running.count < allowance.handlerCount else {
            heldCalls.deadline = now + Durability.retryDelay
            return false
        }
        heldCalls.removeFirst()
        call.body.withUnsafeBytes { bytes in
            guard let message = try? InboundMessage(.push, bytes) else { return }
            let running = RunningRequests.DurableCall(
                receipt: call.receipt,
                number: message.durable,
                method: peerMethods[Int(message.method) - 1]
            )
            body(self.running.begin(running), message)
        }
        return true
    }

    /// Returns the mark of the durable call that a request is; nil if it is not one.
    package func durableCall(
        _ request: IncomingRequest
    ) -> (mark: DurableInbound.Mark, method: String, place: DurableInbound.Place)? {
        guard let call = running.durableCall(request),
            let mark = durability?.inbound.message(at: call.receipt.durablePlace)
        else { return nil }
        return (mark, call.method, call.receipt.durablePlace)
    }

    /// Notes that the handler of a durable call stopped early: the call comes again with the next session.
    package mutating func abandoned(_ request: IncomingRequest, now: MonotonicTime, into actions: inout [Action]) {
        guard running.durableCall(request) != nil else { return }
        _ = running.end(request)
        heldCalls.deadline = nil
        endIfDone(now: now, into: &actions)
    }

    /// Replies to a durable call.
    mutating func reply(
        to call: RunningRequests.DurableCall,
        _ request: IncomingRequest,
        _ content: Content,
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> ResponseOffer {
        var fields: [UInt8] = []
        Self.appendReply(to: call.number, [UInt8](content.fields), into: &fields)
        if limit(for: fields.count + content.payload.count + Self.durableFieldLength) != nil {
            return .refused(.responseTooLarge)
        }
        let isSmall = content.byteCount <= SessionOptions.smallResponseByteCount
        if !isSmall, !mayKeep(content.byteCount + SessionSize.frameOverhead) { return .refused(.serverMemory) }
        _ = running.end(request)
        heldCalls.deadline = nil
        defer { endIfDone(now: now, into: &actions) }
        let number = takeNumber()
        if let mark = durability?.inbound.answered(call.receipt.durablePlace) {
            let message = Outbox.Message(
                waiter: number,
                isObserved: false,
                method: call.method,
                fields: fields,
                payload: [UInt8](content.payload),
                answers: mark
            )
            durability?.outbox.append(message)
            return .accepted
        }
        guard !life.isOver, call.receipt.session == session else { return .notWaitedFor }
        var message = WaitingMessage(kind: .push, scope: .pushes(call.method), number: number)
        (message.method, message.fields, message.payload) = (call.method, fields, [UInt8](content.payload))
        (message.isAwaited, message.answers) = (false, call.receipt)
        waiting.append(message)
        waiting.makeReady(message.scope)
        admitWaiting(now: now, into: &actions)
        return .accepted
    }

    /// Returns the reply to a call in the form that is kept with the call's mark, for a handler that marks the call
    /// itself.
    ///
    /// - Parameter payload: the encoded message.
    package static func replyBytes(to number: UInt64, of method: String, payload: [UInt8]) -> [UInt8] {
        var fields: [UInt8] = []
        appendReply(to: number, [], into: &fields)
        return Outbox.Message(waiter: 0, isObserved: false, method: method, fields: fields, payload: payload).replyBytes
    }

    /// Replaces a stored reply that is too long to send by a status. Returns other messages unchanged.
    static func shortened(_ stored: Outbox.Message) -> Outbox.Message {
        let number = stored.fields.withUnsafeBytes { bytes -> UInt64? in
            guard let message = try? InboundMessage(.push, bytes), message.isReply else { return nil }
            return message.replyNumber
        }
        guard let number else { return stored }
        var (response, fields): ([UInt8], [UInt8]) = ([], [])
        // Internal: as for a response that is too long.
        FieldWriter.statusFields(
            status: 13,
            message: "The reply was stored, and is larger than the client accepts.",
            details: [],
            into: &response
        )
        appendReply(to: number, response, into: &fields)
        return stored.with(fields: fields, payload: [])
    }

    private static func appendReply(to number: UInt64, _ response: [UInt8], into fields: inout [UInt8]) {
        FieldWriter.appendMessage(FrameKind.replyField, to: &fields) { reply in
            FieldWriter.appendField(1, number, to: &reply)
            reply.append(contentsOf: response)
        }
    }
}
