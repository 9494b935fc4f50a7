public import NIOConcurrencyHelpers

/// Resumes a waiting task. Kept in the state whose change the task waits for.
@usableFromInline
package typealias Waiter = QuickContinuation<Void>

extension NIOLockedValueBox where Value: Sendable {
    /// Suspends the task until its waiter is resumed, or the task is cancelled.
    ///
    /// - Parameters:
    ///   - park: keeps the waiter and returns true; or returns false if there is nothing to wait for. Called under the
    ///     lock, unless the task is already cancelled.
    ///   - withdraw: removes the waiter, if it is still kept. Called under the lock when the task is cancelled.
    @inlinable
    package nonisolated(nonsending) func wait(
        park: (inout Value, Waiter) -> Bool,
        withdraw: @Sendable (inout Value) -> Waiter?
    ) async {
        await withTaskCancellationHandler {
            // A cancellation before the waiter is kept ran its handler in vain; one after it finds the waiter.
            await waitUninterrupted { !Task.isCancelled && park(&$0, $1) }
        } onCancel: {
            withLockedValue { withdraw(&$0) }?.resume()
        }
    }

    /// Suspends the task until its waiter is resumed, whether or not the task is cancelled.
    ///
    /// - Parameter park: as above.
    @inlinable
    package nonisolated(nonsending) func waitUninterrupted(park: (inout Value, Waiter) -> Bool) async {
        await withQuickContinuation { (waiter: Waiter) in
            let isParked = withLockedValue { park(&$0, waiter) }
            if !isParked { waiter.resume() }
        }
    }
}
