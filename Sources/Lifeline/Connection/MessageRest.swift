internal import LifelineTransport
public import Synchronization

/// The rest of the batch that a loop over single messages has begun. It belongs to the connection and not to the loop,
/// so that leaving the loop loses no message.
///
/// Inlinable, so that the code that hands out messages is specialized for their type: generic code took 200 ns more for
/// each.
@usableFromInline final class MessageRest<Element: Sendable>: Sendable {
    @usableFromInline struct State: Sendable {
        @usableFromInline var messages: [Element] = []
        /// The batch is reversed at its first message. Then the next message is the last element: taking it moves no
        /// other message, and leaves it with one owner.
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

/// A source of messages for a loop.
@usableFromInline protocol MessageSource {
    associatedtype Element: Sendable
    var rest: MessageRest<Element> { get }

    /// Fills `rest` with arrived messages, if there are any. Returns whether `rest` has messages.
    func fill() -> Bool
    /// Returns the rest of a batch, or the next batch; empty when there is none now.
    func takeBatch() -> [Element]
    /// Waits until messages have arrived. Returns false at the end.
    nonisolated(nonsending) func wait() async throws -> Bool
}

/// Inlined into the loop, so that Swift checks the executor only after `wait`. A check for each message takes 60 ns
/// when the loop's task prefers an executor, as handlers do, and as much again for each function on the way of a batch.
extension MessageSource {
    /// Returns the next message, from the rest or after waiting for more; nil at the end.
    @inlinable @inline(__always) func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
        while true {
            try Task.checkCancellation()
            if let next = rest.popFirst() { return next }
            if fill() { continue }
            guard try await wait() else { return nil }
        }
    }

    /// Returns the rest of a batch, or the next batch; nil at the end.
    @inlinable @inline(__always) func nextBatch(isolation actor: isolated (any Actor)?) async throws -> [Element]? {
        while true {
            try Task.checkCancellation()
            let batch = takeBatch()
            if !batch.isEmpty { return batch }
            guard try await wait() else { return nil }
        }
    }
}
