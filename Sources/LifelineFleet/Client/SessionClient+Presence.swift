public import Lifeline
internal import LifelineMessages

extension SessionClient {
    /// Returns the members of a group at all servers, and then their changes, over all connections and sessions.
    ///
    /// The server allows it for members of the group, and for clients that may join it. The first event has all present
    /// members. It comes again after a lost session, and when this client is too slow for single events.
    ///
    ///     for try await event in session.presence(of: "rooms/7") {
    ///         switch event {
    ///         case .present(let members): …
    ///         case .joined(let member): …
    ///         case .left(let member): …
    ///         }
    ///     }
    public func presence(of group: String) -> SessionPresence { SessionPresence(client: self, group: group) }
}

/// The members of a group and their changes, from `SessionClient.presence(of:)`.
public struct SessionPresence: AsyncSequence, Sendable {
    /// The reason for the end of the sequence.
    public typealias Failure = SessionError

    fileprivate let client: SessionClient
    fileprivate let group: String

    /// Begins with all present members. Leaving the loop ends the iteration.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: self) }

    /// Hands out one event at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let base: SessionPresence
        private var updates: SessionStream<Lifeline_Fleet_V1_PresenceUpdate>.AsyncIterator?
        /// The members from incomplete updates, which further updates complete.
        private var members: [GroupMember] = []
        private var hasBegun = false

        fileprivate init(base: SessionPresence) { self.base = base }

        /// The next event.
        ///
        /// - Throws: `SessionError`: `status` when the server refuses the client; the reason for the end of the
        ///   session; `cancelled` when the task is cancelled.
        public nonisolated(nonsending) mutating func next() async throws(SessionError) -> PresenceEvent? {
            while true {
                do throws(SessionError) {
                    guard let update = try await nextUpdate() else { return nil }
                    hasBegun = true
                    if let event = event(of: update) { return event }
                } catch {
                    (updates, members) = (nil, [])
                    if error.code == .sessionLost { continue }
                    // A transient error does not end the iteration.
                    guard hasBegun, error.mayPass || error.status?.code == .cancelled else { throw error }
                    do { try await Task.sleep(for: .seconds(1)) } catch { throw .cancelled }
                }
            }
        }

        private nonisolated(nonsending) mutating func nextUpdate() async throws(SessionError)
            -> Lifeline_Fleet_V1_PresenceUpdate?
        {
            var updates =
                self.updates
                ?? Lifeline_Fleet_V1_GroupsClient(base.client).watchPresence(.with { $0.group = base.group })
                .makeAsyncIterator()
            let update = try await updates.next()
            self.updates = updates
            return update
        }

        private mutating func event(of update: Lifeline_Fleet_V1_PresenceUpdate) -> PresenceEvent? {
            switch update.update {
            case .present(let present):
                for member in present.members { members.append(GroupMember(member)) }
                if present.more { return nil }
                defer { members = [] }
                return .present(members)
            case .joined(let member): return .joined(GroupMember(member))
            case .left(let member): return .left(GroupMember(member))
            case nil: return nil
            }
        }

        /// The next event.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError) -> PresenceEvent? {
            try await next()
        }
    }
}
