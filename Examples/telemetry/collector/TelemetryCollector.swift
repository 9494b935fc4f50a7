#if Store
internal import ArgumentParser
internal import Glibc
internal import GRDB
internal import Lifeline
internal import LifelineStore
internal import TelemetryProtos

/// Writes the measurements of gateways into its database. It may be killed at any time.
@main struct TelemetryCollector: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "TelemetryCollector",
        abstract: "Writes measurements into a database, each of them once.",
        discussion: """
            Runs until it is interrupted or killed.

            Examples:
              TelemetryCollector
              TelemetryCollector --summary
            """
    )

    @Option(help: ArgumentHelp("Where to listen. Port 0 takes a free one.", valueName: "url"))
    var on = "tcp://127.0.0.1:7000"

    @Option(help: ArgumentHelp("The database, a file of SQLite's.", valueName: "file"))
    var database = "collector.sqlite"

    @Flag(help: "Print what is in the database, and end. Another collector may use it meanwhile.")
    var summary = false

    func run() async throws {
        if summary { return try printSummary() }
        let store = try SQLiteSessionStore(path: database, for: .server)
        try await store.database.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS measurements (
                        gateway TEXT, line INTEGER, time INTEGER, sensor TEXT, value REAL, PRIMARY KEY (gateway, line))
                    """
            )
        }
        var configuration = SessionServerConfiguration()
        configuration.store = store
        try await withSessionServer(
            listeningOn: Endpoint(on),
            configuration: configuration,
            services: [Collector()]
        ) { server in
            try await print("listening on \(server.boundEndpoints[0])")
            // Not held back until the buffer is full.
            fflush(nil)
            try await server.waitUntilShutDown()
        }
    }

    private func printSummary() throws {
        var configuration = Configuration()
        configuration.readonly = true
        let sensors = try DatabaseQueue(path: database, configuration: configuration).read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT gateway, sensor, count(*) AS count, min(value) AS least, max(value) AS most
                    FROM measurements GROUP BY gateway, sensor ORDER BY gateway, sensor
                    """
            )
        }
        for row in sensors {
            let (gateway, sensor, count): (String, String, Int) = (row["gateway"], row["sensor"], row["count"])
            let (least, most): (Double, Double) = (row["least"], row["most"])
            print("\(gateway) \(sensor): \(count) measurements from \(least) to \(most)")
        }
    }
}

/// The service's handler.
struct Collector: Example_Telemetry_V1_CollectorHandler {
    func report(_ measurement: Example_Telemetry_V1_Measurement, context: SessionContext) async throws {
        let names = [measurement.gateway, measurement.sensor]
        guard names.allSatisfy(Example_Telemetry_V1_Measurement.isName) else {
            throw SessionStatus(.invalidArgument, "The gateway or the sensor has no valid name.")
        }
        // The row and the mark that the measurement was processed are in one transaction. So a collector that is killed
        // has both or neither, and the gateway sends the measurement again only where it has neither.
        try await context.transaction { db in
            try db.execute(
                sql: "INSERT INTO measurements VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                arguments: [
                    measurement.gateway, Int64(clamping: measurement.line), measurement.time, measurement.sensor,
                    measurement.value,
                ]
            )
        }
    }
}
#else
@main enum TelemetryCollector {
    static func main() { print("It was built without the trait Store. Build it with --traits Store.") }
}
#endif
