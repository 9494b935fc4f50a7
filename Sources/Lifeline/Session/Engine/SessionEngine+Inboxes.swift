internal import LifelineCore
internal import LifelineRuntime

// Received messages and their readers.
extension SessionEngine {
    // MARK: Under the lock

    /// Delivers a push to the inbox of its method.
    @inline(__always)
    func deliver(_ message: InboundMessage, _ receipt: Receipt, _ state: inout State, now: MonotonicTime) {
        let number = Int(message.method) - 1
        let isDurable = message.durable != 0
        if !state.groups.isEmpty { notePlace(message, &state) }
        if let inbox = state.routes[number].inbox ?? makeInbox(number, isDurable: isDurable, &state),
            inbox.append(message, receipt)
        {
            if let method = inbox.synchronousMethod {
                if inbox.becomesDue() { state.synchronousWork.append(.pushes(method: method, inbox)) }
            } else if let waiter = inbox.takeWaiter() {
                state.effects.append(.wake(waiter))
            }
        } else {
            unwanted(message, receipt, &state, now: now)
        }
    }

    @inline(never)
    private func notePlace(_ message: InboundMessage, _ state: inout State) {
        // A push that is sent at most once may overtake others.
        guard message.kind == .push, let mark = message.metadata[GroupMetadata.key],
            let (group, place) = GroupMetadata.parts(of: mark)
        else { return }
        state.groups[ExactName(String(group))]?.newestPlace = String(place)
    }

    /// Makes the inbox of a server's method when its first push arrives; nil if the method takes none. Durable pushes
    /// to a client are kept for a user that asks for them later.
    private func makeInbox(_ number: Int, isDurable: Bool, _ state: inout State) -> SessionInbox? {
        if isDurable, role == .client, state.machine.isDurable {
            let inbox = SessionInbox(outlivesSessions: true)
            state.pushInboxes[state.routes[number].name] = inbox
            state.routes[number].inbox = inbox
            return inbox
        }
        guard let method = state.routes[number].method, method.takesPushes else { return nil }
        let inbox = SessionInbox(synchronousMethod: method.isSynchronous ? method.index : nil)
        state.routes[number].inbox = inbox
        if method.isSynchronous { return inbox }
        state.effects.append(.handlePushes(method: method.index, inbox))
        return inbox
    }

    /// Delivers the reply to a durable call to its caller, or to the method's inbox of late replies if no caller waits.
    func deliverReply(
        _ reply: InboundMessage,
        _ receipt: Receipt,
        _ asker: SessionMachine.Asker?,
        _ state: inout State,
        now: MonotonicTime
    ) {
        if let call = PendingCall.of(asker) {
            state.machine.finish(receipt, now: now)
            return state.effects.append(.resolve(call, PendingCall.Outcome(reply)))
        }
        let method = state.routes[Int(reply.method) - 1].name
        var replies = state.lateReplies[method] ?? LateReplies(inbox: SessionInbox(outlivesSessions: true))
        if let byteCount = replies.keptByteCount {
            // More would hold up the replies that callers wait for.
            guard byteCount + receipt.cost <= state.leftovers.replyLimit else {
                return unwanted(reply, receipt, &state, now: now)
            }
            replies.keptByteCount = byteCount + receipt.cost
        }
        state.lateReplies[method] = replies
        guard replies.inbox.append(reply.body, metadata: nil, receipt) else {
            return unwanted(reply, receipt, &state, now: now)
        }
        if let waiter = replies.inbox.takeWaiter() { state.effects.append(.wake(waiter)) }
    }

    /// Drops a push that no reader wants.
    private func unwanted(_ message: InboundMessage, _ receipt: Receipt, _ state: inout State, now: MonotonicTime) {
        let number = Int(message.method) - 1
        state.statistics.unwantedPushCount += 1
        state.machine.finish(receipt, now: now)
        // Once only, because a peer may send any number of them while effects wait.
        if state.routes[number].isToldUnwanted { return }
        state.routes[number].isToldUnwanted = true
        state.effects.append(.unwanted(method: state.routes[number].name.name))
    }

    /// Delivers a part of a response to its caller. A call that expects a single reply fails.
    func deliver(
        _ part: InboundMessage,
        of id: SessionMachine.RequestID,
        _ asker: SessionMachine.Asker?,
        _ receipt: Receipt,
        _ state: inout State,
        now: MonotonicTime
    ) {
        guard let call = PendingCall.of(asker) else { return state.machine.finish(receipt, now: now) }
        deliver(part, receipt, to: call.inbox, &state, now: now)
        guard call.inbox == nil else { return }
        _ = state.machine.cancelRequest(id, now: now, into: &state.actions)
        state.effects.append(.resolve(call, .failure(.answeredByStream)))
    }

    /// Adds a part to the inbox of its request or response, or drops it if no reader wants it.
    @inline(__always)
    func deliver(
        _ part: InboundMessage,
        _ receipt: Receipt,
        to inbox: SessionInbox?,
        _ state: inout State,
        now: MonotonicTime
    ) {
        guard let inbox, inbox.append(part, receipt) else { return state.machine.finish(receipt, now: now) }
        if let waiter = inbox.takeWaiter() { state.effects.append(.wake(waiter)) }
    }

    func finish(_ inbox: SessionInbox?, _ end: Result<Void, SessionError>, _ state: inout State) {
        guard let inbox else { return }
        for waiter in inbox.finish(end) { state.effects.append(.wake(waiter)) }
    }

    /// Closes the inbox of a request's parts, because the request is answered.
    func closeParts(of request: IncomingRequest, _ state: inout State, now: MonotonicTime) {
        guard !state.requestInboxes.isEmpty, let inbox = state.requestInboxes.remove(request.count) else {
            return
        }
        close(inbox, &state, now: now)
    }

    private func close(_ inbox: SessionInbox, _ state: inout State, now: MonotonicTime) {
        for run in inbox.close() {
            takeLeftovers(run.leftoverSize, &state)
            finish(run, run.head..<run.entries.count, &state, now: now)
        }
        finish(inbox, .success(()), &state)
    }

    func finish(_ run: SessionInbox.Run, _ indices: Range<Int>, _ state: inout State, now: MonotonicTime) {
        run.forEachReceipt(indices) { state.machine.finish($0, now: now) }
    }

    /// Tells the machine which messages were processed since the last call.
    private func finishProcessed(of messages: TakenMessages, _ state: inout State, now: MonotonicTime) {
        messages.setWatched(false)
        finish(messages.run, messages.takeProcessed(), &state, now: now)
    }

    /// Does the same for all watched messages.
    func finishWatched(_ state: inout State, now: MonotonicTime) {
        while let messages = state.watched.popLast() { finishProcessed(of: messages, &state, now: now) }
    }

    /// Notes that a client's session is lost. The peer gives its methods other numbers in the next one.
    func loseInbound(_ state: inout State) {
        state.routes = []
        for inbox in state.userInboxes { state.leftovers.size = state.leftovers.size + inbox.sessionLost() }
    }

    private func takeLeftovers(_ size: SessionSize, _ state: inout State) {
        guard size.frameCount > 0 else { return }
        state.leftovers.size = state.leftovers.size - size
        guard !state.leftovers.isExceeded, let room = state.leftovers.room.take() else { return }
        state.effects.append(.makeRoom(room))
    }

    /// Ends all inboxes after their remaining messages, because the session is over.
    func finishInboxes(_ end: SessionEndReason, _ state: inout State) {
        for inbox in state.userInboxes {
            // The next client with the store receives untaken pushes again, and they are to be handled once.
            if state.machine.isDurable { _ = inbox.close() }
            finish(inbox, endOfPushes(end), &state)
        }
        for inbox in state.routes.compactMap(\.inbox) { finish(inbox, endOfPushes(end), &state) }
        for inbox in state.requestInboxes.elements { finish(inbox, .failure(SessionError(end)), &state) }
    }

    /// Returns how iterations over pushes end.
    private func endOfPushes(_ end: SessionEndReason) -> Result<Void, SessionError> {
        role == .client && end.isFailure ? .failure(SessionError(end)) : .success(())
    }

    // MARK: Users

    /// Returns the inbox of a method, which keeps pushes from now on.
    func registerInbox(for method: String) -> SessionInbox {
        change { state, _ in
            let inbox = state.pushInboxes[ExactName(method)] ?? SessionInbox(outlivesSessions: true)
            state.pushInboxes[ExactName(method)] = inbox
            state.route(method, to: inbox)
            // An inbox that is registered later is not among those that end with the session.
            if let end = state.machine.endReason { finish(inbox, endOfPushes(end), &state) }
            return inbox
        }
    }

    /// Begins to note the place of the newest received push of a group.
    func follow(_ group: String) -> GroupFollowing {
        state.withLock { state in
            guard let present = state.groups[ExactName(group)] else {
                state.groups[ExactName(group)] = FollowedGroup()
                return .begun
            }
            return present.left.map { .leaving($0) } ?? .present
        }
    }

    /// Notes that the client is about to stop following a group. Call `unfollow` when it has.
    func beginUnfollowing(_ group: String) { state.withLock { $0.groups[ExactName(group)]?.left = Latch() } }

    /// Notes that the client has stopped following a group.
    func unfollow(_ group: String) {
        state.withLock { $0.groups.removeValue(forKey: ExactName(group)) }?.left?.open(with: ())
    }

    /// Returns the place of the newest push of a group that was received since the client follows it, if any.
    func newestPlace(in group: String) -> String? { state.withLock { $0.groups[ExactName(group)]?.newestPlace } }

    /// Returns the inbox of late replies of a method: replies to durable calls whose callers no longer wait. From now
    /// on, only the method's credit limits it.
    func registerReplyInbox(for method: String) -> SessionInbox {
        change { state, _ in
            let inbox = state.lateReplies[ExactName(method)]?.inbox ?? SessionInbox(outlivesSessions: true)
            state.lateReplies[ExactName(method)] = LateReplies(inbox: inbox, keptByteCount: nil)
            if let end = state.machine.endReason { finish(inbox, endOfPushes(end), &state) }
            return inbox
        }
    }

    /// Drops the late replies of a method, present and future.
    func removeReplyInbox(_ inbox: SessionInbox, for method: String) {
        change { state, now in
            guard state.lateReplies[ExactName(method)]?.inbox === inbox else { return }
            state.lateReplies[ExactName(method)] = nil
            close(inbox, &state, now: now)
        }
    }

    /// Drops the pushes of a method, present and future.
    func removeInbox(_ inbox: SessionInbox, for method: String) {
        change { state, now in
            guard state.pushInboxes[ExactName(method)] === inbox else { return }
            state.pushInboxes[ExactName(method)] = nil
            state.route(method, to: nil)
            close(inbox, &state, now: now)
        }
    }

    /// Closes an inbox: drops its messages, and takes no more.
    func close(_ inbox: SessionInbox) {
        change(isOneOfMany: true) { state, now in close(inbox, &state, now: now) }
    }

    /// Returns whether the inbox has ever received a message.
    func hasBegun(_ inbox: SessionInbox) -> Bool { state.withLock { _ in inbox.hasBegun } }

    /// Ends an inbox after its remaining messages.
    func finish(_ inbox: SessionInbox, _ end: Result<Void, SessionError>) {
        change(isOneOfMany: true) { state, _ in finish(inbox, end, &state) }
    }

    /// Returns the received messages, at least one; nil at the end.
    ///
    /// - Parameters:
    ///   - last: the messages that were taken before, which are processed.
    ///   - isAlone: whether to take only one message.
    /// - Throws: the error that ended the inbox; `cancelled` when the task is cancelled.
    nonisolated(nonsending) func next(
        of inbox: SessionInbox,
        behind last: TakenMessages? = nil,
        isAlone: Bool = false
    ) async throws(SessionError) -> TakenMessages? {
        var last = last
        while true {
            let isCancelled = Task.isCancelled
            let (messages, end) = take(from: inbox, isCancelled: isCancelled, behind: last, isAlone: isAlone)
            if isCancelled { throw .cancelled }
            if let messages { return messages }
            if let end {
                try end.get()
                return nil
            }
            await wait(for: inbox)
            last = nil
        }
    }

    @inline(never)
    private func take(
        from inbox: SessionInbox,
        isCancelled: Bool,
        behind last: TakenMessages?,
        isAlone: Bool
    ) -> (TakenMessages?, end: Result<Void, SessionError>?) {
        change(isOneOfMany: true) { state, now in
            if let last {
                inbox.forget(last)
                finishProcessed(of: last, &state, now: now)
            }
            if isCancelled {
                // This reader may have been woken for a message, which goes to the next one instead.
                if let waiter = inbox.takeWaiter() { state.effects.append(.wake(waiter)) }
                return (nil, nil)
            }
            let (run, end) = inbox.takeRun(isAlone: isAlone)
            guard let run else { return (nil, end) }
            takeLeftovers(run.leftoverSize, &state)
            return (inbox.handOver(run), nil)
        }
    }

    /// Notes that some of the messages are processed. The engine reads how many more are when it next offers frames.
    @inline(never)
    func processed(_ messages: TakenMessages) {
        change(isOneOfMany: true) { state, now in
            finishProcessed(of: messages, &state, now: now)
            guard offersLater(&state) else { return }
            messages.setWatched(true)
            state.watched.append(messages)
        }
    }

    /// Notes that a reader takes no more of its messages. Those that were not handed out go to the next reader.
    ///
    /// - Parameter end: the index after the last processed message. All that were handed out are processed.
    func letGo(_ messages: TakenMessages, processed end: Int) {
        _ = messages.setProcessed(end)
        change(isOneOfMany: true) { state, now in
            let (inbox, run) = (messages.inbox, messages.run)
            inbox.forget(messages)
            finishProcessed(of: messages, &state, now: now)
            guard let rest = messages.takeBack() else { return }
            let isLeftover = inbox.outlivesSessions && run.session != state.machine.session
            guard inbox.putBack(run, from: rest.lowerBound, isLeftover: isLeftover) else {
                return finish(run, rest, &state, now: now)
            }
            if isLeftover { state.leftovers.size = state.leftovers.size + run.size(from: rest.lowerBound) }
            if let waiter = inbox.takeWaiter() { state.effects.append(.wake(waiter)) }
        }
    }

    /// Puts a durable message that was taken alone and not processed back into its inbox, for the next reader. Returns
    /// false if it is not durable.
    func giveBack(_ messages: TakenMessages) -> Bool {
        change(isOneOfMany: true) { state, _ in
            let (inbox, run) = (messages.inbox, messages.run)
            guard state.machine.durableMessage(run.session, run.entries[run.head].place) != nil else { return false }
            inbox.forget(messages)
            let isLeftover = run.session != state.machine.session
            guard inbox.putBack(run, from: run.head, isLeftover: isLeftover) else { return true }
            if isLeftover { state.leftovers.size = state.leftovers.size + run.size(from: run.head) }
            if let waiter = inbox.takeWaiter() { state.effects.append(.wake(waiter)) }
            return true
        }
    }

    private nonisolated(nonsending) func wait(for inbox: SessionInbox) async {
        let id = state.withLock { _ in inbox.makeWaiterID() }
        await withTaskCancellationHandler {
            // A cancellation before the waiter is parked finds nothing; a later one finds the waiter.
            await withQuickContinuation { (waiter: Waiter) in
                let isParked = !Task.isCancelled && state.withLock { _ in inbox.park(waiter, id) }
                if !isParked { waiter.resume() }
            }
        } onCancel: {
            state.withLock { _ in inbox.withdraw(id) }?.resume()
        }
    }

    /// Whether a connection waits until pushes of lost sessions are taken.
    var isHeldUp: Bool { state.withLock { $0.leftovers.room != nil } }

    /// Waits until the untaken pushes of lost sessions are within the limit.
    ///
    /// - Parameter whenHeldUp: called before the wait, if there is one.
    /// - Throws: `CancellationError`.
    func waitForLeftovers(whenHeldUp: () -> Void) async throws {
        let room = state.withLock { state -> Latch<Void>? in
            guard state.leftovers.isExceeded else { return nil }
            let room = state.leftovers.room ?? Latch()
            state.leftovers.room = room
            return room
        }
        guard let room else { return }
        whenHeldUp()
        try await room.wait()
    }
}

extension SessionEngine.State {
    /// The inboxes that users have asked for.
    fileprivate var userInboxes: [SessionInbox] { [SessionInbox](pushInboxes.values) + lateReplies.values.map(\.inbox) }

    /// Directs pushes of a method to an inbox from now on.
    fileprivate mutating func route(_ method: String, to inbox: SessionInbox?) {
        for number in routes.indices where routes[number].name == ExactName(method) {
            routes[number].inbox = inbox
            routes[number].isToldUnwanted = false
        }
    }
}
