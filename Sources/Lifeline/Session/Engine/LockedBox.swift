internal import NIOConcurrencyHelpers

/// A value under a lock that need not be copyable; `NIOLockedValueBox` requires copyable values.
///
/// It is safe to send, because the value is accessed only under the lock. The lock is a pthread mutex, which
/// ThreadSanitizer understands, unlike the standard library's `Mutex`.
final class LockedBox<Value: ~Copyable>: @unchecked Sendable {
    private let lock = NIOLock()
    /// Separate from the object, so that Swift does not check each access for exclusivity: the lock ensures it.
    private let value: UnsafeMutablePointer<Value>

    init(_ value: consuming Value) {
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
    }

    /// Runs `body` with the value under the lock. Do not take the lock again inside it.
    @inline(__always)
    func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value.pointee)
    }
}
