// The names that trials, results and goals share.

/// The cases that are measured for connections.
public enum CaseName {
    public static let oneWay = "one-way"
    public static let oneWayChat = "one-way-chat"
    public static let roundTrip = "round-trip"
    public static let requests = "requests"
    public static let pushes = "pushes"
    public static let pushesFromServer = "pushes-from-server"
    public static let serverStream = "server-stream"
    public static let clientStream = "client-stream"
    public static let bothWays = "both-ways"
    public static let thousandConnections = "connections-1000"
    public static let idleMemory = "idle-memory"
    public static let accept = "accept"
    public static let growthWithMessages = "growth-messages"
    public static let growthWithConnections = "growth-connections"

    public static func echo(inFlight: Int) -> String { "echo-\(inFlight)" }
}

/// The messages of a case, or the number of connections.
public enum WorkloadName {
    public static let chat = "chat"
    public static let tenPerSecond = "10/s each"
    public static let idle = "idle"
    public static let afterBurst = "after 60 KB"
    public static let firstEcho = "and echo"

    public static func messages(of size: Int) -> String { size < 1024 ? "\(size) B" : "\(size / 1024) KiB" }
    public static func calls(inFlight: Int) -> String { "\(inFlight) in flight" }
    public static func connections(_ count: Int) -> String { "\(count) open" }
}

/// The contenders.
public enum ContenderName {
    public static let frames = "lifeline-frames"
    public static let batches = "lifeline-batches"
    public static let messages = "lifeline-messages"
    public static let chat = "lifeline-chat"
    public static let requests = "lifeline-requests"
    public static let requestsOnLoop = "lifeline-requests-on-loop"
    public static let requestsSynchronous = "lifeline-requests-synchronous"
    public static let requestsOnLoopSynchronous = "lifeline-requests-on-loop-synchronous"
    public static let pushes = "lifeline-pushes"
    public static let pushesSynchronous = "lifeline-pushes-synchronous"
    public static let pushesBatches = "lifeline-pushes-batches"
    public static let streams = "lifeline-streams"
    public static let streamsBatches = "lifeline-streams-batches"
    public static let c = "c"
    public static let nio = "nio"
    public static let netty = "netty"
    public static let nettyFlushEach = "netty-flush-each"
    public static let grpcStream = "grpc-stream"
    public static let grpcCalls = "grpc-calls"

    /// A client and a server: the client's name, or both names if they differ.
    public static func pair(_ client: String, _ server: String) -> String {
        client == server ? client : "\(client) to \(server)"
    }

    /// All contenders in the order of display, Lifeline first. The first one that takes part in a case is the reference
    /// for the others.
    public static let all = [
        batches, messages, chat, requests, requestsOnLoop, requestsSynchronous, requestsOnLoopSynchronous,
        pushes, pushesSynchronous, pushesBatches, streams, streamsBatches,
        pair(batches, c), pair(c, batches), pair(c, frames),
        c, nio, pair(c, nio), pair(netty, c), pair(nettyFlushEach, c), grpcStream, grpcCalls,
    ]
}
