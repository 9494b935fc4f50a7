/// The settings of requests.
public struct RequestConfiguration: Sendable {
    /// The most requests that may wait for their answers at once; further ones fail with `tooManyInFlight`. If answers
    /// are only identified by their order, a request that timed out or was cancelled counts until its answer comes.
    /// Values below 1 count as 1. Default: 1,024, each of which holds a task.
    public var maximumRequestCount = 1024

    /// Whether the program takes pushes. Default: true: then they wait, and delay the peer when there are too many
    /// (`ConnectionConfiguration.inboundWaterMarks`). With false they are dropped and counted on arrival.
    public var takesPushes = true

    /// Whether a silent peer is asked for a sign of life with the framing's own heartbeat, if it has one. Default:
    /// true.
    public var sendsHeartbeats = true

    /// Makes a configuration with the default values.
    public init() {}
}

/// The counts of requests, answers and pushes so far, for metrics and for finding faults.
public struct RequestStatistics: Sendable, Hashable {
    /// The number of requests that wait for their answers.
    public let waitingCount: Int
    /// The number of dropped answers to requests that had ended.
    public let lateAnswerCount: Int
    /// The number of dropped answers to unknown requests.
    public let unknownAnswerCount: Int
    /// The number of dropped pushes, because the program does not take them (`RequestConfiguration.takesPushes`).
    public let droppedPushCount: Int
}
