/// Keeps the data that survives the process of a client or a server: messages sent with `SessionDelivery.durable`, and
/// the numbers of the peer's durable messages that were processed.
///
/// `LifelineStore` has a store in a SQLite file. Your own store keeps four things, and does not need to understand
/// messages:
///
/// - **Its id**, made once from random bits.
/// - **Groups** of messages for each peer, by the number of their first message. A group has bytes and a date.
/// - For each peer, **the next number**, which follows the last message of all groups that were ever added, including
///   those removed since; and a **date**.
/// - For each sender of messages to this side, **the numbers** of processed messages, as bytes.
///
/// In PostgreSQL, for example, one table for each of the last three is enough, and `commit` is one transaction. A
/// fourth table, of **marks**, lets handlers write with exactly one effect: see ``SessionDurableMessage``.
///
/// One process at a time uses a store, for one client or one server. There is one `commit` at a time for a peer, and
/// `groups` may be called at the same time. Calls for different peers of a server run concurrently.
public protocol SessionStore: Sendable {
    /// The id of the store. The other side uses it to remember which messages it has processed.
    var id: SessionStoreID { get }

    /// Reads the state that is kept for a peer.
    ///
    /// - Parameter peer: the store of a server's client; nil for a client, whose only peer is the server.
    /// - Throws: `StoreError`.
    func content(for peer: SessionStoreID?) async throws(StoreError) -> SessionStoreContent

    /// Returns the groups for a peer from a number on, in order: as many as fit into the given number of bytes, but at
    /// least one if there is one.
    ///
    /// - Throws: `StoreError`.
    func groups(
        for peer: SessionStoreID?,
        from number: UInt64,
        byteCount: Int
    ) async throws(StoreError) -> [SessionStoreGroup]

    /// Makes all of the changes or none. After it returns, they survive a loss of power.
    ///
    /// - Throws: `StoreError` when none was made. If the process is killed before the next commit, all may be there
    ///   afterwards.
    func commit(_ changes: SessionStoreChanges, for peer: SessionStoreID?) async throws(StoreError)

    /// Removes a server's groups that were added up to a date, and keeps the next number of each peer. Returns the
    /// number of removed messages.
    ///
    /// - Parameters:
    ///   - date: milliseconds since 1970.
    ///   - peers: the peers whose groups stay.
    /// - Throws: `StoreError` when none was removed.
    func removeGroups(addedUntil date: Int64, except peers: Set<SessionStoreID>) async throws(StoreError) -> Int
}

/// 128 random bits that name a store. They are never shown, because anybody who knows them can claim to own the store.
public struct SessionStoreID: Hashable, Sendable {
    package let id: SessionID

    package init(_ id: SessionID) { self.id = id }

    /// Makes an id that nobody can guess.
    public static func random() -> SessionStoreID {
        var generator = SystemRandomNumberGenerator()
        return SessionStoreID(SessionID(generator.next(), generator.next()))
    }

    /// Makes an id from its stored bytes; nil if there are not 16.
    public init?(bytes: some Collection<UInt8>) {
        guard let id = SessionID(bytes) else { return nil }
        self.id = id
    }

    /// The 16 bytes to store.
    public var bytes: [UInt8] { id.bytes }
}

extension SessionStoreID: CustomStringConvertible, CustomReflectable {
    /// A fixed text that hides the secret.
    public var description: String { "(secret)" }
    /// A mirror without children, which hides the secret.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Messages that were added to a store together.
public struct SessionStoreGroup: Sendable, Equatable {
    /// The number of the first message.
    public let first: UInt64
    /// The number of messages.
    public let count: Int
    /// The messages, in a form that only Lifeline reads.
    public let bytes: [UInt8]
    /// The date on which the group was added, in milliseconds since 1970.
    public let added: Int64

    /// Makes a group from its stored values.
    public init(first: UInt64, count: Int, bytes: [UInt8], added: Int64) {
        (self.first, self.count, self.bytes, self.added) = (first, count, bytes, added)
    }
}

/// The state that a store has kept for a peer.
public struct SessionStoreContent: Sendable {
    /// The number of the first message that is kept; `next` when there is none.
    public var first: UInt64
    /// The number of the next message; 1 in a new store.
    public var next: UInt64
    /// The number of bytes of all groups.
    public var byteCount: Int
    /// The last date that was stored; 0 in a new store.
    public var date: Int64
    /// The numbers of processed messages, by the id of the sender's store. For a peer: only its own store. For a
    /// client: those of all servers.
    public var processed: [SessionStoreID: [UInt8]]
    /// The messages that handlers have marked, by the id of the sender's store; empty in a store without marks.
    public var marked: [SessionStoreID: [SessionStoreMark]]

    /// Makes the content from its stored values.
    public init(
        first: UInt64 = 1,
        next: UInt64 = 1,
        byteCount: Int = 0,
        date: Int64 = 0,
        processed: [SessionStoreID: [UInt8]] = [:],
        marked: [SessionStoreID: [SessionStoreMark]] = [:]
    ) {
        (self.first, self.next, self.byteCount, self.date) = (first, next, byteCount, date)
        (self.processed, self.marked) = (processed, marked)
    }
}

/// A message that a handler has marked as processed, in the handler's own transaction.
public struct SessionStoreMark: Sendable, Equatable {
    /// The number of the message among those of its sender.
    public let number: UInt64
    /// The reply to a call, as `SessionDurableMessage.replyBytes(_:)` has made it; nil for a push.
    public let reply: [UInt8]?

    /// Makes a mark from its stored values.
    public init(number: UInt64, reply: [UInt8]? = nil) { (self.number, self.reply) = (number, reply) }
}

/// Changes to a store that are made together.
public struct SessionStoreChanges: Sendable, Equatable {
    /// Messages for the peer, behind all others.
    public var added: SessionStoreGroup?
    /// The groups to remove, by the numbers of their first messages.
    public var removed: [UInt64] = []
    /// The date to store, in milliseconds since 1970; nil to keep the present one.
    public var date: Int64?
    /// The numbers of processed messages, by the id of the sender's store. They replace older ones.
    public var processed: [SessionStoreID: [UInt8]] = [:]
    /// The marks to remove, because `processed` has their numbers.
    public var unmarked: [SessionStoreID: [UInt64]] = [:]

    /// Makes an empty set of changes.
    public init() {}

    /// Whether nothing changes.
    public var isEmpty: Bool {
        added == nil && removed.isEmpty && date == nil && processed.isEmpty && unmarked.isEmpty
    }
}
