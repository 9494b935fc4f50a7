internal import LifelineCore

// Handlers that do not wait: they run on the loop of the connection, behind the read that has brought what they handle,
// without a task. They get one where that connection is gone, or where another thread still runs what an earlier event
// asked for. The responses of all of them take one lock. Pushes of a method are handled in order, and so are requests; a
// push may be handled before a request that came before it.
extension SessionEngine {
    /// Responses of so many bytes are not put off: 64 KiB. The session counts them once they are sent.
    private static var responseByteCount: Int { 64 << 10 }

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
            var byteCount = 0
            for item in work {
                if byteCount >= Self.responseByteCount {
                    change(isOneOfMany: true) { state, now in respond(responses, &state, now: now) }
                    (responses, byteCount) = ([], 0)
                }
                switch item {
                case .request(let request):
                    guard let owner else { continue }
                    let response = owner.answer(request)
                    responses.append((request.request, response))
                    byteCount += response.byteCount
                case .cancelled(let request):
                    responses.append((request.request, EncodedContent(unchecked: SessionStatus(.cancelled))))
                case .taken(let method, let run): owner?.handle(run, of: method)
                case .pushes: preconditionFailure("Pushes are handled that were not taken.")
                }
            }
            (work, tellsEnd) = change(isOneOfMany: true) { state, now in
                for case .taken(_, let run) in work { finish(run, run.head..<run.entries.count, &state, now: now) }
                respond(responses, &state, now: now)
                let next = state.beginSynchronousWork()
                return (next, next.isEmpty && state.tellsEndOfSynchronousWork)
            }
        }
        if tellsEnd { owner?.synchronousWorkEnded() }
    }

    private func respond(
        _ responses: [(IncomingRequest, EncodedContent)],
        _ state: inout State,
        now: MonotonicTime
    ) {
        for (request, content) in responses {
            take(state.machine.lacking(toSend: content.byteCount), in: &state)
            respond(to: request, content, &state, now: now)
        }
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
        let work = synchronousWork.flatMap { work -> [SessionEngine.SynchronousWork] in
            switch work {
            case .request(let request): [machine.isWaitedFor(request.request) ? work : .cancelled(request)]
            case .pushes(let method, let inbox): inbox.takeDueRuns().map { .taken(method: method, $0) }
            case .cancelled, .taken: [work]
            }
        }
        synchronousWork = []
        doesSynchronousWork = !work.isEmpty
        return work
    }
}
