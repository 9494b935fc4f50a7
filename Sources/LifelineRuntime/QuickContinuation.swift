// Continuations for paths on which each message needs one. An unsafe continuation costs half of a checked one. The
// layout of a checked one is only known at run time, so types that contain one are copied through their metadata. Debug
// builds use checked ones.

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
