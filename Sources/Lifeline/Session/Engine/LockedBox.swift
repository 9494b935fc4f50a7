internal import NIOConcurrencyHelpers

/// A value that need not be copyable, under a lock: what `NIOLockedValueBox` is for copyable ones.
///
/// It is safe to send, as the value is touched under the lock only. The lock is a pthread mutex, which ThreadSanitizer
/// knows; it knows nothing of the standard library's `Mutex`.
final class LockedBox<Value: ~Copyable>: @unchecked Sendable {
    private let lock = NIOLock()
    /// Apart from the object, so that the language does not check each access for others: the lock sees to that.
    private let value: UnsafeMutablePointer<Value>

    init(_ value: consuming Value) {
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
    }

    /// Runs `body` with the value under the lock. Do not use the lock again in it.
    @inline(__always)
    func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value.pointee)
    }
}
