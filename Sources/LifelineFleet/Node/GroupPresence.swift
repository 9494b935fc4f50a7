internal import Lifeline
internal import LifelineRuntime

/// The members of a group and their changes, from `Fleet.presence(of:)`.
public struct GroupPresence: AsyncSequence, Sendable {
    /// The reason for the end of the sequence.
    public typealias Failure = FleetError

    let name: Result<ExactName, FleetError>
    let presences: FleetPresence

    /// Begins with all present members.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(watcher: name.map { Watcher(of: $0, presences) })
    }

    /// Watches until its last reference is released.
    fileprivate final class Watcher: Sendable {
        private let name: ExactName
        private let presences: FleetPresence
        private let id: UInt64
        private let bell: Doorbell

        init(of name: ExactName, _ presences: FleetPresence) {
            (self.name, self.presences) = (name, presences)
            (id, bell) = presences.addWatcher(of: name)
        }

        deinit { presences.removeWatcher(id, of: name) }

        nonisolated(nonsending) func next() async throws(FleetError) -> PresenceEvent {
            while true {
                if Task.isCancelled { throw .cancelled }
                if let event = presences.next(for: id, of: name) { return event }
                await bell.wait()
            }
        }
    }

    /// Hands out one event at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let watcher: Result<Watcher, FleetError>

        /// The next event. It is delayed while the engine fails.
        ///
        /// - Throws: `FleetError` `badName`; `cancelled` when the task is cancelled.
        public nonisolated(nonsending) mutating func next() async throws(FleetError) -> PresenceEvent? {
            try await watcher.get().next()
        }

        /// The next event. It is delayed while the engine fails.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(FleetError) -> PresenceEvent? {
            try await next()
        }
    }
}
