package import LifelineCore

// Durable messages: their way from the store into the lane, and the record of processed ones in the store.
extension SessionMachine {
    /// The additional state of a session with a store.
    package struct Durability: Sendable {
        /// How long the store is left alone after it has failed: 1 s.
        static var retryDelay: Duration { .seconds(1) }

        let id: SessionStoreID
        var outbox: Outbox
        /// This side's calls that wait for their replies.
        var calls = OwnDurableCalls()
        var inbound: DurableInbound
        /// The peer's store; nil if it has none: then it cannot know after a restart which messages it has processed.
        var peer: SessionStoreID?
        /// The groups that the present commit removes; nil when there is none.
        var removing: [UInt64]?
        /// The time until which the store is left alone.
        var retryDeadline: MonotonicTime?
        /// The time at which there may be room for stored messages again, in a server whose sessions keep as much as
        /// they may.
        var roomDeadline: MonotonicTime?
        /// Whether a failing store is given up, because the process is about to end.
        var givesUp = false

        /// - Parameters:
        ///   - byteLimit: the number of bytes in the store from which on senders wait.
        /// - Throws: `damaged`.
        package init(_ id: SessionStoreID, _ content: SessionStoreContent, byteLimit: Int) throws(StoreError) {
            self.id = id
            outbox = Outbox(content, byteLimit: byteLimit)
            inbound = try DurableInbound(content)
            for (call, reply) in inbound.takeMarkedReplies() {
                lastReply += 1
                guard let message = Outbox.Message(reply: reply, to: call, waiter: lastReply) else {
                    throw .damagedMessages
                }
                outbox.append(message)
            }
        }

        /// The number of the last reply that an earlier process has left to store as a message; 0 if there is none.
        fileprivate var lastReply: UInt64 = 0

        /// The part of an opening about this side's store.
        var opening: StoreOpening { StoreOpening(id: id, floor: outbox.floor) }
    }

    /// A task for the store.
    package enum StoreWork: Sendable, Equatable {
        /// Make these changes, and call `committed` or `commitFailed`.
        case commit(SessionStoreChanges)
        /// Read groups from a number on, and call `read` or `readingFailed`.
        case read(from: UInt64)
    }

    /// Notes that the store is open. Called once, and before the first connection.
    package mutating func opened(_ durability: Durability) {
        precondition(self.durability == nil && !life.isOver)
        self.durability = durability
        nextNumber = max(nextNumber, durability.lastReply + 1)
        awaitsStore = false
    }

    package var isDurable: Bool { durability != nil }

    /// Whether everything that was processed is recorded in the store, and nothing is being stored.
    package var isStored: Bool {
        durability.map { $0.removing == nil && $0.inbound.isStored && !$0.outbox.hasUnstoredReplies } ?? true
    }

    /// Sends a durable push. Its sender waits until it is stored.
    ///
    /// - Parameters:
    ///   - deadline: the end of its time to live; nil for none.
    ///   - isObserved: whether to report when it was processed.
    package mutating func pushDurable(
        _ method: String,
        _ content: Content,
        deadline: MonotonicTime? = nil,
        isObserved: Bool
    ) -> Offer {
        store(
            method,
            fields: [UInt8](content.fields),
            content.payload,
            deadline: deadline,
            isObserved: isObserved
        )
    }

    /// Stores a message of this side.
    mutating func store(
        _ method: String,
        fields: [UInt8],
        _ payload: UnsafeRawBufferPointer,
        deadline: MonotonicTime? = nil,
        isObserved: Bool
    ) -> Offer {
        guard !life.isOver, !life.isClosing else { return .closed }
        guard durability != nil else { return .notDurable }
        let length = method.utf8.count
        guard length > 0, length <= MethodName.maximumByteCount else { return .badMethod }
        if let limit = limit(for: fields.count + payload.count + Self.durableFieldLength) {
            return .tooLong(limit: limit)
        }
        let message = Outbox.Message(
            waiter: takeNumber(),
            isObserved: isObserved,
            method: method,
            fields: fields,
            payload: [UInt8](payload),
            deadline: deadline
        )
        durability?.outbox.append(message)
        return .waits(number: message.waiter)
    }

    // MARK: From the store into the lane

    /// The number of bytes of the next message that may go into the lane now; nil if there is none.
    package var nextStoredByteCount: Int? {
        guard !life.isOver, waiting.durableByteCount < Outbox.pageByteCount, durability?.roomDeadline == nil else {
            return nil
        }
        return durability?.outbox.firstReady.map { $0.fields.count + Self.durableFieldLength + $0.payload.count }
    }

    /// Moves the next stored message into the lane, or lets it wait there. Returns false when there is none, or the
    /// session may not keep more.
    package mutating func sendStored(now: MonotonicTime, into actions: inout [Action]) -> Bool {
        guard let byteCount = nextStoredByteCount else { return false }
        guard mayKeep(byteCount + SessionSize.frameOverhead) else {
            durability?.roomDeadline = now + Durability.retryDelay
            return false
        }
        guard let stored = durability?.outbox.takeReady() else { return false }
        var message = waitingMessage(of: stored)
        if limit(for: message.contentByteCount) != nil { message = waitingMessage(of: Self.shortened(stored)) }
        if limit(for: message.contentByteCount) != nil {
            refused(message, now: now, into: &actions)
            return true
        }
        if let floor = durability?.outbox.takeUntoldFloor() {
            FieldWriter.appendField(FrameKind.floorField, floor, to: &message.fields)
        }
        if !logAtOnce(message, now: now) {
            waiting.append(message)
            noteWaiting(message)
            waiting.makeReady(message.scope)
            admitWaiting(now: now, into: &actions)
        }
        return true
    }

    private mutating func waitingMessage(of stored: Outbox.Message) -> WaitingMessage {
        var message = WaitingMessage(kind: .push, scope: .pushes(stored.method))
        message.number = stored.waiter == 0 ? takeNumber() : stored.waiter
        (message.method, message.payload, message.fields) = (stored.method, stored.payload, stored.fields)
        message.appendDurableField(stored.number)
        (message.delivery, message.isObserved, message.isAwaited) = (.durable, stored.isObserved, false)
        message.deadline = stored.deadline
        message.mayHaveCome = durability?.outbox.mayBeSentBefore(stored.number) == true
        return message
    }

    /// Moves a stored message into the log if it need not wait. Returns false if it has to.
    private mutating func logAtOnce(_ message: WaitingMessage, now: MonotonicTime) -> Bool {
        !waiting.isWaiting(in: message.scope) && !waiting.hasReady && !isHeld(message.scope, serial: 0)
            && hasRoom(for: message.cost + Self.detailsOverhead) && methodNumber(message.method) != nil
            && log(message, now: now)
    }

    /// Notes that a durable message is processed, or given up: the store no longer needs it.
    ///
    /// - Parameter isLeftOut: whether it is given up.
    mutating func finishedDurable(_ number: UInt64, isLeftOut: Bool = false, now: MonotonicTime) {
        if number != 0 { durability?.outbox.finished(number, isLeftOut: isLeftOut, now: now) }
    }

    /// Ends expired messages that are stored and in no lane, or wait to be stored.
    mutating func expireStored(now: MonotonicTime, into actions: inout [Action]) {
        while let stored = durability?.outbox.takeExpired(now: now) {
            var message = waitingMessage(of: stored)
            // The sender waits until the message is stored.
            if stored.number == 0 { actions.append(.accepted(number: stored.waiter)) }
            message.isAwaited = false
            tellEnd(message, message.mayHaveCome ? .inDoubt : .expired, into: &actions)
        }
    }

    /// Gives up messages that are not stored, because the session is over. Informs the senders and callers of stored
    /// messages.
    mutating func giveUpUnstored(into actions: inout [Action]) {
        for message in durability?.outbox.withdrawAll() ?? [] {
            actions.append(.messageEnded(number: message.waiter, .unsent))
            endCall(message.waiter, .unsent, into: &actions)
        }
        for waiter in durability?.outbox.takeObserved() ?? [] {
            actions.append(.messageEnded(number: waiter, .kept))
        }
        for asker in durability?.calls.removeStored() ?? [] { actions.append(.durableCallEnded(asker, .kept)) }
    }

    /// Checks for room for stored messages, and for the peer's calls.
    mutating func roomTimerFired(now: MonotonicTime) {
        if let deadline = durability?.roomDeadline, deadline <= now { durability?.roomDeadline = nil }
        if let deadline = heldCalls.deadline, deadline <= now { heldCalls.deadline = nil }
    }

    // MARK: Tasks for the store

    /// Returns the next task for the store, if any. Two of different kinds may be under way.
    package mutating func takeStoreWork(_ time: StoreTime) -> StoreWork? {
        guard durability != nil else { return nil }
        let now = time.now
        if let deadline = durability?.retryDeadline {
            guard deadline <= now else { return nil }
            durability?.retryDeadline = nil
        }
        if !life.isOver, let number = durability?.outbox.takeReading() { return .read(from: number) }
        guard durability?.removing == nil else { return nil }
        var changes = SessionStoreChanges()
        // After the end of the session, only replies of handlers that went on are left.
        let isOver = life.isOver
        changes.added = durability?.outbox.takeGroup(isLast: isOver, time)
        if durability?.inbound.hasUnstored(isOver: isOver) == true || changes.added != nil {
            let answered = durability?.outbox.answered ?? []
            durability?.inbound.takeUnstored(answering: answered, into: &changes)
        }
        let isDateDue = durability?.outbox.isDateDue == true
        if !changes.isEmpty || isOver || isDateDue || durability?.outbox.isRemovalDue(now: now) == true {
            changes.removed = durability?.outbox.takeRemovable() ?? []
        }
        changes.date = durability?.outbox.takeDate(time, isAdding: changes.added != nil)
        if changes.isEmpty { return nil }
        durability?.removing = changes.removed
        return .commit(changes)
    }

    /// Notes that all changes of the last commit are stored.
    package mutating func committed(now: MonotonicTime, into actions: inout [Action]) {
        durability?.removing = nil
        heldCalls.deadline = nil
        // No sender waits for replies to be stored.
        for message in durability?.outbox.groupStored() ?? [] where message.answers == nil {
            durability?.calls.stored(message.waiter, as: message.number)
            actions.append(.accepted(number: message.waiter))
            guard life.isOver else { continue }
            if message.isObserved { actions.append(.messageEnded(number: message.waiter, .kept)) }
            endCall(message.waiter, .kept, into: &actions)
        }
        let stored = durability?.inbound.stored() ?? []
        for last in stored { finishStored(last, now: now) }
        // The write was delay enough.
        if !stored.isEmpty { inbound.reportAtOnce() }
        endIfDone(now: now, into: &actions)
    }

    /// Tells the peer about a processed message that is recorded in the store, and returns its credit.
    private mutating func finishStored(_ last: DurableInbound.Last, now: MonotonicTime) {
        guard last.place.session == session else { return }
        inbound.finish(last.place.place, SessionSize(frameCount: 1, byteCount: last.cost), now: now)
        consumePush(last.method, cost: last.cost)
    }

    /// Notes that none of the changes was made.
    package mutating func commitFailed(now: MonotonicTime, into actions: inout [Action]) {
        let removing = durability?.removing.take() ?? []
        let (givesUp, isOver) = (durability?.givesUp == true, life.isOver)
        // After the end of the session, the next one may have the groups.
        durability?.outbox.removalFailed(isOver ? [] : removing, now: now)
        if !isOver { durability?.outbox.dateFailed() }
        for message in durability?.outbox.groupFailed() ?? [] {
            if message.answers == nil {
                actions.append(.messageEnded(number: message.waiter, .notStored))
                endCall(message.waiter, .notStored, into: &actions)
            } else if !givesUp {
                let number = takeNumber()
                durability?.outbox.append(message.waiting(as: number))
            }
        }
        if givesUp { durability?.outbox.withdrawReplies() }
        durability?.inbound.storingFailed(isGivenUp: givesUp, isOver: isOver)
        durability?.retryDeadline = now + Durability.retryDelay
        endIfDone(now: now, into: &actions)
    }

    /// Takes groups that were read. Returns false when they are damaged. Then a client's session ends, with all that it
    /// would send; a server's goes on without them.
    package mutating func read(
        _ groups: [SessionStoreGroup],
        _ time: StoreTime,
        into actions: inout [Action]
    ) -> Bool {
        let now = time.now
        if durability?.outbox.read(groups, time) != false {
            if life.isOver { return true }
            expireStored(now: now, into: &actions)
            endIfDone(now: now, into: &actions)
            return true
        }
        switch role {
        case .client: end(.storeDamaged(.damagedMessages), now: now, into: &actions)
        case .server: durability?.outbox.giveUpReading()
        }
        return false
    }

    /// Stops using the store: messages processed from now on are not recorded.
    package mutating func closeStore() { durability = nil }

    package mutating func readingFailed(now: MonotonicTime) {
        durability?.outbox.readingFailed()
        durability?.retryDeadline = now + Durability.retryDelay
    }

    /// The time at which `takeStoreWork` has a new task, if no other event happens.
    var storeDeadline: MonotonicTime? {
        guard let durability else { return nil }
        let removal = durability.removing == nil ? durability.outbox.nextDeadline : nil
        let work = durability.retryDeadline ?? removal
        // After the end of the session nothing is sent, and no sender waits.
        if life.isOver { return work }
        return .earliest(
            .earliest(work, durability.roomDeadline),
            .earliest(durability.calls.nextDeadline, durability.outbox.nextExpiry)
        )
    }

    // MARK: The peer's

    /// Notes the peer's store from its opening.
    mutating func peerOpened(_ store: StoreOpening?) {
        durability?.peer = store?.id
        if let store { durability?.inbound.raiseFloor(of: store.id, to: store.floor) }
    }

    /// Receives a durable message. Returns whether to deliver it.
    @inline(never)
    mutating func receiveDurable(
        _ message: InboundMessage,
        _ receipt: Receipt,
        now: MonotonicTime
    ) throws(SessionViolation) -> Bool {
        if message.durable > UInt64(Int64.max) || message.floor > UInt64(Int64.max) { throw .durableNumber }
        guard let peer = durability?.peer else { return true }
        if message.floor != 0 { durability?.inbound.raiseFloor(of: peer, to: message.floor) }
        let mark = DurableInbound.Mark(sender: peer, number: message.durable)
        let last = DurableInbound.Last(place: receipt.durablePlace, method: message.method, cost: receipt.cost)
        switch durability?.inbound.received(mark, last) {
        case .new?, nil: return true
        case .processed?: finishStored(last, now: now)
        case .underWay?: break
        case .tooMany?: throw .tooManyDurable
        }
        return false
    }

    /// Notes that messages were processed: schedules the report of non-durable ones to the peer, and of durable ones to
    /// the store. Returns the cost of the non-durable ones.
    mutating func finishPlaces(_ receipt: Receipt, now: MonotonicTime) -> Int {
        guard durability?.inbound.hasUnfinished == true else {
            let size = SessionSize(frameCount: receipt.count, byteCount: receipt.cost)
            inbound.finish(receipt.place, size, now: now)
            return receipt.cost
        }
        let durable = finishDurable(receipt, now: now)
        // The receipt has the cost of all messages: the first of the remaining ones counts for the remaining cost.
        let cost = receipt.cost - durable.values.reduce(0, +)
        var left = cost
        for place in receipt.place..<receipt.place + UInt64(receipt.count) where durable[place] == nil {
            inbound.finish(place, SessionSize(frameCount: 1, byteCount: left), now: now)
            left = 0
        }
        return cost
    }

    /// Notes that messages were processed, perhaps of a lost session. Returns the places and the costs of the durable
    /// ones.
    @discardableResult
    mutating func finishDurable(_ receipt: Receipt, now: MonotonicTime) -> [UInt64: Int] {
        guard receipt.place != 0, durability?.inbound.hasUnfinished == true else { return [:] }
        var durable: [UInt64: Int] = [:]
        for place in receipt.place..<receipt.place + UInt64(receipt.count) {
            switch durability?.inbound.finished(DurableInbound.Place(session: receipt.session, place: place)) {
            case .notDurable?, nil: break
            case .store(let cost)?: durable[place] = cost
            case .stored(let last)?:
                durable[place] = last.cost
                finishStored(last, now: now)
            }
        }
        return durable
    }

    /// Returns the unprocessed durable message that was received in a session at a place; nil if it is not durable.
    package func durableMessage(_ session: UInt64, _ place: UInt64) -> DurableInbound.Mark? {
        durability?.inbound.message(at: DurableInbound.Place(session: session, place: place))
    }

    /// Notes that the handler of a message has marked it in the store.
    package mutating func marked(_ place: DurableInbound.Place) { durability?.inbound.marked(place) }

    /// The most bytes that the fields for a message's number and a floor take.
    static var durableFieldLength: Int { 22 }
}

extension SessionMachine.Receipt {
    /// The place of the first message.
    package var durablePlace: DurableInbound.Place { DurableInbound.Place(session: session, place: place) }
}

extension WaitingMessage {
    /// Adds the field that makes a push durable.
    mutating func appendDurableField(_ number: UInt64) {
        durable = number
        FieldWriter.appendField(FrameKind.durableField, number, to: &fields)
    }
}
