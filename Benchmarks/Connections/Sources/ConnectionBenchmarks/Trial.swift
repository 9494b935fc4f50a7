internal import BenchmarkReport

/// A client and a server that do something together.
struct Trial {
    let `case`: String
    let workload: String
    /// Which contender the client is of, and which the server.
    let client: String
    let server: String
    /// `echo` or `sink`: what the server does.
    let mode: String
    let kind: Kind

    enum Kind {
        /// A command of the client's, without its limit, on one connection.
        case steady(command: String)
        /// The same on several connections, each time on new processes.
        case manyConnections(command: String, count: Int)
        /// So many messages a second on each connection.
        case paced(perSecond: Int, count: Int)
        /// Memory of idle connections, before and after each has had a burst echoed.
        case memory(count: Int)
        /// Connecting and one echo.
        case accept(count: Int)
        /// The cost of the first part and of the last one of so many messages.
        case manyMessages(part: Int, parts: Int)
    }

    /// The client's name, or where the server is another's, both.
    var contender: String { ContenderName.pair(client, server) }
}

/// How long everything takes.
struct Scale {
    /// How often each trial has its turn.
    var rounds: Int
    /// Milliseconds for which a steady trial is measured, and before that warmed up.
    var measured: Int
    var warmUp: Int
    /// Milliseconds in which Java compiles what it runs.
    var javaWarmUp: Int
    /// Milliseconds for which messages are paced.
    var paced: Int
    /// How many connections stand idle, and how many are accepted.
    var idleConnections: Int
    var acceptedConnections: Int
    /// How many messages are sent where the cost of the first and of the last ones is compared.
    var manyMessages: Int

    static let thorough = Scale(
        rounds: 5,
        measured: 300,
        warmUp: 100,
        javaWarmUp: 10_000,
        paced: 1_000,
        idleConnections: 10_000,
        acceptedConnections: 1_000,
        manyMessages: 1_000_000
    )
    static let quick = Scale(
        rounds: 1,
        measured: 30,
        warmUp: 10,
        javaWarmUp: 1_000,
        paced: 200,
        idleConnections: 200,
        acceptedConnections: 100,
        manyMessages: 10_000
    )
}
