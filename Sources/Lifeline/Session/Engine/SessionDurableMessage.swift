internal import LifelineCore
public import LifelineMessages

/// A durable message in its handler. The handler can mark it as processed in its own transaction.
///
/// `SessionContext.transaction` of `LifelineStore` does so. With another database, the handler writes a row with
/// `sender` and `number` together with its own changes, and calls `wasMarked()` after the commit. The store returns the
/// rows in `SessionStoreContent.marked`, and removes those of `SessionStoreChanges.unmarked`. With PostgreSQL, for
/// example:
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
/// The row of a call also has the bytes of its reply: `try message.replyBytes(reply)`. `SessionStoreMark.reply` returns
/// them, so that the caller gets the reply even if the process ended before it was sent.
public struct SessionDurableMessage: Sendable {
    /// The id of the sender's store.
    public let sender: SessionStoreID
    /// The number of the message in that store.
    public let number: UInt64
    /// Whether the message is a call, whose mark has the reply.
    public let isCall: Bool

    /// The method of a call: `package.Service/Method`.
    let method: String
    let place: DurableInbound.Place
    let engine: SessionEngine

    /// Returns the bytes of a call's reply for its mark.
    ///
    /// - Throws: `messageRefused` when it cannot be encoded.
    public func replyBytes(_ reply: some DelimitedMessage) throws(SessionError) -> [UInt8] {
        SessionMachine.replyBytes(to: number, of: method, payload: try reply.sessionPayload())
    }

    /// Notes that the handler's transaction has committed the mark. The message counts as processed when the handler
    /// returns, without another write by the session's store.
    public func wasMarked() { engine.marked(place) }
}
