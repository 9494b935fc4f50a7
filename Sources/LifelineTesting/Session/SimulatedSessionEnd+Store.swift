package import Lifeline
internal import LifelineCore

// The store of a simulated end.
extension SimulatedSessionEnd {
    /// Begins to keep durable messages. Only once, and before the first connection.
    ///
    /// - Parameters:
    ///   - peer: whose messages they are; nil: a client's.
    package func use(_ store: SimulatedSessionStore, for peer: SessionStoreID?, byteLimit: Int = .max) {
        do {
            let content = store.content(for: peer)
            machine.opened(try SessionMachine.Durability(store.id, content, byteLimit: byteLimit))
        } catch {
            preconditionFailure("What was stored cannot be read: \(error)")
        }
        self.store = (store, peer)
    }

    /// Brings stored messages into the lane, and has the store do what there is to do.
    func useStore(now: MonotonicTime) {
        guard let store else { return }
        var actions: [SessionMachine.Action] = []
        while let byteCount = machine.nextStoredByteCount {
            take(machine.lacking(toSend: byteCount))
            guard machine.sendStored(now: now, into: &actions) else { break }
        }
        perform(actions, pumps: false, now: now)
        while let work = machine.takeStoreWork(store.store.time(now)) {
            store.store.begin(work, for: store.peer, now: now) { [weak self] result, now in
                self?.storeDone(work, result, now: now)
            }
        }
    }

    private func storeDone(
        _ work: SessionMachine.StoreWork,
        _ result: Result<[SessionStoreGroup], StoreError>,
        now: MonotonicTime
    ) {
        var actions: [SessionMachine.Action] = []
        switch (work, result) {
        case (.commit, .success): machine.committed(now: now, into: &actions)
        case (.commit, .failure): machine.commitFailed(now: now, into: &actions)
        case (.read, .success(let groups)):
            guard let store else { return }
            precondition(machine.read(groups, store.store.time(now), into: &actions), "what was stored cannot be read")
        case (.read, .failure): machine.readingFailed(now: now)
        }
        perform(actions, now: now)
    }

    /// Begins the peer's durable calls that may begin: they arrive as requests.
    func beginCalls(now: MonotonicTime) {
        while machine.hasHeldCalls {
            take(machine.lackingToBeginCall)
            var begun: (request: IncomingRequest, body: [UInt8])?
            guard machine.beginHeldCall(now: now, { begun = ($0, [UInt8]($1.body)) }), let begun else { return }
            begun.body.withUnsafeBytes { bytes in
                guard let message = try? InboundMessage(.push, bytes) else { preconditionFailure("a call was checked") }
                onActions([.arrived(.request(begun.request, message, deadline: nil))])
            }
        }
    }

    /// The handler of a durable call has stopped before it was done.
    package func abandoned(_ request: IncomingRequest, now: MonotonicTime) {
        var actions: [SessionMachine.Action] = []
        machine.abandoned(request, now: now, into: &actions)
        perform(actions, now: now)
    }

    /// The handler of a call has marked it in the store, with its reply.
    package func marked(_ request: IncomingRequest) {
        if let place = machine.durableCall(request)?.place { machine.marked(place) }
    }

    package func callDurably(
        _ method: String,
        _ content: Content,
        deadline: MonotonicTime?,
        asker: SessionMachine.Asker,
        now: MonotonicTime,
        offered: (SessionMachine.Offer) -> Void
    ) {
        offered(content.borrowed { machine.callDurably(method, $0, deadline: deadline, asker: asker) })
        pump(now: now)
    }

    package func cancelDurableCall(_ number: UInt64, now: MonotonicTime) {
        var actions: [SessionMachine.Action] = []
        _ = machine.cancelDurableCall(number, now: now, into: &actions)
        perform(actions, now: now)
    }

    /// The handler of a message has marked it in the store.
    package func marked(_ receipt: SessionMachine.Receipt) { machine.marked(receipt.durablePlace) }

    package func pushDurable(
        _ method: String,
        _ content: Content,
        deadline: MonotonicTime? = nil,
        isObserved: Bool,
        now: MonotonicTime,
        offered: (SessionMachine.Offer) -> Void
    ) {
        offered(content.borrowed { machine.pushDurable(method, $0, deadline: deadline, isObserved: isObserved) })
        pump(now: now)
    }
}
