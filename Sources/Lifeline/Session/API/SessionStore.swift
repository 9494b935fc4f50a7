/// Keeps what is to survive the process of a client or a server: messages that are sent with
/// `SessionDelivery.durable`, and which of the peer's such messages were processed.
///
/// `LifelineStore` has one, in a SQLite file. Another one keeps four things, and knows nothing of messages:
///
/// - **Its id**, made once of random bits.
/// - **Groups** of messages for each peer, by the number of their first message. A group is bytes, and a date.
/// - For each peer, **the next number**: that behind the last message of all groups that were ever added, of those that
///   were removed, too; and a **date**.
/// - For each sender of messages to this side, **the numbers** that were processed, as bytes.
///
/// A table for each of the three in PostgreSQL, for example, is enough: `commit` is one transaction. A fourth one, of
/// **marks**, has handlers write with exactly one effect: see ``SessionDurableMessage``.
///
/// One process at a time uses a store, for one client or one server. One `commit` for a peer comes at a time, and
/// `groups` may come beside it; calls for several peers of a server come side by side.
public protocol SessionStore: Sendable {
    /// Names the store to the other side, which remembers by it what it has processed.
    var id: SessionStoreID { get }

    /// Reads the state that is kept for a peer.
    ///
    /// - Parameter peer: the store of a server's client; nil for a client, whose only peer is the server.
    /// - Throws: `StoreError`.
    func content(for peer: SessionStoreID?) async throws(StoreError) -> SessionStoreContent

    /// The groups for a peer from a number on, in order: as many as have so many bytes, and at least one where there
    /// is any.
    ///
    /// - Throws: `StoreError`.
    func groups(
        for peer: SessionStoreID?,
        from number: UInt64,
        byteCount: Int
    ) async throws(StoreError) -> [SessionStoreGroup]

    /// Makes all of the changes or none. When it returns they survive a loss of power.
    ///
    /// - Throws: `StoreError`: none was made, though all may be there after the process was killed, where nothing was
    ///   committed since.
    func commit(_ changes: SessionStoreChanges, for peer: SessionStoreID?) async throws(StoreError)

    /// Removes the groups of a server's that were added up to a date, and keeps the next number of each peer. Returns how
    /// many messages they had.
    ///
    /// - Parameters:
    ///   - date: milliseconds since 1970.
    ///   - peers: their groups stay.
    /// - Throws: `StoreError`: none was removed.
    func removeGroups(addedUntil date: Int64, except peers: Set<SessionStoreID>) async throws(StoreError) -> Int
}

/// 128 random bits that name a store. Who knows them can claim to be its owner, so that they are shown nowhere.
public struct SessionStoreID: Hashable, Sendable {
    package let id: SessionID

    package init(_ id: SessionID) { self.id = id }

    /// Makes one that nobody can guess.
    public static func random() -> SessionStoreID {
        var generator = SystemRandomNumberGenerator()
        return SessionStoreID(SessionID(generator.next(), generator.next()))
    }

    /// Reads one as it was kept; nil when these are not 16 bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard let id = SessionID(bytes) else { return nil }
        self.id = id
    }

    /// 16 bytes, to be kept.
    public var bytes: [UInt8] { id.bytes }
}

extension SessionStoreID: CustomStringConvertible, CustomReflectable {
    /// Nothing of the secret.
    public var description: String { "(secret)" }
    /// Nothing of the secret.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Messages that were added to a store together.
public struct SessionStoreGroup: Sendable, Equatable {
    /// The number of the first message.
    public let first: UInt64
    /// How many messages there are.
    public let count: Int
    /// The messages, in a form that only Lifeline reads.
    public let bytes: [UInt8]
    /// When it was added: milliseconds since 1970.
    public let added: Int64

    /// Makes a group of what was kept.
    public init(first: UInt64, count: Int, bytes: [UInt8], added: Int64) {
        (self.first, self.count, self.bytes, self.added) = (first, count, bytes, added)
    }
}

/// The state that a store has kept for a peer.
public struct SessionStoreContent: Sendable {
    /// The number of the first message that is kept; `next` where none is.
    public var first: UInt64
    /// The number of the next message; 1 in a new store.
    public var next: UInt64
    /// How many bytes the groups have.
    public var byteCount: Int
    /// The last date that was kept; 0 in a new store.
    public var date: Int64
    /// The numbers that were processed, by the stores of those who sent them: of a peer its own; for a client those of
    /// all servers.
    public var processed: [SessionStoreID: [UInt8]]
    /// The messages that handlers have marked, by the same; empty in a store without marks.
    public var marked: [SessionStoreID: [SessionStoreMark]]

    /// Makes the content of what was kept.
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

/// A message that a handler has marked as processed, in a transaction of its own.
public struct SessionStoreMark: Sendable, Equatable {
    /// Its number among those of its sender.
    public let number: UInt64
    /// The reply to a call, as `SessionDurableMessage.replyBytes(_:)` has made it; nil of a push.
    public let reply: [UInt8]?

    /// Makes the mark of what was kept.
    public init(number: UInt64, reply: [UInt8]? = nil) { (self.number, self.reply) = (number, reply) }
}

/// Changes to a store that are made together.
public struct SessionStoreChanges: Sendable, Equatable {
    /// Messages for the peer, behind all others.
    public var added: SessionStoreGroup?
    /// Groups that are not needed any more, by the numbers of their first messages.
    public var removed: [UInt64] = []
    /// The date to be kept, in milliseconds since 1970; nil: the one that is there.
    public var date: Int64?
    /// The numbers that were processed, by the stores of those who sent them. They take the place of older ones.
    public var processed: [SessionStoreID: [UInt8]] = [:]
    /// Marks that are not needed any more, as `processed` has their numbers.
    public var unmarked: [SessionStoreID: [UInt64]] = [:]

    /// Makes no changes.
    public init() {}

    /// Whether nothing changes.
    public var isEmpty: Bool {
        added == nil && removed.isEmpty && date == nil && processed.isEmpty && unmarked.isEmpty
    }
}
