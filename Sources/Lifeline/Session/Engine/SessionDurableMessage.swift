internal import LifelineCore
public import LifelineMessages

/// A durable message that a handler handles, by which the handler can mark it as processed in a transaction of its own.
///
/// `SessionContext.transaction` of `LifelineStore` does. With another database, the handler writes a row of `sender` and
/// `number` with its own changes, and calls `wasMarked()` when that is committed; the store tells of the rows in
/// `SessionStoreContent.marked`, and removes those of `SessionStoreChanges.unmarked`. With PostgreSQL, for example:
///
///     let message = context.durableMessage
///     try await postgres.withTransaction { transaction in
///         try await transaction.query("UPDATE accounts SET …")
///         if let message {
///             try await transaction.query("INSERT INTO marks VALUES (\(message.sender.bytes), \(message.number))")
///         }
///     }
///     message?.wasMarked()
///
/// The row of a call has its reply, too, as bytes: `try message.replyBytes(reply)`. `SessionStoreMark.reply` gives them
/// back, and the caller gets the reply though the process has ended before it was sent.
public struct SessionDurableMessage: Sendable {
    /// The store of its sender.
    public let sender: SessionStoreID
    /// Its number among those of that.
    public let number: UInt64
    /// Whether it is a call, whose mark has the reply.
    public let isCall: Bool

    /// Of a call: `package.Service/Method`.
    let method: String
    let place: DurableInbound.Place
    let engine: SessionEngine

    /// The reply to a call as its mark has it.
    ///
    /// - Throws: `messageRefused` when it cannot be encoded.
    public func replyBytes(_ reply: some DelimitedMessage) throws(SessionError) -> [UInt8] {
        SessionMachine.replyBytes(to: number, of: method, payload: try reply.sessionPayload())
    }

    /// The handler's own transaction has the mark. The message counts as processed when the handler returns, and the
    /// session's store needs no write of its own for that.
    public func wasMarked() { engine.marked(place) }
}
