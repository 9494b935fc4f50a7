#if Store
import ArgumentParser
import FaultSupport
import GRDB
import Lifeline
import LifelineStore
import LifelineWellKnownTypes
import Logging

/// The server that is killed. Its handlers write the messages to its database. It ends with its input.
struct KillServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "server", shouldDisplay: false)

    @Option var folder: String

    private struct Work: SessionService {
        let methods: [SessionMethod]
    }

    func run() async throws {
        let files = KillFiles(folder: folder)
        let store = try SQLiteSessionStore(path: files.serverStore, for: .server)
        try await store.database.write { db in
            try db.execute(sql: "CREATE TABLE IF NOT EXISTS effects (method TEXT NOT NULL, number INTEGER NOT NULL)")
        }
        var configuration = SessionServerConfiguration()
        configuration.store = store
        let pushes = KillClient.pushMethods.map { method in
            SessionMethod.push(method) { (number: Google_Protobuf_Int64Value, context) async throws in
                try await context.transaction { db in
                    try db.execute(sql: "INSERT INTO effects VALUES (?, ?)", arguments: [method, number.value])
                }
            }
        }
        let calls = KillClient.callMethods.map { method in
            SessionMethod.unary(method) { (number: Google_Protobuf_Int64Value, context) async throws in
                try await context.transaction { db in
                    try db.execute(sql: "INSERT INTO effects VALUES (?, ?)", arguments: [method, number.value])
                    return number
                }
            }
        }
        try await withSessionServer(
            listeningOn: Endpoint(files.endpoint),
            configuration: configuration,
            services: [Work(methods: pushes + calls)],
            logger: .quiet
        ) { _ in
            while try await CommandLines.next() != nil {}
        }
    }
}
#endif
