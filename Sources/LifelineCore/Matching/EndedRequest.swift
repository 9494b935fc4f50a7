/// A request that ended without its answer.
@usableFromInline
package struct EndedRequest<Waiter: Sendable>: Sendable {
    /// The number under which it was begun.
    @usableFromInline package let id: UInt64
    /// What waited for the answer.
    @usableFromInline package let waiter: Waiter
    /// Why there is none.
    @usableFromInline package let code: RequestError.Code

    @inlinable
    package init(id: UInt64, waiter: Waiter, code: RequestError.Code) {
        self.id = id
        self.waiter = waiter
        self.code = code
    }
}
