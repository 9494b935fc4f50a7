package import LifelineCore

// How the session, what it has under way, and its connections end.
extension SessionMachine {
    /// Takes nothing new from now on, and ends the session when everything that was accepted is processed, and every
    /// request has ended; at the deadline at the latest. A server's session that has no connection waits for the next
    /// one, to say so; a client makes none only for that.
    package mutating func close(by deadline: MonotonicTime? = nil, now: MonotonicTime, into actions: inout [Action]) {
        life.close(by: deadline)
        if life.isOverdue(now: now) {
            end(.abandoned, now: now, into: &actions)
        } else {
            endIfDone(now: now, into: &actions)
        }
    }

    /// Ends the session at once. The reason says what the peer is told, where there is a connection.
    package mutating func end(_ reason: SessionEndReason, now: MonotonicTime, into actions: inout [Action]) {
        if role == .client || reason.isShutDown { durability?.givesUp = true }
        guard !life.isOver else { return }
        if reason.isShutDown {
            // Whatever connection there is, it is gone as far as the session goes.
            life.lost()
            control = []
        }
        sayGoodbye(reason.goodbye(from: role))
        life.ended(reason)
        for request in requests.connectionLost() {
            let wasSent = wasSent(request.waiter)
            actions.append(.failed(request.id, wasSent ? .sessionLost : .notSent, asker: request.waiter.asker))
        }
        cancelRunning(into: &actions)
        for number in unplacedNumbers { actions.append(.messageEnded(number: number, .dropped)) }
        let (carried, others) = takeUnsent(into: &actions)
        for message in carried + others { tellEnd(message, .unsent, into: &actions) }
        giveUpUnstored(into: &actions)
        forgetOutbound()
        actions.append(.ended(reason))
    }

    /// Tells the peer that this side goes away, and that it is to come back after a pause: once nothing waits to be
    /// sent, and at the deadline at the latest. The peer leaves when it has nothing more to do here. One that comes
    /// back to this side nevertheless is told again. Only a server goes away.
    package mutating func drain(pause: Duration, by deadline: MonotonicTime) {
        precondition(role == .server)
        life.drain(pause: pause, by: deadline)
    }

    /// Has the present connection closed, once the goodbye of a session that ends is said.
    private mutating func sayGoodbye(_ goodbye: SessionGoodbye?) {
        let closing: SessionClosing = role == .client ? .byOwner : .inOrder
        switch life.connection {
        case .none, .closed:
            break
        case .closing:
            // It has something else to say.
            break
        case .left:
            life.connection = .closing(closing, saysGoodbye: false)
        case .opening, .open, .leaving:
            if let goodbye {
                // So that what was processed is not in doubt for the peer.
                sayWhatWasProcessed()
                goodbye.write(to: &control)
            } else {
                control = []
            }
            life.connection = .closing(closing, saysGoodbye: goodbye != nil)
        }
    }

    /// Has the present connection closed, over which this side can do nothing more.
    mutating func giveUpConnection(_ closing: SessionClosing, saying goodbye: SessionGoodbye? = nil) {
        let goodbye = life.canSend || life.isOpening ? goodbye : nil
        control = []
        goodbye?.write(to: &control)
        life.connection = .closing(closing, saysGoodbye: goodbye != nil)
    }

    /// The peer says goodbye.
    mutating func receive(_ goodbye: SessionGoodbye, now: MonotonicTime, into actions: inout [Action]) {
        switch (goodbye.code, role) {
        case (.draining, _), (.full, _), (nil, _):
            // In place of a welcome it says that nobody is let in.
            if life.isOpening { giveUpConnection(.inOrder) } else { life.peerLeaves() }
            actions.append(.peerLeaving(pause: goodbye.pause))
        case (.violation, .client):
            loseSession(.accused(goodbye), now: now, into: &actions)
            giveUpConnection(.inOrder)
            actions.append(.accused(goodbye))
        case (.replaced, .server), (.refused, .server), (.version, .server):
            // A client has no session to give away: it only closes this connection.
            giveUpConnection(.inOrder)
        case (.violation, .server), (.closed, _), (.replaced, .client), (.refused, .client), (.version, .client):
            end(.saidByPeer(goodbye), now: now, into: &actions)
        }
    }

    /// The peer broke the rules, so that the two ends do not agree on the session any more.
    mutating func violated(_ violation: SessionViolation, now: MonotonicTime, into actions: inout [Action]) {
        actions.append(.violated(violation))
        switch role {
        case .server:
            end(.violated(violation), now: now, into: &actions)
        case .client:
            loseSession(.violated(violation), now: now, into: &actions)
            giveUpConnection(
                .abortViolated(violation.message),
                saying: SessionGoodbye(.violation, violation.message)
            )
        }
    }

    /// Something else came in place of a welcome. It says nothing of the session, as the sender does not know that.
    mutating func notWelcomed(_ violation: SessionViolation, into actions: inout [Action]) {
        // A server that knows a session would end it with this.
        let goodbye = credentials == nil ? SessionGoodbye(.violation, violation.message) : nil
        giveUpConnection(.abortViolated(violation.message), saying: goodbye)
        actions.append(.violated(violation))
    }

    /// Ends the session when this side closes and everything is done.
    mutating func endIfDone(now: MonotonicTime, into actions: inout [Action]) {
        // Blanks and names of methods need not reach a peer that hears nothing more.
        guard life.isClosing, ordinary.keptSize.frameCount == ordinary.fillerCount, urgent.keptSize.frameCount == 0,
            waiting.isEmpty, unplaced.isEmpty, requests.count == 0, running.isEmpty,
            durability?.outbox.isEmpty != false, durability?.calls.isEmpty != false, !awaitsStore
        else { return }
        switch life.connection {
        case .open, .leaving:
            end(.closed, now: now, into: &actions)
        case .none:
            // A server's client may come back, to be told; a peer that does not know the session needs no goodbye.
            if role == .client || credentials == nil { end(.closed, now: now, into: &actions) }
        case .opening, .left, .closing, .closed:
            if credentials == nil { end(.closed, now: now, into: &actions) }
        }
    }

    // MARK: A session that is lost

    /// A client's session cannot go on: what the server may have processed is in doubt.
    mutating func loseSession(_ loss: SessionLoss, now: MonotonicTime, into actions: inout [Action]) {
        guard credentials != nil else { return }
        credentials = nil
        session += 1
        actions.append(.sessionLost(loss))
        // Requests that were not sent wait for the next session.
        let sentEnd = ordinary.sentEnd
        let failed = requests.connectionLost { [requests] id in
            requests.waiter(of: id).map { $0.place == 0 || $0.place >= sentEnd } ?? false
        }
        for request in failed {
            actions.append(.failed(request.id, .sessionLost, asker: request.waiter.asker))
        }
        cancelRunning(into: &actions)
        for number in unplacedNumbers { actions.append(.messageEnded(number: number, .dropped)) }
        (unplaced, unplacedNumbers) = ([], [])
        inbound = InboundLane(options)
        urgentInbound = UrgentLane(options)
        (peerMethods, peerMethodNames, peerMethodByteCount, peerPushCredits) = ([], [], 0, [])
        forgetDueCredits()
        unplacedSize = SessionSize()
        peerTerms = nil
        carryOver(now: now, into: &actions)
    }

    /// Whether the peer may have seen a request.
    func wasSent(_ request: OwnRequest) -> Bool { request.place != 0 && request.place < ordinary.sentEnd }

    private mutating func cancelRunning(into actions: inout [Action]) {
        for request in running.cancelAll() { actions.append(.cancelRequest(request)) }
        peerStreams = SerialTable()
    }

    /// Takes what was not sent out of the log and the queue of what waits, in order: what another session can carry,
    /// and the rest. Says what is in doubt of what was sent.
    private mutating func takeUnsent(
        into actions: inout [Action]
    ) -> (carried: [WaitingMessage], others: [WaitingMessage]) {
        var (carried, others): ([WaitingMessage], [WaitingMessage]) = ([], [])
        var inDoubt: [WaitingMessage] = []
        // Looked at while the log is being read.
        let (methods, details, requests, sentEnd) = (methods, details, requests, ordinary.sentEnd)
        ordinary.forEachKept { place, tag, frame in
            guard tag.role != .blank, tag.role != .method,
                var message = WaitingMessage(frame, methods, details[place], requests), message.answers == nil
            else { return }
            // A durable one is sent again, as its peer knows whether it has processed it.
            if place < sentEnd, message.durable != 0 { message.mayHaveCome = true }
            if place < sentEnd, message.durable == 0 {
                inDoubt.append(message)
            } else if message.kind == .push || requests.isWaiting(serial: message.serial), message.isOfAsker {
                carried.append(message)
            } else {
                others.append(message)
            }
        }
        for message in inDoubt where message.kind == .push || message.number != 0 {
            tellEnd(message, .inDoubt, into: &actions)
        }
        // A reply that no store has is given again, as its call comes again.
        for message in waiting.removeAll() where message.answers == nil {
            if message.kind == .push || requests.isWaiting(serial: message.serial), message.isOfAsker {
                carried.append(message)
            } else {
                others.append(message)
            }
        }
        return (carried, others)
    }

    mutating func forgetOutbound() {
        ordinary.removeAll()
        urgent.removeAll()
        methods = MethodNumbers()
        (pushCredits, details, newestByKey) = ([], [:], [:])
        (logDeadlines, waitingDeadlines, expiringPlaces) = (DeadlineHeap(), DeadlineHeap(), [:])
        (unplaced, unplacedNumbers, unplacedPlace) = ([], [], 0)
        (lastMethodPlace, peerReceived) = (0, 0)
        spareMemoryDeadline = nil
    }

    /// Has what was not sent wait for the next session, or begin it.
    mutating func carryOver(now: MonotonicTime, into actions: inout [Action]) {
        let (carried, others) = takeUnsent(into: &actions)
        for message in others { tellEnd(message, .unsent, into: &actions) }
        forgetOutbound()
        let streams = ownStreams.elements
        ownStreams = SerialTable()
        for (serial, stream) in streams where requests.isWaiting(serial: serial) {
            ownStreams[serial] = OwnStream(
                send: stream.send == nil ? nil : SendCredit(initial: initialCredit),
                hasEnded: stream.hasEnded,
                receive: ReceiveCredit(limit: options.inboundCredit)
            )
        }
        for message in carried { carry(message, now: now, into: &actions) }
    }

    /// Brings a message that was accepted for another session into the log, or has it wait.
    private mutating func carry(_ message: WaitingMessage, now: MonotonicTime, into actions: inout [Action]) {
        var message = message
        switch message.kind {
        case .request:
            guard let id = requests.id(serial: message.serial) else { return }
            if message.number == 0 { message.number = takeNumber() }
            requests.update(id) { [number = message.number] in ($0.place, $0.waitingNumber) = (0, number) }
        case .requestPart, .requestEnd:
            // The peer of the new session does not take its request.
            guard requests.isWaiting(serial: message.serial) else { return tellEnd(message, .unsent, into: &actions) }
        default: break
        }
        // Before anything of its request is sent.
        guard limit(for: message.fields.count + message.payload.count) == nil else {
            return refused(message, now: now, into: &actions)
        }
        waiting.append(message)
        noteWaiting(message)
        waiting.makeReady(message.scope)
        admitWaiting(now: now, into: &actions)
    }
}

extension WaitingMessage {
    /// The message of a frame in the log.
    fileprivate init?(
        _ frame: UnsafeRawBufferPointer,
        _ methods: MethodNumbers,
        _ details: SessionMachine.MessageDetails?,
        _ requests: RequestTable<SessionMachine.OwnRequest>
    ) {
        guard let (kind, message) = SessionMachine.parsed(frame) else { return nil }
        switch kind {
        case .push:
            self.init(kind: kind, scope: .pushes(methods.name(message.method)))
            method = methods.name(message.method)
        case .request:
            self.init(kind: kind, scope: .requests, serial: message.serial)
            method = methods.name(message.method)
            hasParts = message.hasParts
            deadline = requests.waiter(serial: message.serial)?.deadline
        case .requestPart, .requestEnd:
            self.init(kind: kind, scope: .requestParts(serial: message.serial), serial: message.serial)
        case .responsePart:
            // It ends with its session: its scope does not matter any more.
            self.init(kind: kind, scope: details?.scope ?? .requests, serial: message.serial)
        default: return nil
        }
        isAwaited = false
        // Replies have theirs inside.
        if !message.isReply { FieldWriter.metadataFields(message.metadata, field: kind.metadataField, into: &fields) }
        if kind == .push { message.appendCallFields(to: &fields) }
        payload = [UInt8](message.payload)
        if let details {
            number = details.number
            delivery = details.delivery
            deadline = details.deadline
            isObserved = details.isObserved
            answers = details.answers
            if details.durable != 0 { appendDurableField(details.durable) }
            mayHaveCome = details.mayHaveCome
        }
    }

    /// Whether it means something to a peer that has lost the session.
    fileprivate var isOfAsker: Bool { kind != .responsePart }
}
