internal import LifelineMessages
internal import LifelineRuntime

/// A push on its way through a client's interceptors. The interceptors surround the loop's handling of the push: they
/// run in their own task, which continues when the loop is done with the push.
final class InterceptedPush<Message: DelimitedMessage>: Sendable {
    /// Opens with the push that reaches the loop; with nil when none does.
    private let delivery: Latch<SessionPush<Message>?>
    private let letGo: Latch<Void>
    private let task: Task<Void, Never>

    /// - Parameter message: a single message.
    init(_ message: TakenMessages, of method: String, for client: SessionClient) {
        let (delivery, letGo) = (Latch<SessionPush<Message>?>(), Latch<Void>())
        (self.delivery, self.letGo) = (delivery, letGo)
        // The task does not retain the push itself, so that the push is released with its last owner.
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

    /// Waits for the push that reaches the loop; nil when the interceptors have dropped it.
    nonisolated(nonsending) func push() async -> SessionPush<Message>? {
        await withTaskCancellationHandler {
            await delivery.waitUninterrupted()
        } onCancel: {
            task.cancel()
        }
    }

    /// Ends the loop's handling of the push. Waits for the interceptors to end; they are cancelled with the loop's
    /// task.
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
