/// How requests behave.
public struct RequestConfiguration: Sendable {
    /// How many requests may wait for their answers at once; further ones fail with `tooManyInFlight`. Where answers
    /// are told apart by their order only, a request that timed out or was cancelled counts until its answer comes.
    /// Values below 1 count as 1. Default: 1,024, each of which holds a task.
    public var maximumRequestCount = 1024

    /// Whether somebody takes the pushes. Default: true: then they wait, and hold the peer up when there are too many
    /// (`ConnectionConfiguration.inboundWaterMarks`). With false they are dropped and counted as they come.
    public var takesPushes = true

    /// Whether a peer that is silent is asked for a sign of life with the framing's own heartbeat, where it has one.
    /// Default: true.
    public var sendsHeartbeats = true

    /// Makes a configuration with the default values.
    public init() {}
}

/// The counts of requests, answers and pushes so far, for metrics and for the search for faults.
public struct RequestStatistics: Sendable, Hashable {
    /// Requests that wait for their answers.
    public let waitingCount: Int
    /// Answers to requests that had ended. They were dropped.
    public let lateAnswerCount: Int
    /// Answers to requests that nobody had made. They were dropped.
    public let unknownAnswerCount: Int
    /// Pushes that were dropped because nobody takes them (`RequestConfiguration.takesPushes`).
    public let droppedPushCount: Int
}
