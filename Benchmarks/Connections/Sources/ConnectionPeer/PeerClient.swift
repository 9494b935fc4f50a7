/// A contender's client. The commands of `PeerCommand` reach it one after the other.
protocol PeerClient {
    /// Connects to 127.0.0.1, one connection after the other.
    func open(port: Int, connectionCount: Int) async throws

    /// Sends on the first connection, and waits until the server has answered a last, empty message.
    func oneWay(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome

    /// Keeps `inFlight` messages on their way on every connection, to a server that echoes.
    func echo(_ payload: Payload, inFlight: Int, _ limit: SendLimit) async throws -> Outcome

    /// Makes a server send messages.
    func fromServer(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome

    /// Sends and receives concurrently, with a server that echoes, and with as many messages on their way as the two
    /// sides accept.
    func bothWays(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome

    /// Echoes one message on each connection, one after the other.
    func each(_ payload: Payload) async throws -> Outcome

    /// Sends `perSecond` messages a second on every connection, evenly spread, and awaits their echoes.
    func paced(_ payload: Payload, perSecond: Int, nanoseconds: UInt64) async throws -> Outcome

    func close() async throws

    /// The executor between opening and closing; nil: Swift's threads for tasks.
    var executor: (any TaskExecutor)? { get }
}

// Defaults for operations that a contender does not need.
extension PeerClient {
    var executor: (any TaskExecutor)? { nil }

    func oneWay(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome { throw Unsupported() }
    func echo(_ payload: Payload, inFlight: Int, _ limit: SendLimit) async throws -> Outcome { throw Unsupported() }
    func fromServer(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome { throw Unsupported() }
    func bothWays(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome { throw Unsupported() }
    func each(_ payload: Payload) async throws -> Outcome { throw Unsupported() }
    func paced(_ payload: Payload, perSecond: Int, nanoseconds: UInt64) async throws -> Outcome { throw Unsupported() }
}

/// For a contender that is a server only.
struct NoClient: PeerClient {
    func open(port: Int, connectionCount: Int) async throws { throw Unsupported() }
    func close() async throws {}
}

struct Unsupported: Error, CustomStringConvertible {
    var description: String { "This contender has no such command." }
}

/// When a run stops sending: after a time or a number of messages, whichever comes first. 0: no such limit.
struct SendLimit {
    var nanoseconds: UInt64
    var messages: Int

    func isReached(since begin: UInt64, sent: Int) -> Bool {
        // At least one is sent, because the count is a divisor.
        guard sent > 0 else { return false }
        return (messages > 0 && sent >= messages) || (nanoseconds > 0 && now() - begin >= nanoseconds)
    }
}

/// Counts the messages of a run until its limit is reached. The clock is read once in 64 messages.
struct SendCounter {
    private let limit: SendLimit
    private let begin = now()
    private(set) var count = 0

    init(_ limit: SendLimit) { self.limit = limit }

    /// Whether to send one more message. If so, it is counted.
    mutating func next() -> Bool {
        if count % 64 == 0, limit.isReached(since: begin, sent: count) { return false }
        count += 1
        return true
    }
}

/// The result of a run.
struct Outcome {
    var messages = 0
    var nanoseconds: UInt64 = 0
    /// Percentiles of the round trips in nanoseconds, if one message at a time was on its way.
    var median: UInt64 = 0
    var percentile99: UInt64 = 0
}

/// The round trips of a run in which one message at a time is on its way.
struct RoundTrips {
    private var nanoseconds: [UInt64] = []
    private var last: UInt64

    /// Nil keeps nothing.
    init?(inFlight: Int, begin: UInt64) {
        guard inFlight == 1 else { return nil }
        last = begin
        nanoseconds.reserveCapacity(1 << 16)
    }

    mutating func end() {
        let time = now()
        nanoseconds.append(time - last)
        last = time
    }

    func complete(_ outcome: inout Outcome) {
        let sorted = nanoseconds.sorted()
        guard !sorted.isEmpty else { return }
        outcome.median = sorted[sorted.count / 2]
        outcome.percentile99 = sorted[sorted.count * 99 / 100]
    }
}
