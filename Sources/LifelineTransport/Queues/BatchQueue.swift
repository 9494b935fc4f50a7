package import LifelineCore

/// Carries batches from one producer, which never waits, to one consumer, which waits when there is nothing.
///
/// Bounded by the producer's obedience: past the high-water mark it is told to pause, and told to go on when the
/// consumer has brought the queue down to the low one.
package struct BatchQueue<Element: Sendable>: Sendable {
    /// What it does whatever its batches are of; who waits for one waits here.
    package let untyped: AnyBatchQueue

    package init(marks: WaterMarks) { untyped = AnyBatchQueue(marks: marks) }

    // MARK: The producer's side

    /// Adds a batch, whose cost counts until the consumer takes it. Tells whether to go on.
    package func receive(_ elements: [Element], cost: Int) -> ReadDemand {
        untyped.receive(AnyBatch(elements), cost: cost)
    }

    /// Whether the producer was told to pause, and not yet to go on.
    package var isPaused: Bool { untyped.isPaused }

    /// What the batches cost that it holds.
    package var cost: Int { untyped.cost }

    /// Ends the queue after what it holds. Only the first call counts.
    package func finish(throwing error: ConnectionError?) { untyped.finish(throwing: error) }

    /// Ends the queue at once. Returns what nobody has taken.
    package func finishDiscarding() -> [Element] { untyped.finishDiscarding().flatMap { $0.elements() } }

    // MARK: The consumer's side

    /// Sees to it that the rest has an element, if there is any, and tells whether it has.
    ///
    /// - Parameters:
    ///   - rest: for batches of this queue's elements; always the same one.
    ///   - resumeReading: called when the producer may go on.
    package func fill(_ rest: any BatchRest, resumeReading: () -> Void) -> Bool {
        untyped.fill(rest, resumeReading: resumeReading)
    }

    /// What is left of a batch, or the next one; empty where there is none now, and at the end.
    package func takeBatch(after rest: (any BatchRest)? = nil, resumeReading: () -> Void) -> [Element] {
        untyped.takeBatch(after: rest, resumeReading: resumeReading)?.elements() ?? []
    }
}

/// Where a consumer keeps the batch that it takes elements out of one by one. Several tasks may take turns at
/// consuming, so that it is filled, and looked at before one of them waits, under the queue's lock. All consumers of a
/// queue have the same.
package protocol BatchRest: AnyObject, Sendable {
    var isEmpty: Bool { get }
    /// Keeps a batch. Called while it is empty; nothing else fills it.
    func put(_ batch: AnyBatch)
    /// All that is left, in order; nil when there is nothing.
    func takeAll() -> AnyBatch?
}

/// A batch, of which only those who fill it and empty it know what it is of.
package struct AnyBatch: Sendable {
    private final class Box<Element: Sendable>: Sendable {
        let elements: [Element]

        init(_ elements: [Element]) { self.elements = elements }
    }

    private let box: any AnyObject & Sendable

    /// Nil when there is nothing in it.
    package init?<Element: Sendable>(_ elements: [Element]) {
        // Not `isEmpty`, for which generic code looks two more types up.
        if elements.count == 0 { return nil }
        box = Box(elements)
    }

    /// Its elements, which must be of this very type.
    package func elements<Element: Sendable>(as _: Element.Type = Element.self) -> [Element] {
        unsafeDowncast(box, to: Box<Element>.self).elements
    }
}
