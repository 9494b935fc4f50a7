internal import LifelineCore
internal import LifelineRuntime

// The store. The machine decides what to write and read.
extension SessionEngine {
    /// The store of durable messages, and its peer.
    struct Store: Sendable {
        let store: any SessionStore
        /// The id of the client's store; nil at a client.
        let peer: SessionStoreID?
        /// Called with each error. The session continues after it.
        let whenFailed: @Sendable (StoreError) -> Void
    }

    /// Begins to keep durable messages. Call it once at most, and before the first connection.
    func use(_ store: Store, _ durability: SessionMachine.Durability) {
        change { state, _ in
            guard state.machine.endReason == nil else { return }
            state.store = store
            state.machine.opened(durability)
        }
    }

    /// Returns the durable message at a place of a session; nil if it is not durable.
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

    /// Returns a durable call of the peer; nil if the store does not know it.
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

    /// Notes that a message's handler has marked it in the store.
    func marked(_ place: DurableInbound.Place) { state.withLock { $0.machine.marked(place) } }

    /// Opens when the store has everything that was processed; nil if it has already. Final once the session and its
    /// handlers are over.
    var stored: Latch<Void>? {
        state.withLock { state in
            if state.machine.isStored { return nil }
            let stored = state.stored ?? Latch()
            state.stored = stored
            return stored
        }
    }

    /// Stops using the store, because the session is over.
    func closeStore() async {
        await stored?.waitUninterrupted()
        state.withLock { state in
            state.machine.closeStore()
            state.store = nil
        }
    }

    /// Moves stored messages into the lane, and starts the work that the store has to do.
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
