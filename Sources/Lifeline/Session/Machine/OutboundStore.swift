/// Where pushes outlive the process that accepted them: the place for a store on a disk. A session has what it needs of its
/// messages in memory; a store is told of each that must not be lost with the process, and asked once what is left.
///
/// A store keeps pushes that belong to no request and may be sent more than once. Requests and responses are nothing without
/// who waits for them.
///
/// - What cannot be kept is not accepted: `keep` throws, and so does the push.
/// - What cannot be read any more is an error of the next process, at its start: `load` throws. Nothing is ever sent in its
///   place.
/// - A push leaves the store when it was processed, or its end was told for good. What was not sent when the session ended
///   stays, and is sent by the next process.
///
/// **The next process has another session**, and what it takes in is sent there anew, so that across processes each push
/// comes at least once; times to live begin anew. To go on with the session itself, the next process would have to know the
/// place of each message that was sent, the attempt of the last hello, and how far this side has processed what came. The
/// last is the bound: what a handler does and the record of it would have to be written at once, which only the handler's
/// own store can. A hello that is behind what was acknowledged before breaks the rules.
package protocol OutboundStore<Content>: Sendable {
    associatedtype Content: SessionContent
    /// Why something cannot be kept or read; `Never` where that does not happen.
    associatedtype Failure: Error

    /// What an earlier process has left, by ascending numbers. Called once, before everything else.
    mutating func load() throws(Failure) -> [StoredPush<Content>]
    /// Keeps a push, whose number is above all that were kept.
    mutating func keep(_ push: StoredPush<Content>) throws(Failure)
    /// Forgets a push, which is kept. Where that is lost with the process, the next one sends the push again.
    mutating func remove(number: UInt64)
}

/// A push that outlives its process.
package struct StoredPush<Content: SessionContent>: Sendable {
    package let number: UInt64
    package let content: Content
    package let delivery: SessionDelivery

    package init(number: UInt64, content: Content, delivery: SessionDelivery) {
        self.number = number
        self.content = content
        self.delivery = delivery
    }
}

/// Content that a store can write.
package protocol StorableContent: SessionContent {
    /// Bytes from which `init(encoded:)` makes the same again.
    var encoded: [UInt8] { get }
    /// - Throws: when the bytes are no push's.
    init(encoded: [UInt8]) throws
}

/// Nothing outlives the process: the session itself has its messages in memory.
package struct MemoryStore<Content: SessionContent>: OutboundStore {
    package init() {}

    package mutating func load() -> [StoredPush<Content>] { [] }
    package mutating func keep(_ push: StoredPush<Content>) {}
    package mutating func remove(number: UInt64) {}
}
