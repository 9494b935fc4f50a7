internal import LifelineTransport
public import Synchronization

/// The rest of the batch that a loop over single messages has begun. It belongs to the connection, and not to the
/// loop, so that a loop which is left loses nothing.
///
/// Inlinable, so that messages are handed out by code for their very type: what is generic took 200 ns more for each.
@usableFromInline final class MessageRest<Element: Sendable>: Sendable {
    @usableFromInline struct State: Sendable {
        @usableFromInline var messages: [Element] = []
        /// Turned around at the first one: when the next is the last, taking it moves no other, and leaves it with one
        /// owner.
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

    @inlinable @inline(__always) func popFirst() -> Element? { state.withLock { $0.popFirst() } }
}

extension MessageRest: BatchRest {
    var isEmpty: Bool { state.withLock { $0.messages.isEmpty } }

    func put(_ batch: AnyBatch) {
        let messages = batch.elements(as: Element.self)
        state.withLock { state in
            state.messages = messages
            state.isReversed = false
        }
    }

    func takeAll() -> AnyBatch? {
        let rest = state.withLock { state in
            defer { state.messages = [] }
            return state
        }
        return AnyBatch(rest.isReversed ? rest.messages.reversed() : rest.messages)
    }
}

/// What a loop takes messages from.
@usableFromInline protocol MessageSource {
    associatedtype Element: Sendable
    var rest: MessageRest<Element> { get }

    /// Sees to it that there is something in `rest`, if anything has arrived; tells whether there is.
    func fill() -> Bool
    /// The rest of a batch, or the next one; empty when there is none now.
    func takeBatch() -> [Element]
    /// Waits until something has arrived; tells whether it has, which is false at the end.
    nonisolated(nonsending) func wait() async throws -> Bool
}

/// Inlined into the loop, so that Swift makes sure of the executor only after `wait`: to do so for each message takes
/// 60 ns where the loop's task prefers an executor, as handlers do, and as much for each function that a batch comes
/// through.
extension MessageSource {
    /// The next message: what is left, or the first one after waiting for more; nil at the end.
    @inlinable @inline(__always) func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
        while true {
            try Task.checkCancellation()
            if let next = rest.popFirst() { return next }
            if fill() { continue }
            guard try await wait() else { return nil }
        }
    }

    /// What is left of a batch, or the next one; nil at the end.
    @inlinable @inline(__always) func nextBatch(isolation actor: isolated (any Actor)?) async throws -> [Element]? {
        while true {
            try Task.checkCancellation()
            let batch = takeBatch()
            if !batch.isEmpty { return batch }
            guard try await wait() else { return nil }
        }
    }
}
