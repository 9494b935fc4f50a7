internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

// Sends that cannot go straight to the connection.
extension ClientDriver {
    /// The connection that takes messages without a detour, if there is one.
    var directPath: DirectPath? { state.withLockedValue { $0.direct } }

    /// A connection refused a message, which it does when it has failed: nothing more is offered to it.
    func sendFailed(on id: ConnectionManager.ConnectionID) {
        change { state, effects, _ in connectionFailed(id, in: &state, &effects) }
    }

    private func connectionFailed(
        _ id: ConnectionManager.ConnectionID,
        in state: inout State,
        _ effects: inout Effects
    ) {
        guard let open = state.open, open.attempt.id == id else { return }
        state.open?.hasFailed = true
        state.direct = nil
        end(state.queue.becameUnready(), in: &state, &effects)
    }

    /// Queues a message until a connection takes it. Nil: the connection can be tried again.
    ///
    /// - Throws: `ConnectionError`, `CancellationError`.
    nonisolated(nonsending) func wait(frame: [UInt8], policy: SendPolicy) async throws -> SendEnd? {
        // Written and read under the state's lock.
        let id = NIOLockedValueBox<SendQueue.ID?>(nil)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let send = WaitingSend(frame: frame, continuation: continuation)
                change { state, effects, now in
                    // A cancellation before this line ran its handler in vain; one after it finds the send.
                    if Task.isCancelled {
                        effects.endedSends.append((send, .failure(CancellationError())))
                        return
                    }
                    switch state.queue.offered(byteCount: frame.count, policy: policy, now: now) {
                    case .sendNow:
                        // What waited has ended, maybe before anybody began to hand it over.
                        state.openDirectPath()
                        effects.endedSends.append((send, .success(nil)))
                    case .fail(let code):
                        effects.endedSends.append((send, .failure(state.queue.error(for: code))))
                    case .wait(let number):
                        id.withLockedValue { $0 = number }
                        state.waiting[number] = send
                    }
                }
            }
        } onCancel: {
            change { state, effects, _ in
                guard let number = id.withLockedValue({ $0 }) else { return }
                switch state.queue.cancelled(number) {
                case .end(let ended): end([ended], in: &state, &effects)
                case .withdraw: if let withdrawal = state.withdrawal { effects.withdrawals.append(withdrawal) }
                case .none: break
                }
            }
        }
    }

    /// Ends sends that waited.
    func end(_ ended: [SendQueue.Ended], in state: inout State, _ effects: inout Effects) {
        for end in ended {
            guard let send = state.waiting.removeValue(forKey: end.id) else { continue }
            let result: Result<SendEnd?, any Error> =
                switch end.outcome {
                // By the connection that stands: it is reported as closed after what was handed over to it.
                case .sent: .success(SendEnd(outcome: .accepted, connection: state.open?.attempt.id))
                case .dropped: .success(SendEnd(outcome: .dropped, connection: nil))
                case .cancelled: .failure(CancellationError())
                case .failed(let code): .failure(state.queue.error(for: code))
                }
            effects.endedSends.append((send, result))
        }
    }
}

// Handing over what waited.
extension ClientDriver {
    /// Offers what waits to a connection, one after the other, until nothing waits or the connection fails.
    func handOver(to connection: any TransportConnection, _ id: ConnectionManager.ConnectionID) async {
        while let next = takeNext(for: id) {
            let isAccepted = await offer(next.frame, to: connection, withdrawal: next.withdrawal)
            change { state, effects, _ in
                state.withdrawal = nil
                let ended: SendQueue.Ended?
                if isAccepted {
                    ended = state.queue.handedOver(next.id)
                } else {
                    // Withdrawn, the connection goes on; the queue knows.
                    if next.withdrawal.value == nil { connectionFailed(id, in: &state, &effects) }
                    ended = state.queue.handOverFailed(next.id)
                }
                if let ended { end([ended], in: &state, &effects) }
            }
        }
    }

    private struct HandOver {
        let id: SendQueue.ID
        let frame: [UInt8]
        let withdrawal: Latch<Void>
    }

    private func takeNext(for id: ConnectionManager.ConnectionID) -> HandOver? {
        change { state, effects, now in
            guard let open = state.open, open.attempt.id == id, !open.hasFailed else { return nil }
            guard state.manager.state == .ready else { return nil }
            end(state.queue.timerFired(now: now), in: &state, &effects)
            guard let next = state.queue.next(), let send = state.waiting[next] else {
                if state.queue.count == 0 { state.openDirectPath() }
                return nil
            }
            let withdrawal = Latch<Void>()
            state.withdrawal = withdrawal
            return HandOver(id: next, frame: send.frame, withdrawal: withdrawal)
        }
    }

    /// Whether the connection accepted the frame. If not, it never will.
    private func offer(
        _ frame: [UInt8],
        to connection: any TransportConnection,
        withdrawal: Latch<Void>
    ) async -> Bool {
        do {
            guard let pending = try frame.withUnsafeBytes({ try connection.offer($0) }) else { return true }
            return await withTaskGroup(of: Bool?.self) { group in
                group.addTask {
                    do {
                        try await connection.wait(for: pending)
                        return true
                    } catch {
                        return false
                    }
                }
                group.addTask {
                    _ = try? await withdrawal.wait()
                    return nil
                }
                var isAccepted = false
                // Whichever ends first ends the other; what counts is how the connection's wait ended.
                for await result in group {
                    if let result { isAccepted = result }
                    group.cancelAll()
                }
                return isAccepted
            }
        } catch {
            return false
        }
    }
}
