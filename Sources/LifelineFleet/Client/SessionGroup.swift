public import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import NIOConcurrencyHelpers

/// A client's membership in a group, from `SessionClient.withGroup`.
public final class SessionGroup: Sendable {
    private struct State {
        var join: GroupJoin?
        /// The place of the newest message received before the client joined.
        var placeAtJoin: String?
        var end: Result<Void, SessionError>?
        var number = 0
        /// Opens with the next join, or the end.
        var news = Latch<Void>()
    }

    /// The group's name.
    public let name: String
    private let client: SessionClient
    private let start: GroupStart
    private let state = NIOLockedValueBox(State())

    init(_ name: String, of client: SessionClient, from start: GroupStart) {
        (self.name, self.client, self.start) = (name, client, start)
    }

    /// The results of joining: first the newest one, and then one each time that the client joins again after its
    /// session was lost; of several in a row, only the last one. The sequence ends with `withGroup`. It throws when the
    /// server does not let the client join again: then no more messages come.
    public var joins: Joins { Joins(group: self) }

    /// The results of a client's joining, again and again.
    public struct Joins: AsyncSequence, Sendable {
        /// The reason why the client is no longer a member.
        public typealias Failure = SessionError

        fileprivate let group: SessionGroup

        /// Begins with the newest result.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(group: group) }

        /// Hands out one result at a time.
        public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
            fileprivate let group: SessionGroup
            private var number = 0

            fileprivate init(group: SessionGroup) { self.group = group }

            /// The next result; nil at the end.
            ///
            /// - Throws: `SessionError`: the reason why the server does not let the client join again; `cancelled` when
            ///   the task is cancelled.
            public nonisolated(nonsending) mutating func next() async throws(SessionError) -> GroupJoin? {
                while true {
                    let (join, end, newest, news) = group.state.withLockedValue {
                        ($0.join, $0.end, $0.number, $0.news)
                    }
                    if newest > number, let join {
                        number = newest
                        return join
                    }
                    if let end {
                        try end.get()
                        return nil
                    }
                    do { try await news.wait() } catch { throw .cancelled }
                }
            }

            /// The next result; nil at the end.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(SessionError) -> GroupJoin? {
                try await next()
            }
        }
    }

    // MARK: For `withGroup`

    /// Waits until the client has joined.
    nonisolated(nonsending) func firstJoin() async throws(SessionError) {
        var joins = joins.makeAsyncIterator()
        if try await joins.next() == nil { throw .sessionIsOver }
    }

    /// Joins in each session, until the client ends or leaves the group.
    func keep() async {
        var hasJoined = false
        for await event in client.sessionEvents {
            switch event.kind {
            case .opened(_, resumed: true) where hasJoined && event.missedCount == 0: continue
            case .refused where hasJoined, .expired where hasJoined, .lost: continue
            case .opened, .refused, .expired: break
            case .ended(let error, _): return finish(error.map { .failure($0) } ?? .success(()))
            }
            do throws(SessionError) {
                try await join(isAgain: hasJoined)
                hasJoined = true
            } catch {
                // Wait for the next session, or the end.
                if error.code == .sessionLost { continue }
                // The client leaves.
                if Task.isCancelled { return }
                return finish(.failure(error))
            }
        }
    }

    private func join(isAgain: Bool) async throws(SessionError) {
        let request = Lifeline_Fleet_V1_JoinRequest.with {
            $0.group = name
            switch newestPosition.map({ .after($0) }) ?? start {
            case .now: break
            case .after(let position): $0.after = .init(position)
            case .earliest: $0.earliest = true
            }
        }
        let place = client.newestPlace(in: name)
        while true {
            do throws(SessionError) {
                // Without a limit for the time to connect.
                let reply = try await Lifeline_Fleet_V1_GroupsClient(client).join(request, timeout: nil)
                return joined(
                    GroupJoin(position: GroupPosition(reply.position), isRecovered: reply.recovered),
                    at: place
                )
            } catch {
                // A transient error is no reason to leave the group.
                guard isAgain, error.mayPass else { throw error }
                do { try await Task.sleep(for: .seconds(1)) } catch { throw .cancelled }
            }
        }
    }

    /// The position after the newest received message, or of the last join; nil if there is neither.
    private var newestPosition: GroupPosition? {
        let place = client.newestPlace(in: name)
        let (join, placeAtJoin) = state.withLockedValue { ($0.join, $0.placeAtJoin) }
        // If no message has arrived since the join, earlier messages may be of a lost epoch.
        if let join, place == placeAtJoin { return join.position }
        return place.flatMap { GroupMark.position(ofPlace: $0) } ?? join?.position
    }

    private func joined(_ join: GroupJoin, at place: String?) {
        change { state in
            (state.join, state.placeAtJoin) = (join, place)
            state.number += 1
        }
    }

    private func finish(_ end: Result<Void, SessionError>) { change { $0.end = $0.end ?? end } }

    private func change(_ body: (inout State) -> Void) {
        let news = state.withLockedValue { state in
            body(&state)
            defer { state.news = Latch() }
            return state.news
        }
        news.open(with: ())
    }

    /// Leaves the group, and waits for a while for the server's confirmation.
    func leave() async {
        finish(.success(()))
        client.beginUnfollowing(name)
        // It goes on when this task is cancelled or stops waiting: the client may join again after it.
        let left = Latch<Void>()
        Task { [client, name] in
            while true {
                do throws(SessionError) {
                    _ = try await Lifeline_Fleet_V1_GroupsClient(client).leave(.with { $0.group = name }, timeout: nil)
                } catch  where error.mayPass {
                    try? await Task.sleep(for: .seconds(1))
                    continue
                } catch {
                    // The session is over, and the membership with it.
                }
                break
            }
            client.unfollow(name)
            left.open(with: ())
        }
        await left.wait(until: .now() + .seconds(5), by: BootTimeClock())
    }
}

extension SessionError {
    fileprivate static var sessionIsOver: SessionError {
        SessionError(code: .closedLocally, message: "The client was closed.")
    }

    static var cancelled: SessionError {
        SessionError(code: .cancelled, message: "The task was cancelled.")
    }

    /// Whether the error may be transient: the server's engine is unavailable, or the server or this client is
    /// overloaded.
    var mayPass: Bool {
        code == .tooManyInFlight || [.unavailable, .resourceExhausted].contains(status?.code)
    }
}
