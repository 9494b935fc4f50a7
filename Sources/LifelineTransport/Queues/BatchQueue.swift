package import LifelineCore

/// Carries batches from one producer, which never waits, to one consumer, which waits when the queue is empty.
///
/// The producer has to keep the bound: above the high-water mark it is told to pause, and at the low one to resume.
package struct BatchQueue<Element: Sendable>: Sendable {
    /// The untyped part, in which consumers wait.
    package let untyped: AnyBatchQueue

    package init(marks: WaterMarks) { untyped = AnyBatchQueue(marks: marks) }

    // MARK: The producer's side

    /// Adds a batch, whose cost counts until the consumer takes it. Returns whether to go on.
    package func receive(_ elements: [Element], cost: Int) -> ReadDemand {
        untyped.receive(AnyBatch(elements), cost: cost)
    }

    /// Whether the producer was told to pause, and not yet to resume.
    package var isPaused: Bool { untyped.isPaused }

    /// The cost of the queued batches.
    package var cost: Int { untyped.cost }

    /// Ends the queue after the queued batches. Only the first call counts.
    package func finish(throwing error: ConnectionError?) { untyped.finish(throwing: error) }

    /// Ends the queue at once. Returns the elements that were not taken.
    package func finishDiscarding() -> [Element] { untyped.finishDiscarding().flatMap { $0.elements() } }

    // MARK: The consumer's side

    /// Fills the rest, if there are elements. Returns whether the rest has any.
    ///
    /// - Parameters:
    ///   - rest: for batches of this queue's elements; always the same one.
    ///   - resumeReading: called when the producer may resume.
    package func fill(_ rest: any BatchRest, resumeReading: () -> Void) -> Bool {
        untyped.fill(rest, resumeReading: resumeReading)
    }

    /// Returns the rest of a batch, or the next batch; empty when there is none now, and at the end.
    package func takeBatch(after rest: (any BatchRest)? = nil, resumeReading: () -> Void) -> [Element] {
        untyped.takeBatch(after: rest, resumeReading: resumeReading)?.elements() ?? []
    }
}

/// Keeps the batch from which a consumer takes single elements. Several tasks may take turns at consuming, so it is
/// filled, and checked before a wait, under the queue's lock. All consumers of a queue share one rest.
package protocol BatchRest: AnyObject, Sendable {
    var isEmpty: Bool { get }
    /// Keeps a batch. Called only while the rest is empty; nothing else fills it.
    func put(_ batch: AnyBatch)
    /// Removes and returns the remaining elements, in order; nil when there are none.
    func takeAll() -> AnyBatch?
}

/// A batch whose element type only its producers and consumers know.
package struct AnyBatch: Sendable {
    private final class Box<Element: Sendable>: Sendable {
        let elements: [Element]

        init(_ elements: [Element]) { self.elements = elements }
    }

    private let box: any AnyObject & Sendable

    /// Makes a batch; nil when it is empty.
    package init?<Element: Sendable>(_ elements: [Element]) {
        // Not `isEmpty`, for which generic code looks up two more types.
        if elements.count == 0 { return nil }
        box = Box(elements)
    }

    /// Returns the elements, which must have exactly this type.
    package func elements<Element: Sendable>(as _: Element.Type = Element.self) -> [Element] {
        unsafeDowncast(box, to: Box<Element>.self).elements
    }
}
