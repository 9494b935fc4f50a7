/// A value that exists only inside a closure, such as a connection. A task keeps it until it is released.
struct Held<Value: Sendable> {
    let value: Value
    private let releasing: AsyncStream<Never>.Continuation
    private let task: Task<Void, any Error>

    /// - Parameter provide: calls its parameter with the value. That call returns when the value is released.
    init(_ provide: @escaping @Sendable (@escaping @Sendable (Value) async -> Void) async throws -> Void) async throws {
        let (released, release) = AsyncStream<Never>.makeStream()
        let (values, continuation) = AsyncThrowingStream<Value, any Error>.makeStream()
        task = Task {
            do {
                try await provide { value in
                    continuation.yield(value)
                    for await _ in released {}
                }
                // There may never have been a value.
                continuation.finish()
            } catch {
                continuation.finish(throwing: error)
                throw error
            }
        }
        releasing = release
        var iterator = values.makeAsyncIterator()
        guard let value = try await iterator.next() else { throw ConnectionEnded() }
        self.value = value
    }

    /// Lets the closure return, and waits for `provide`.
    func release() async throws {
        releasing.finish()
        try await task.value
    }
}
