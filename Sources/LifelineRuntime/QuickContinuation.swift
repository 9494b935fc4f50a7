// Continuations of paths on which each message has one. An unsafe one costs half of what a checked one does, whose
// layout, besides, is only known at run time, so that whatever has one in it is copied by way of its metadata. Debug
// builds check.

#if DEBUG
@usableFromInline
package typealias QuickContinuation<Value: Sendable> = CheckedContinuation<Value, Never>

/// Suspends the task until its continuation is resumed, once.
@inlinable
package nonisolated(nonsending) func withQuickContinuation<Value: Sendable>(
    _ body: (QuickContinuation<Value>) -> Void
) async -> Value {
    await withCheckedContinuation(body)
}
#else
@usableFromInline
package typealias QuickContinuation<Value: Sendable> = UnsafeContinuation<Value, Never>

/// Suspends the task until its continuation is resumed, once.
@inlinable
package nonisolated(nonsending) func withQuickContinuation<Value: Sendable>(
    _ body: (QuickContinuation<Value>) -> Void
) async -> Value {
    await withUnsafeContinuation(body)
}
#endif
