internal import Lifeline
internal import LifelineProtos

#if Store
internal import GRDB
internal import LifelineStore
#endif

/// The files of `call --durable` and `serve --store`.
enum DurableFile {
    /// Opens the store of a client, or makes it.
    ///
    /// - Throws: `CommandFailure`.
    static func open(_ path: String, forClientOf endpoint: Endpoint) throws(CommandFailure) -> any SessionStore {
        #if Store
        return try opening { () throws(StoreError) in
            try SQLiteSessionStore(path: path, for: .client(of: endpoint))
        }
        #else
        throw .builtWithoutStores
        #endif
    }

    /// Opens the store of the room, or makes it.
    ///
    /// - Throws: `CommandFailure`.
    static func openForRoom(_ path: String) throws(CommandFailure) -> any SessionStore {
        #if Store
        let store = try opening { () throws(StoreError) in try SQLiteSessionStore(path: path, for: .server) }
        do {
            try store.database.write { db in
                try db.execute(sql: "CREATE TABLE IF NOT EXISTS room_echo (number INTEGER NOT NULL)")
            }
        } catch {
            throw CommandFailure(status: .inputOutput, message: "Cannot write to \(path): \(error)")
        }
        return store
        #else
        throw .builtWithoutStores
        #endif
    }

    /// Adds a row for a durable echo, together with the mark that it was handled, and the reply.
    static func record(
        _ reply: Sample_Room_V1_EchoReply,
        _ context: SessionContext
    ) async throws -> Sample_Room_V1_EchoReply {
        #if Store
        try await context.transaction { db in
            let number = Int64(bitPattern: reply.number)
            try db.execute(sql: "INSERT INTO room_echo VALUES (?)", arguments: [number])
            return reply
        }
        #else
        reply
        #endif
    }

    #if Store
    private static func opening(
        _ open: () throws(StoreError) -> SQLiteSessionStore
    ) throws(CommandFailure) -> SQLiteSessionStore {
        do throws(StoreError) { return try open() } catch {
            throw CommandFailure(status: .inputOutput, message: "\(error)")
        }
    }
    #endif
}

#if !Store
extension CommandFailure {
    fileprivate static var builtWithoutStores: CommandFailure {
        CommandFailure(
            status: .usage,
            message: "This lifeline was built without stores. Build it with the package's trait Store."
        )
    }
}
#endif
