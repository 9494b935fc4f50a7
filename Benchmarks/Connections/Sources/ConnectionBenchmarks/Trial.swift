internal import BenchmarkReport

/// A measurement with a client and a server.
struct Trial {
    let `case`: String
    let workload: String
    /// The contender of the client, and that of the server.
    let client: String
    let server: String
    /// `echo` or `sink`: what the server does.
    let mode: String
    let kind: Kind

    enum Kind {
        /// A command of the client, without its limit, on one connection.
        case steady(command: String)
        /// The same on several connections, each time on new processes.
        case manyConnections(command: String, count: Int)
        /// A number of messages a second on each connection.
        case paced(perSecond: Int, count: Int)
        /// Memory of idle connections, before and after each has had a burst echoed.
        case memory(count: Int)
        /// Connecting and one echo.
        case accept(count: Int)
        /// The cost of the first and the last part of a number of messages.
        case manyMessages(part: Int, parts: Int)
    }

    /// The client's name, or both names if they differ.
    var contender: String { ContenderName.pair(client, server) }
}

/// The durations and counts of a run.
struct Scale {
    /// The number of rounds.
    var rounds: Int
    /// Milliseconds of measuring a steady trial, and of warming up before.
    var measured: Int
    var warmUp: Int
    /// Milliseconds for Java to compile its code.
    var javaWarmUp: Int
    /// Milliseconds for which messages are paced.
    var paced: Int
    /// The number of idle connections, and of accepted ones.
    var idleConnections: Int
    var acceptedConnections: Int
    /// The number of messages for comparing the cost of the first and the last ones.
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
