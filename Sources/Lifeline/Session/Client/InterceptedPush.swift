internal import LifelineMessages
internal import LifelineRuntime

/// A push on its way through a client's interceptors, which stand around what a loop does with it: they run in a task
/// of their own, which goes on when the loop lets the push go.
final class InterceptedPush<Message: DelimitedMessage>: Sendable {
    /// Opens with what reaches the loop; with nil when nothing does.
    private let delivery: Latch<SessionPush<Message>?>
    private let letGo: Latch<Void>
    private let task: Task<Void, Never>

    /// - Parameter message: one alone.
    init(_ message: TakenMessages, of method: String, for client: SessionClient) {
        let (delivery, letGo) = (Latch<SessionPush<Message>?>(), Latch<Void>())
        (self.delivery, self.letGo) = (delivery, letGo)
        // Nothing of it holds the push itself, which is let go when nobody has it any more.
        task = Task {
            let run = message.run
            _ = message.handOutNext()
            let push = SessionCall(
                method,
                .push,
                metadata: run.metadata(run.head),
                payload: Array(run.payload(run.head))
            )
            do {
                try await client.interceptors[...].deliver(push) { push in
                    let message = try Message(sessionPayload: push.payload, client.configuration.decodingOptions)
                    let delivered = SessionPush(message: message, metadata: push.metadata)
                    guard delivery.open(with: delivered) else { throw SessionError.deliveredBefore }
                    await letGo.waitUninterrupted()
                }
            } catch {
                client.clientEnd.failed(method, error, wasDelivered: delivery.value != nil)
            }
            let isGivenBack = Task.isCancelled && delivery.value == nil && client.engine.giveBack(message)
            if !isGivenBack { client.engine.letGo(message, processed: run.entries.count) }
            delivery.open(with: nil)
        }
    }

    deinit { letGo.open(with: ()) }

    /// Waits for what reaches the loop; nil when the interceptors have dropped it.
    nonisolated(nonsending) func push() async -> SessionPush<Message>? {
        await withTaskCancellationHandler {
            await delivery.waitUninterrupted()
        } onCancel: {
            task.cancel()
        }
    }

    /// The loop lets it go. Waits for the ends of the interceptors, which are cancelled with the loop's task.
    nonisolated(nonsending) func finish() async {
        letGo.open(with: ())
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
    }
}

extension SessionError {
    fileprivate static var deliveredBefore: SessionError {
        SessionError(
            code: .messageRefused,
            message: "A push is handed over once. Call `next` once for each push that an interceptor gets."
        )
    }
}
