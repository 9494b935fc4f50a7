internal import LifelineRuntime

/// The streams of a call: the inbox for the parts of its response, and the start for sending its own parts.
struct CallParts: Sendable {
    /// Nil when the response has no parts.
    let inbox: SessionInbox?
    /// Nil when the request has no parts.
    let start: CallStart?

    /// - Throws: `messageRefused` when an interceptor repeats a call after messages of it were sent or received.
    func checkUnused(_ engine: SessionEngine) throws(SessionError) {
        guard start?.begunID != nil || inbox.map({ engine.hasBegun($0) }) == true else { return }
        throw SessionError(
            code: .messageRefused,
            message: "A stream that has delivered messages is not repeated: they would come twice."
        )
    }
}

/// A call whose response has parts, in its own task. It is cancelled when its last owner releases it.
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
        // Messages that nobody will take must not use up the credit.
        engine.close(inbox)
    }
}
