internal import LifelineCore

// Handlers that do not wait: they run on the loop of the connection, behind the read that has brought what they handle,
// without a task. The responses of all of them take one lock.
extension SessionEngine {
    /// What has come for such a handler.
    enum SynchronousWork {
        case request(InboundRequest)
        /// Nobody waits for its response any more.
        case cancelled(InboundRequest)
        /// Pushes have come into the inbox.
        case pushes(method: Int, SessionInbox)
        case taken(method: Int, SessionInbox.Run)
    }

    /// Takes the work that there is, to be performed by this thread once the lock is free. Another one may be at it, or
    /// still have effects of earlier events to run: then that one goes on with it.
    func takeSynchronousWork(_ state: inout State) -> [SynchronousWork] {
        if state.synchronousWork.isEmpty || state.doesSynchronousWork { return [] }
        if state.runsEffects {
            state.effects.append(.doSynchronousWork(state.outlet?.executor))
            return []
        }
        return state.beginSynchronousWork()
    }

    /// Performs the work that there is.
    func doSynchronousWork() {
        perform(state.withLock { $0.doesSynchronousWork ? [] : $0.beginSynchronousWork() })
    }

    func perform(_ work: [SynchronousWork]) {
        var (work, tellsEnd) = (work, false)
        while !work.isEmpty {
            let owner = owner
            var responses: [(IncomingRequest, EncodedContent)] = []
            for item in work {
                switch item {
                case .request(let request):
                    if let owner { responses.append((request.request, owner.answer(request))) }
                case .cancelled(let request):
                    responses.append((request.request, EncodedContent(unchecked: SessionStatus(.cancelled))))
                case .taken(let method, let run): owner?.handle(run, of: method)
                case .pushes: preconditionFailure("Pushes are handled that were not taken.")
                }
            }
            (work, tellsEnd) = change(isOneOfMany: true) { state, now in
                for case .taken(_, let run) in work { finish(run, run.head..<run.entries.count, &state, now: now) }
                for (request, content) in responses {
                    take(state.machine.lacking(toSend: content.byteCount), in: &state)
                    respond(to: request, content, &state, now: now)
                }
                let next = state.beginSynchronousWork()
                return (next, next.isEmpty && state.tellsEndOfSynchronousWork)
            }
        }
        if tellsEnd { owner?.synchronousWorkEnded() }
    }

    /// The session is over, so that no more of such work comes. Returns whether all of it is done;
    /// `SessionOwner.synchronousWorkEnded` follows where it is not.
    func endSynchronousWork() -> Bool {
        state.withLock { state in
            if state.doesSynchronousWork || !state.synchronousWork.isEmpty { state.tellsEndOfSynchronousWork = true }
            return !state.tellsEndOfSynchronousWork
        }
    }
}

extension SessionEngine.State {
    /// Takes all work, and the pushes of inboxes.
    fileprivate mutating func beginSynchronousWork() -> [SessionEngine.SynchronousWork] {
        let work = synchronousWork.compactMap { work -> SessionEngine.SynchronousWork? in
            switch work {
            case .request(let request): machine.isWaitedFor(request.request) ? work : .cancelled(request)
            case .pushes(let method, let inbox): inbox.takeDueRun().map { .taken(method: method, $0) }
            case .cancelled, .taken: work
            }
        }
        synchronousWork = []
        doesSynchronousWork = !work.isEmpty
        return work
    }
}
