internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// What becomes of a client's session.
public struct SessionEvent: Sendable {
    /// What happened.
    public enum Kind: Sendable {
        /// The session goes on over a new connection, or, with `resumed` false, a new one has begun.
        case opened(id: String, resumed: Bool)
        /// The session cannot go on, mostly because the server does not know it any more: it was restarted, or the
        /// client was away for too long. `SessionEvent.reason` says why. A new one begins, with what was not sent yet.
        /// Of these messages it is not known whether the server has processed them.
        case lost(inDoubt: [SessionMessageInDoubt])
        /// A new session begins, and its server takes no frames that are long enough for these messages, which had been
        /// accepted before. They were not sent.
        case refused([SessionMessageInDoubt])
        /// The time to live of these durable messages is over. They have left the store, and are not sent any more. Those
        /// whose outcome is `inDoubt` were sent in a session that was lost, or perhaps by an earlier process: the server
        /// may have processed them. The others it has not seen. After a restart some may be told of again.
        case expired([SessionMessageInDoubt])
        /// The session is over: with an error when the server ended it against the client's will. These messages were
        /// accepted, and are not known to be processed.
        case ended(SessionError?, inDoubt: [SessionMessageInDoubt])
    }

    /// What happened.
    public let kind: Kind
    /// Why a session was lost; nil of other events.
    public let reason: SessionError?
    /// How many events between the one before and this one the subscriber was too slow to see.
    public let missedCount: Int
}

/// What becomes of a client's session, for any number of subscribers.
///
/// Each iteration begins with the newest event, which tells how the session stands, and goes on with every later one.
/// It ends after `ended`, and when the task that iterates is cancelled. Nothing is kept for a subscriber: who falls
/// more than 20 events behind is told how many were missed. Who wants to know of every message in doubt subscribes
/// before the client runs.
public struct SessionEvents: AsyncSequence, Sendable {
    let history: SessionHistory

    /// Begins with the newest event.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(history: history, cursor: history.newestNumber)
    }

    /// Hands out one event at a time.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        fileprivate let history: SessionHistory
        /// The number of the next event.
        fileprivate var cursor: Int

        /// The next event; nil at the end.
        public nonisolated(nonsending) mutating func next() async -> SessionEvent? {
            while true {
                switch history.event(at: cursor) {
                case .event(let event, let number):
                    cursor = number + 1
                    return event
                case .end:
                    return nil
                case .notYet(let news):
                    do { try await news.wait() } catch { return nil }
                }
            }
        }

        /// The next event; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SessionEvent? {
            await next()
        }
    }
}

/// The last events of a session, and who waits for the next one.
final class SessionHistory: Sendable {
    /// Few, as each may have all that a session keeps.
    private static let capacity = 20

    private struct State {
        var events: [(kind: SessionEvent.Kind, reason: SessionError?)] = []
        var firstNumber = 0
        /// Opens with the next event.
        var news = Latch<Void>()
    }

    enum Lookup {
        case event(SessionEvent, number: Int)
        case notYet(Latch<Void>)
        case end
    }

    private let state = NIOLockedValueBox(State())

    func append(_ kind: SessionEvent.Kind, reason: SessionError? = nil) {
        let news = state.withLockedValue { state in
            if state.events.count == SessionHistory.capacity {
                state.events.removeFirst()
                state.firstNumber += 1
            }
            state.events.append((kind, reason))
            defer { state.news = Latch() }
            return state.news
        }
        news.open(with: ())
    }

    /// The number of the newest event; that of the first one before there is any.
    var newestNumber: Int { state.withLockedValue { $0.firstNumber + Swift.max($0.events.count - 1, 0) } }

    /// The events that are kept, the oldest first.
    var events: [SessionEvent] {
        state.withLockedValue { $0.events.map { SessionEvent(kind: $0.kind, reason: $0.reason, missedCount: 0) } }
    }

    /// The event of this number; if it is not kept any more, the oldest one that is.
    fileprivate func event(at cursor: Int) -> Lookup {
        state.withLockedValue { state in
            let number = Swift.max(cursor, state.firstNumber)
            let index = number - state.firstNumber
            guard index < state.events.count else {
                // Nothing comes after the end.
                if case .ended? = state.events.last?.kind { return .end }
                return .notYet(state.news)
            }
            let (kind, reason) = state.events[index]
            return .event(SessionEvent(kind: kind, reason: reason, missedCount: number - cursor), number: number)
        }
    }
}
