#if Store
public import GRDB
public import Lifeline

extension SessionContext {
    /// Writes to the database of the server's store, in one transaction with the mark that the message was processed:
    /// after a crash, or a loss of power, both are there or neither. So the effect of a durable push happens once.
    ///
    ///     .push("sample.Bank/Pay") { (payment: Payment, context) in
    ///         try await context.transaction { db in
    ///             try db.execute(sql: "UPDATE accounts SET ...", arguments: [payment.amount])
    ///         }
    ///     }
    ///
    /// The transaction of a call has the reply, too: return it from `body`, and then from the handler.
    ///
    /// Concurrent calls are combined into one transaction, in which each has its own savepoint: when `body` throws,
    /// nothing of it is written, and the message is not marked. Call it once for a message: after a crash, a second
    /// transaction may be missing although the first is there. If `durableMessage` is nil, nothing is marked.
    ///
    /// - Parameter body: called on the database's own thread, which it must not block for long.
    /// - Throws: what `body` throws; GRDB's `DatabaseError` when it could not be written; `StoreError` when the server
    ///   has no such store, or it is closed, and `otherUse` when the transaction of a durable call returns no message.
    public func transaction<Result: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        guard let store = server.store as? SQLiteSessionStore else {
            throw StoreError(
                code: .otherUse,
                message: "The server has no SQLiteSessionStore. Set SessionServerConfiguration.store."
            )
        }
        let message = durableMessage
        let result = try await store.write(marking: message, body)
        message?.wasMarked()
        return result
    }
}

extension SessionDurableMessage {
    /// Returns the reply from a transaction's result in the form for the mark; nil if the message is not a call.
    ///
    /// - Throws: `StoreError` `otherUse` when the result is not a message; `SessionError` when it cannot be encoded.
    func reply(in result: some Sendable) throws -> [UInt8]? {
        guard isCall else { return nil }
        guard let reply = result as? any DelimitedMessage else {
            throw StoreError(
                code: .otherUse,
                message:
                    "The transaction of a durable call returned no message. Return the reply from it, so that both "
                    + "are stored together."
            )
        }
        return try replyBytes(reply)
    }
}
#endif
