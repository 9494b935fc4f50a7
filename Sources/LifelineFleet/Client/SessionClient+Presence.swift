public import Lifeline
internal import LifelineMessages

extension SessionClient {
    /// Tells who is in a group at all servers, and then who comes and goes, over all connections and sessions.
    ///
    /// The server lets members of the group watch, and clients that may join it. The first event has all who are there.
    /// It comes again where the session was lost, and where this client is too slow for single events.
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

/// Who is in a group, and who comes and goes, as `SessionClient.presence(of:)` tells.
public struct SessionPresence: AsyncSequence, Sendable {
    /// Why it is told no more.
    public typealias Failure = SessionError

    fileprivate let client: SessionClient
    fileprivate let group: String

    /// Begins with all who are there. Leaving the loop ends it.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: self) }

    /// Hands out one event at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let base: SessionPresence
        private var updates: SessionStream<Lifeline_Fleet_V1_PresenceUpdate>.AsyncIterator?
        /// The members of updates that others will follow.
        private var members: [GroupMember] = []
        private var hasBegun = false

        fileprivate init(base: SessionPresence) { self.base = base }

        /// The next event.
        ///
        /// - Throws: `SessionError`: `status` when the server refuses the client, why the session has ended, and
        ///   `cancelled` when the task is.
        public nonisolated(nonsending) mutating func next() async throws(SessionError) -> PresenceEvent? {
            while true {
                do throws(SessionError) {
                    guard let update = try await nextUpdate() else { return nil }
                    hasBegun = true
                    if let event = event(of: update) { return event }
                } catch {
                    (updates, members) = (nil, [])
                    if error.code == .sessionLost { continue }
                    // It is no reason to stop watching.
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
