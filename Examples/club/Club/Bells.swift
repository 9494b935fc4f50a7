internal import Synchronization

/// Wakes the listeners of a room or an account. A ring only says that there may be news. The listeners then read the
/// database, so a ring that is lost with a process does no harm.
final class Bells: Sendable {
    private struct State {
        var lastID = 0
        var listeners: [String: [Int: AsyncStream<Void>.Continuation]] = [:]
    }

    private let state = Mutex(State())

    /// Returns the rings of a name from now on, and one at once. Rings that were not consumed merge into one.
    func rings(of name: String) -> AsyncStream<Void> {
        let (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let id = state.withLock { state in
            state.lastID += 1
            state.listeners[name, default: [:]][state.lastID] = continuation
            return state.lastID
        }
        continuation.onTermination = { [weak self] _ in self?.remove(id, from: name) }
        continuation.yield()
        return rings
    }

    func ring(_ name: String) {
        let listeners = state.withLock { $0.listeners[name] ?? [:] }
        for (_, listener) in listeners { listener.yield() }
    }

    private func remove(_ id: Int, from name: String) {
        state.withLock { state in
            state.listeners[name]?[id] = nil
            if state.listeners[name]?.isEmpty == true { state.listeners[name] = nil }
        }
    }
}
