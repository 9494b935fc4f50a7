#if Store
public import GRDB
public import Lifeline

extension SessionContext {
    /// Writes to the database of the server's store, in one transaction with the mark that the message was processed:
    /// after a crash, or a loss of power, both are there or neither. So what a durable push leads to happens once.
    ///
    ///     .push("sample.Bank/Pay") { (payment: Payment, context) in
    ///         try await context.transaction { db in
    ///             try db.execute(sql: "UPDATE accounts SET ...", arguments: [payment.amount])
    ///         }
    ///     }
    ///
    /// The transaction of a call has the reply, too: return it from `body`, and then from the handler.
    ///
    /// What comes together is put into one transaction, in which each has a savepoint of its own: when `body` throws,
    /// nothing of it is written, and the message is not marked. Call it once for a message: after a crash, a second
    /// transaction may be missing where the first is there. Where `durableMessage` is nil nothing is marked.
    ///
    /// - Parameter body: is called on the database's own thread, which it must not keep for long.
    /// - Throws: what `body` throws; GRDB's `DatabaseError` when it could not be written; `StoreError` when the server has
    ///   no such store, or that is closed, and `otherUse` when that of a durable call returns no message.
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
    /// The reply that a transaction has returned, as the mark has it; nil where the message is no call.
    ///
    /// - Throws: `StoreError` `otherUse` where it has returned none; `SessionError` where it cannot be encoded.
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
