import LifelineTestSupport
import SessionCutSupport
import Synchronization

/// The plan for the next connections.
final class RelayPlan: Sendable {
    private typealias Cut = CuttingRelay.Cut

    private struct State {
        var cuts: [Cut] = []
        var waiters: [CheckedContinuation<Cut?, Never>] = []
        var isFinished = false
    }

    private let state = Mutex(State())

    /// The next cut; nil if there are no more. Waits until this is known.
    func next() async -> CuttingRelay.Cut? {
        await withCheckedContinuation { continuation in
            let cut = state.withLock { state -> Cut?? in
                if !state.cuts.isEmpty { return .some(state.cuts.removeFirst()) }
                if state.isFinished { return .some(nil) }
                state.waiters.append(continuation)
                return nil
            }
            if let cut { continuation.resume(returning: cut) }
        }
    }

    func add(_ cut: CuttingRelay.Cut) {
        let waiter = state.withLock { state -> CheckedContinuation<Cut?, Never>? in
            if !state.waiters.isEmpty { return state.waiters.removeFirst() }
            state.cuts.append(cut)
            return nil
        }
        waiter?.resume(returning: cut)
    }

    /// The next connection is cut instead.
    func takeBack(_ cut: CuttingRelay.Cut?) {
        if let cut { add(cut) }
    }

    /// There are no more.
    func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: nil) }
    }
}

extension RelayCut {
    var kind: CuttingRelay.Cut.Kind {
        switch self {
        case .reset: .reset
        case .silence: .silence([.toServer, .toClient])
        case .silenceToServer: .silence([.toServer])
        case .silenceToClient: .silence([.toClient])
        case .kill: .hold
        }
    }
}
