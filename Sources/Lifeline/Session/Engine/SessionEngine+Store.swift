internal import LifelineCore
internal import LifelineRuntime

// The store: what is to be written and read, as the machine decides.
extension SessionEngine {
    /// Where durable messages are kept.
    struct Store: Sendable {
        let store: any SessionStore
        /// Whose messages they are; nil: a client's.
        let peer: SessionStoreID?
        /// What is told of errors, which the session goes on after.
        let whenFailed: @Sendable (StoreError) -> Void
    }

    /// Begins to keep durable messages. Only once, and before the first connection.
    func use(_ store: Store, _ durability: SessionMachine.Durability) {
        change { state, _ in
            guard state.machine.endReason == nil else { return }
            state.store = store
            state.machine.opened(durability)
        }
    }

    /// The durable message that came in a session at a place; nil where it is not durable.
    func durableMessage(_ session: UInt64, _ place: UInt64) -> SessionDurableMessage? {
        let mark = state.withLock { $0.machine.durableMessage(session, place) }
        return mark.map { mark in
            SessionDurableMessage(
                sender: mark.sender,
                number: mark.number,
                isCall: false,
                method: "",
                place: DurableInbound.Place(session: session, place: place),
                engine: self
            )
        }
    }

    /// A durable call of the peer's; nil where the store does not know it.
    func durableCall(_ request: IncomingRequest) -> SessionDurableMessage? {
        let call = state.withLock { $0.machine.durableCall(request) }
        return call.map { mark, method, place in
            SessionDurableMessage(
                sender: mark.sender,
                number: mark.number,
                isCall: true,
                method: method,
                place: place,
                engine: self
            )
        }
    }

    /// The handler of a message has marked it in the store.
    func marked(_ place: DurableInbound.Place) { state.withLock { $0.machine.marked(place) } }

    /// Opens when the store knows all that was processed: for good once the session and its handlers are over. Nil when
    /// it does.
    var stored: Latch<Void>? {
        state.withLock { state in
            if state.machine.isStored { return nil }
            let stored = state.stored ?? Latch()
            state.stored = stored
            return stored
        }
    }

    /// The session is over, and the store is not used any more.
    func closeStore() async {
        await stored?.waitUninterrupted()
        state.withLock { state in
            state.machine.closeStore()
            state.store = nil
        }
    }

    /// Brings stored messages into the lane, and has the store do what there is to do.
    @inline(never)
    func useStore(_ state: inout State, now: MonotonicTime) {
        while let byteCount = state.machine.nextStoredByteCount {
            take(state.machine.lacking(toSend: byteCount), in: &state)
            guard state.machine.sendStored(now: now, into: &state.actions) else { break }
        }
        run(&state, now: now)
        let time = StoreTime(now: now, date: clock.date)
        while let store = state.store, let work = state.machine.takeStoreWork(time) {
            state.effects.append(.store(work, in: store))
        }
        if state.machine.isStored, let stored = state.stored.take() { state.effects.append(.makeRoom(stored)) }
    }

    func perform(_ work: SessionMachine.StoreWork, in store: Store) async {
        do throws(StoreError) {
            switch work {
            case .commit(let changes):
                try await store.store.commit(changes, for: store.peer)
                change { state, now in state.machine.committed(now: now, into: &state.actions) }
            case .read(let number):
                let byteCount = Outbox.pageByteCount
                let groups = try await store.store.groups(for: store.peer, from: number, byteCount: byteCount)
                let isWhole = change { state, now in
                    state.machine.read(groups, StoreTime(now: now, date: clock.date), into: &state.actions)
                }
                if !isWhole { store.whenFailed(.damagedMessages) }
            }
        } catch {
            store.whenFailed(error)
            change { state, now in
                state.storeError = error
                switch work {
                case .commit: state.machine.commitFailed(now: now, into: &state.actions)
                case .read: state.machine.readingFailed(now: now)
                }
                run(&state, now: now)
                state.storeError = nil
            }
        }
    }
}
