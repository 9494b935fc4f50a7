package import LifelineCore

// The end of the session, of its work, and of its connections.
extension SessionMachine {
    /// Takes no new work from now on, and ends the session when everything accepted is processed and every request has
    /// ended, at the deadline at the latest. A server's session without a connection waits for the next one, to tell
    /// its client; a client makes no connection only for that.
    package mutating func close(by deadline: MonotonicTime? = nil, now: MonotonicTime, into actions: inout [Action]) {
        life.close(by: deadline)
        if life.isOverdue(now: now) {
            end(.abandoned, now: now, into: &actions)
        } else {
            endIfDone(now: now, into: &actions)
        }
    }

    /// Ends the session at once. The reason decides what the peer is told, if there is a connection.
    package mutating func end(_ reason: SessionEndReason, now: MonotonicTime, into actions: inout [Action]) {
        if role == .client || reason.isShutDown { durability?.givesUp = true }
        guard !life.isOver else { return }
        if reason.isShutDown {
            // The session no longer uses its connection.
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

    /// Tells the peer that this side goes away. The peer leaves when it has no more work here. A peer that comes back
    /// to this side nevertheless is told again. Only a server goes away.
    package mutating func drain(_ drain: SessionDrain) {
        precondition(role == .server)
        life.drain(drain)
    }

    /// Closes the present connection once the goodbye of a session that ends is sent.
    private mutating func sayGoodbye(_ goodbye: SessionGoodbye?) {
        let closing: SessionClosing = role == .client ? .byOwner : .inOrder
        switch life.connection {
        case .none, .closed:
            break
        case .closing:
            // Another goodbye is already being sent.
            break
        case .left:
            life.connection = .closing(closing, saysGoodbye: false)
        case .opening, .open, .leaving:
            if let goodbye {
                // So that processed messages are not in doubt for the peer.
                sayWhatWasProcessed()
                goodbye.write(to: &control)
            } else {
                control = []
            }
            life.connection = .closing(closing, saysGoodbye: goodbye != nil)
        }
    }

    /// Closes the present connection, which this side can no longer use.
    mutating func giveUpConnection(_ closing: SessionClosing, saying goodbye: SessionGoodbye? = nil) {
        let goodbye = life.canSend || life.isOpening ? goodbye : nil
        control = []
        goodbye?.write(to: &control)
        life.connection = .closing(closing, saysGoodbye: goodbye != nil)
    }

    /// Receives the peer's goodbye.
    mutating func receive(_ goodbye: SessionGoodbye, now: MonotonicTime, into actions: inout [Action]) {
        switch (goodbye.code, role) {
        case (.draining, _), (.full, _), (nil, _):
            // In place of a welcome it means that no client is let in.
            if life.isOpening { giveUpConnection(.inOrder) } else { life.peerLeaves() }
            actions.append(.peerLeaving(pause: goodbye.pause))
        case (.violation, .client):
            loseSession(.accused(goodbye), now: now, into: &actions)
            giveUpConnection(.inOrder)
            actions.append(.accused(goodbye))
        case (.replaced, .server), (.refused, .server), (.version, .server):
            // A client cannot end a session in this way: it only closes this connection.
            giveUpConnection(.inOrder)
        case (.violation, .server), (.closed, _), (.replaced, .client), (.refused, .client), (.version, .client):
            end(.saidByPeer(goodbye), now: now, into: &actions)
        }
    }

    /// Handles a peer that broke the rules, so that the two ends no longer agree on the session.
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

    /// Handles a frame other than a welcome. It has no meaning for the session, which its sender does not know.
    mutating func notWelcomed(_ violation: SessionViolation, into actions: inout [Action]) {
        // A server that knows the session would end it because of this goodbye.
        let goodbye = credentials == nil ? SessionGoodbye(.violation, violation.message) : nil
        giveUpConnection(.abortViolated(violation.message), saying: goodbye)
        actions.append(.violated(violation))
    }

    /// Ends the session when this side closes and everything is done.
    mutating func endIfDone(now: MonotonicTime, into actions: inout [Action]) {
        // Blanks and names of methods need not reach a peer that gets nothing more.
        guard life.isClosing, ordinary.keptSize.frameCount == ordinary.fillerCount, urgent.keptSize.frameCount == 0,
            waiting.isEmpty, unplaced.isEmpty, requests.count == 0, running.isEmpty,
            durability?.outbox.isEmpty != false, durability?.calls.isEmpty != false, !awaitsStore,
            // The peer keeps messages until it is told that they are stored. A change that is being made is waited for,
            // but not another attempt, nor a change after that: there might always be one more.
            durability?.removing == nil
        else { return }
        switch life.connection {
        case .open, .leaving:
            end(.closed, now: now, into: &actions)
        case .none:
            // A server waits for its client to come back and be told; a peer that does not know the session needs no
            // goodbye.
            if role == .client || credentials == nil { end(.closed, now: now, into: &actions) }
        case .opening, .left, .closing, .closed:
            if credentials == nil { end(.closed, now: now, into: &actions) }
        }
    }

    // MARK: A session that is lost

    /// Loses a client's session: messages that the server may have processed are in doubt.
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

    /// Removes unsent messages from the log and the waiting queue, in order: those that another session can carry, and
    /// the rest. Reports the sent messages that are in doubt.
    private mutating func takeUnsent(
        into actions: inout [Action]
    ) -> (carried: [WaitingMessage], others: [WaitingMessage]) {
        var (carried, others): ([WaitingMessage], [WaitingMessage]) = ([], [])
        var inDoubt: [WaitingMessage] = []
        // Copied, because they are read while the log is being read.
        let (methods, details, requests, sentEnd) = (methods, details, requests, ordinary.sentEnd)
        ordinary.forEachKept { place, tag, frame in
            guard tag.role != .blank, tag.role != .method,
                var message = WaitingMessage(frame, methods, details[place], requests), message.answers == nil
            else { return }
            // A durable message is sent again, because its peer knows whether it has processed it.
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
        // A reply that no store has will be made again, because its call comes again.
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

    /// Lets unsent messages wait for the next session, or go into its log.
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

    /// Moves a message that was accepted for another session into the log, or lets it wait.
    private mutating func carry(_ message: WaitingMessage, now: MonotonicTime, into actions: inout [Action]) {
        var message = message
        switch message.kind {
        case .request:
            guard let id = requests.id(serial: message.serial) else { return }
            if message.number == 0 { message.number = takeNumber() }
            requests.update(id) { [number = message.number] in ($0.place, $0.waitingNumber) = (0, number) }
        case .requestPart, .requestEnd:
            // The peer of the new session does not take the message's request.
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
    /// Makes a message from a frame in the log.
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
            // The message ends with its session, so its scope no longer matters.
            self.init(kind: kind, scope: details?.scope ?? .requests, serial: message.serial)
        default: return nil
        }
        isAwaited = false
        // Replies have their metadata inside.
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

    /// Whether the message is useful to a peer that has lost the session.
    fileprivate var isOfAsker: Bool { kind != .responsePart }
}
