internal import LifelineTransport
public import Synchronization

/// What is left of the batch that a loop over single messages has begun. It belongs to the connection, and not to the loop, so
/// that a loop which is left loses nothing.
///
/// Inlinable, so that messages are handed out by code for their very type: what is generic took 200 ns more for each
/// (`lifeline-messages` one way, 32 bytes: 485 and 290 ns of the receiver's).
@usableFromInline final class MessageRest<Element: Sendable>: Sendable {
    @usableFromInline struct State: Sendable {
        @usableFromInline var messages: [Element] = []
        /// Turned around at the first one: when the next is the last, taking it moves no other, and leaves it with one owner.
        @usableFromInline var isReversed = false

        init() {}

        @inlinable mutating func popFirst() -> Element? {
            if !isReversed {
                messages.reverse()
                isReversed = true
            }
            return messages.popLast()
        }
    }

    @usableFromInline let state = Mutex(State())

    /// The next message: what is left, or the first one after `fill` has waited for more; nil at the end, where `fill` tells that
    /// there is none.
    @inlinable nonisolated(nonsending) func next(
        _ fill: nonisolated(nonsending) () async throws -> Bool
    ) async throws -> Element? {
        while true {
            try Task.checkCancellation()
            if let next = state.withLock({ $0.popFirst() }) { return next }
            guard try await fill() else { return nil }
        }
    }
}

extension MessageRest: BatchRest {
    var isEmpty: Bool { state.withLock { $0.messages.isEmpty } }

    func put(_ batch: [Element]) {
        state.withLock { state in
            state.messages = batch
            state.isReversed = false
        }
    }

    func takeAll() -> [Element] {
        let rest = state.withLock { state in
            defer { state.messages = [] }
            return state
        }
        return rest.isReversed ? rest.messages.reversed() : rest.messages
    }
}
