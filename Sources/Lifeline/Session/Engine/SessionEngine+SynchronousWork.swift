internal import LifelineCore

// Handlers that do not wait. They run on the connection's loop, after the read of the frames that they handle, without
// a task. They get a task if that connection is gone, or if another thread still runs effects of earlier events. One
// lock covers the responses of all of them. The pushes of a method are handled in order, and so are requests, but a
// push may be handled before an earlier request.
extension SessionEngine {
    /// The bytes of responses after which they are sent: 64 KiB. The session does not count them before.
    private static var responseByteCount: Int { 64 << 10 }

    /// A received message for such a handler.
    enum SynchronousWork {
        case request(InboundRequest)
        /// A request whose response the peer no longer waits for.
        case cancelled(InboundRequest)
        /// The inbox has received pushes.
        case pushes(method: Int, SessionInbox)
        case taken(method: Int, SessionInbox.Run)
    }

    /// Takes the pending work, which this thread then performs without the lock. Returns nothing if another thread
    /// performs work, which then also does this work, or still runs effects, and then starts a task for it.
    func takeSynchronousWork(_ state: inout State) -> [SynchronousWork] {
        if state.synchronousWork.isEmpty || state.doesSynchronousWork { return [] }
        if state.runsEffects {
            state.effects.append(.doSynchronousWork(state.outlet?.executor))
            return []
        }
        return state.beginSynchronousWork()
    }

    /// Performs the pending work.
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

    /// Notes that the session is over, so that no more such work comes. Returns whether all of it is done; if not,
    /// `SessionOwner.synchronousWorkEnded` follows.
    func endSynchronousWork() -> Bool {
        state.withLock { state in
            if state.doesSynchronousWork || !state.synchronousWork.isEmpty { state.tellsEndOfSynchronousWork = true }
            return !state.tellsEndOfSynchronousWork
        }
    }
}

extension SessionEngine.State {
    /// Takes all work, including the pushes in the inboxes.
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
