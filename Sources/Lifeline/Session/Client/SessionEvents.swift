internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// An event of a client's session.
public struct SessionEvent: Sendable {
    /// What happened.
    public enum Kind: Sendable {
        /// The session goes on over a new connection, or, with `resumed` false, a new one has begun.
        case opened(id: String, resumed: Bool)
        /// The session cannot go on, mostly because the server no longer knows it: it was restarted, or the client was
        /// away for too long. `SessionEvent.reason` has the reason. A new session begins with the messages that were
        /// not sent yet. It is unknown whether the server has processed the messages `inDoubt`.
        case lost(inDoubt: [SessionMessageInDoubt])
        /// A new session has begun, and its server takes no frames of the length of these messages, which had been
        /// accepted before. They were not sent.
        case refused([SessionMessageInDoubt])
        /// The time to live of these durable messages is over. They have left the store, and are no longer sent.
        /// Messages whose outcome is `inDoubt` were sent in a lost session, or perhaps by an earlier process, and the
        /// server may have processed them. The server has not seen the others. After a restart some may be reported
        /// again.
        case expired([SessionMessageInDoubt])
        /// The session is over; with an error when the server ended it. The messages `inDoubt` were accepted, and are
        /// not known to be processed.
        case ended(SessionError?, inDoubt: [SessionMessageInDoubt])
    }

    /// What happened.
    public let kind: Kind
    /// The reason for the loss of a session; nil for other events.
    public let reason: SessionError?
    /// The number of events before this one that the subscriber was too slow to see.
    public let missedCount: Int
}

/// The events of a client's session, for any number of subscribers.
///
/// Each iteration begins with the newest event, which shows the state of the session, and goes on with every later one.
/// It ends after `ended`, and when the task that iterates is cancelled. The client keeps the last 20 events for all
/// subscribers together. A subscriber that falls further behind learns how many it has missed. To see every message in
/// doubt, subscribe before the client runs.
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

/// The last events of a session, and the subscribers that wait for the next one.
final class SessionHistory: Sendable {
    /// A small number, because each event may hold all messages that a session keeps.
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

    /// The number of the newest event; the number of the first event while there is none.
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
