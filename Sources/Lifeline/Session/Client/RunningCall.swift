internal import LifelineRuntime

/// The streams of a call: where the parts of its response go, and how its own are sent.
struct CallParts: Sendable {
    /// Nil: its response has no parts.
    let inbox: SessionInbox?
    /// Nil: it has no parts of its own.
    let start: CallStart?

    /// - Throws: `messageRefused` when an interceptor makes a call again of which messages have come or gone.
    func checkUnused(_ engine: SessionEngine) throws(SessionError) {
        guard start?.begunID != nil || inbox.map({ engine.hasBegun($0) }) == true else { return }
        throw SessionError(
            code: .messageRefused,
            message: "A stream that has brought messages is not made again: they would come twice."
        )
    }
}

/// A call whose response has parts, in a task of its own: cancelled when it is let go.
final class RunningCall: Sendable {
    let inbox: SessionInbox
    private let engine: SessionEngine
    private let task: Task<Void, Never>

    init(_ call: SessionCall, _ inbox: SessionInbox, over client: SessionClient) {
        self.inbox = inbox
        engine = client.engine
        task = Task {
            do throws(SessionError) {
                _ = try await client.make(call, CallParts(inbox: inbox, start: nil))
                client.engine.finish(inbox, .success(()))
            } catch {
                client.engine.finish(inbox, .failure(error))
            }
        }
    }

    deinit {
        task.cancel()
        // Messages that nobody takes any more must not use up the credit.
        engine.close(inbox)
    }
}
