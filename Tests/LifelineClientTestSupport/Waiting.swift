package import Lifeline

/// Yields to other tasks until a condition holds.
package nonisolated(nonsending) func until(_ condition: () -> Bool) async throws {
    try await untilAsync { condition() }
}

/// Yields to other tasks until a condition holds.
package nonisolated(nonsending) func untilAsync(_ condition: () async -> Bool) async throws {
    while await !condition() {
        try Task.checkCancellation()
        await Task.yield()
    }
}

extension ClientEvents.AsyncIterator {
    /// Advances to the next step that leads to this state.
    package nonisolated(nonsending) mutating func reach(_ state: ConnectionState) async throws -> ClientEvent {
        while let event = await next() {
            if event.transition.to == state { return event }
        }
        throw CancellationError()
    }
}

/// An event that happens once and can be waited for.
package struct Event: Sendable {
    private let stream = AsyncStream.makeStream(of: Void.self)

    package init() {}

    package func signal() { stream.continuation.finish() }

    package func wait() async throws {
        for await _ in stream.stream {}
        try Task.checkCancellation()
    }
}
