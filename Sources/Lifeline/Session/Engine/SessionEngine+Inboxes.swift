internal import LifelineCore
internal import LifelineRuntime

// Messages that come in, and who takes them.
extension SessionEngine {
    // MARK: Under the lock

    /// Hands a push to who wants pushes of its method.
    @inline(__always)
    func deliver(_ message: InboundMessage, _ receipt: Receipt, _ state: inout State, now: MonotonicTime) {
        let number = Int(message.method) - 1
        if let inbox = state.routes[number].inbox ?? makeInbox(number, &state), inbox.append(message, receipt) {
            if let waiter = inbox.takeWaiter() { state.effects.append(.wake(waiter)) }
        } else {
            state.statistics.unwantedPushCount += 1
            state.machine.finish(receipt, now: now)
            // Once, as a peer may send any number of them while effects wait.
            if state.routes[number].isToldUnwanted { return }
            state.routes[number].isToldUnwanted = true
            state.effects.append(.unwanted(method: state.routes[number].name.name))
        }
    }

    /// The inbox of a server's method whose first push has come; nil where it takes none.
    private func makeInbox(_ number: Int, _ state: inout State) -> SessionInbox? {
        guard let method = state.routes[number].method, method.takesPushes else { return nil }
        let inbox = SessionInbox()
        state.routes[number].inbox = inbox
        state.effects.append(.handlePushes(method: method.index, inbox))
        return inbox
    }

    /// Hands a part of a response to its caller. A call that has one reply fails with it.
    func deliver(
        _ part: InboundMessage,
        of id: SessionMachine.RequestID,
        _ receipt: Receipt,
        _ state: inout State,
        now: MonotonicTime
    ) {
        guard let call = state.calls[id] else { return state.machine.finish(receipt, now: now) }
        deliver(part, receipt, to: call.inbox, &state, now: now)
        guard call.inbox == nil else { return }
        // Where its response came together with the part, it is over already.
        _ = state.machine.cancelRequest(id, now: now, into: &state.actions)
        state.calls[id] = nil
        state.effects.append(.resolve(call, .failure(.answeredByStream)))
    }

    /// Hands a part to who wants the parts of its request or response; nil: nobody.
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

    /// Nobody takes more parts of a request, as it is answered.
    func closeParts(of request: IncomingRequest, _ state: inout State, now: MonotonicTime) {
        guard !state.requestInboxes.isEmpty, let inbox = state.requestInboxes.removeValue(forKey: request) else {
            return
        }
        close(inbox, &state, now: now)
    }

    private func close(_ inbox: SessionInbox, _ state: inout State, now: MonotonicTime) {
        let (receipts, leftoverCount) = inbox.close()
        takeLeftovers(receipts.prefix(leftoverCount), &state)
        for receipt in receipts { state.machine.finish(receipt, now: now) }
        finish(inbox, .success(()), &state)
    }

    /// A client's session is lost: the peer gives its methods other numbers in the next one.
    func loseInbound(_ state: inout State) {
        state.routes = []
        for inbox in state.pushInboxes.values {
            for receipt in inbox.sessionLost() { state.leftovers.size.add(receipt.cost) }
        }
    }

    private func takeLeftovers(_ receipts: some Sequence<Receipt>, _ state: inout State) {
        for receipt in receipts { state.leftovers.size.remove(receipt.cost) }
        guard !state.leftovers.isExceeded, let room = state.leftovers.room.take() else { return }
        state.effects.append(.makeRoom(room))
    }

    /// The session is over: iterations end behind what has come.
    func finishInboxes(_ end: SessionEndReason, _ state: inout State) {
        for inbox in state.pushInboxes.values { finish(inbox, endOfPushes(end), &state) }
        for inbox in state.routes.compactMap(\.inbox) { finish(inbox, endOfPushes(end), &state) }
        for inbox in state.requestInboxes.values { finish(inbox, .failure(SessionError(end)), &state) }
    }

    /// How iterations over pushes end.
    private func endOfPushes(_ end: SessionEndReason) -> Result<Void, SessionError> {
        role == .client && end.isFailure ? .failure(SessionError(end)) : .success(())
    }

    // MARK: Users

    /// The inbox of a method, in which pushes are kept from now on.
    func registerInbox(for method: String) -> SessionInbox {
        change { state, _ in
            let inbox = state.pushInboxes[ExactName(method)] ?? SessionInbox()
            state.pushInboxes[ExactName(method)] = inbox
            state.route(method, to: inbox)
            // One that is registered later is not among those that end with the session.
            if let end = state.machine.endReason { finish(inbox, endOfPushes(end), &state) }
            return inbox
        }
    }

    /// Nobody wants the pushes of a method any more: what waits is dropped.
    func removeInbox(_ inbox: SessionInbox, for method: String) {
        change { state, now in
            guard state.pushInboxes[ExactName(method)] === inbox else { return }
            state.pushInboxes[ExactName(method)] = nil
            state.route(method, to: nil)
            close(inbox, &state, now: now)
        }
    }

    /// Nobody takes anything of an inbox any more: what waits is dropped.
    func close(_ inbox: SessionInbox) {
        change(isOneOfMany: true) { state, now in close(inbox, &state, now: now) }
    }

    /// Whether something has ever come into an inbox.
    func hasBegun(_ inbox: SessionInbox) -> Bool { state.withLock { _ in inbox.hasBegun } }

    /// Nothing comes into an inbox any more.
    func finish(_ inbox: SessionInbox, _ end: Result<Void, SessionError>) {
        change(isOneOfMany: true) { state, _ in finish(inbox, end, &state) }
    }

    /// Messages that were taken together are not handed out by who took them.
    func putBack(_ run: SessionInbox.Run, to inbox: SessionInbox) {
        change(isOneOfMany: true) { state, now in
            if inbox.putBack(run) {
                if let waiter = inbox.takeWaiter() { state.effects.append(.wake(waiter)) }
            } else {
                for entry in run.entries[run.head...] { state.machine.finish(entry.receipt, now: now) }
            }
        }
    }

    /// Messages that came in together are processed.
    func finish(_ entries: [SessionInbox.Run.Entry]) {
        change(isOneOfMany: true) { state, now in
            for entry in entries { state.machine.finish(entry.receipt, now: now) }
        }
    }

    /// A message that came in is processed.
    func finish(_ receipt: Receipt) {
        change(isOneOfMany: true) { state, now in state.machine.finish(receipt, now: now) }
    }

    /// The next message, once there is one; nil at the end.
    ///
    /// - Parameter receipt: that of the message before, which is processed.
    /// - Throws: the inbox's end; `cancelled` when the task is.
    nonisolated(nonsending) func next(
        of inbox: SessionInbox,
        finishing receipt: Receipt?
    ) async throws(SessionError) -> SessionInbox.Item? {
        var receipt = receipt
        while true {
            let isCancelled = Task.isCancelled
            let next = take(from: inbox, isCancelled: isCancelled, finishing: receipt)
            if isCancelled { throw .cancelled }
            switch next {
            case .item(let item): return item
            case .end(let end):
                try end.get()
                return nil
            case .nothing: await wait(for: inbox)
            }
            receipt = nil
        }
    }

    @inline(never)
    private func take(from inbox: SessionInbox, isCancelled: Bool, finishing receipt: Receipt?) -> SessionInbox.Next {
        change(isOneOfMany: true) { state, now in
            if let receipt { state.machine.finish(receipt, now: now) }
            if isCancelled {
                // It may have been woken for a message, which is the next one's then.
                if let waiter = inbox.takeWaiter() { state.effects.append(.wake(waiter)) }
                return .nothing
            }
            let (next, isLeftover) = inbox.next()
            if isLeftover, case .item(let item) = next { takeLeftovers(CollectionOfOne(item.receipt), &state) }
            return next
        }
    }

    /// The messages that have come, at least one; nil at the end.
    ///
    /// - Throws: as `next` does.
    nonisolated(nonsending) func nextRun(of inbox: SessionInbox) async throws(SessionError) -> SessionInbox.Run? {
        while true {
            if Task.isCancelled {
                _ = take(from: inbox, isCancelled: true, finishing: nil)
                throw .cancelled
            }
            let (run, end) = takeRun(from: inbox)
            if let run { return run }
            if let end {
                try end.get()
                return nil
            }
            await wait(for: inbox)
        }
    }

    @inline(never)
    private func takeRun(from inbox: SessionInbox) -> (SessionInbox.Run?, end: Result<Void, SessionError>?) {
        change(isOneOfMany: true) { state, _ in
            let (run, leftovers, end) = inbox.nextRun()
            if !leftovers.isEmpty { takeLeftovers(leftovers, &state) }
            return (run, end)
        }
    }

    private nonisolated(nonsending) func wait(for inbox: SessionInbox) async {
        let id = state.withLock { _ in inbox.makeWaiterID() }
        await withTaskCancellationHandler {
            // A cancellation before the waiter is kept ran its handler in vain; one after it finds the waiter.
            await withCheckedContinuation { (waiter: Waiter) in
                let isParked = !Task.isCancelled && state.withLock { _ in inbox.park(waiter, id) }
                if !isParked { waiter.resume() }
            }
        } onCancel: {
            state.withLock { _ in inbox.withdraw(id) }?.resume()
        }
    }

    /// Whether a connection waits for pushes of lost sessions to be taken.
    var isHeldUp: Bool { state.withLock { $0.leftovers.room != nil } }

    /// Waits until pushes of lost sessions that nobody has taken are within the limit.
    ///
    /// - Parameter whenHeldUp: called first where they are not.
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
    /// Has pushes of a method go to an inbox from now on.
    fileprivate mutating func route(_ method: String, to inbox: SessionInbox?) {
        for number in routes.indices where routes[number].name == ExactName(method) {
            routes[number].inbox = inbox
            routes[number].isToldUnwanted = false
        }
    }
}
