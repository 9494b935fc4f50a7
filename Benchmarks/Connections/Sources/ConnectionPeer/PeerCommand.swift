/// A line that the runner writes to a client. The client answers each with a line: `done`, and the results.
enum PeerCommand {
    case open(port: Int, connectionCount: Int)
    case oneWay(Payload, SendLimit)
    case fromServer(Payload, SendLimit)
    case bothWays(Payload, SendLimit)
    case echo(Payload, inFlight: Int, SendLimit)
    case each(Payload)
    case paced(Payload, perSecond: Int, nanoseconds: UInt64)
    case close

    /// `open PORT CONNECTIONS`, `one-way PAYLOAD MS COUNT`, `from-server PAYLOAD MS COUNT`,
    /// `both-ways PAYLOAD MS COUNT`, `echo PAYLOAD IN-FLIGHT MS COUNT`, `each PAYLOAD`, `paced PAYLOAD PER-SECOND MS`,
    /// or `close`. A payload is a number of bytes, or `chat`.
    init?(_ line: String) {
        let words = line.split(separator: " ").map(String.init)
        let numbers = words.dropFirst(words.first == "open" ? 1 : 2).map { Int($0) ?? -1 }
        guard let name = words.first, numbers.allSatisfy({ $0 >= 0 }) else { return nil }
        let payload = words.dropFirst().first.flatMap(Payload.init)
        switch (name, payload, numbers.count) {
        case ("open", _, 2): self = .open(port: numbers[0], connectionCount: numbers[1])
        case ("one-way", let payload?, 2): self = .oneWay(payload, SendLimit(numbers[0...]))
        case ("from-server", let payload?, 2): self = .fromServer(payload, SendLimit(numbers[0...]))
        case ("both-ways", let payload?, 2): self = .bothWays(payload, SendLimit(numbers[0...]))
        case ("echo", let payload?, 3): self = .echo(payload, inFlight: numbers[0], SendLimit(numbers[1...]))
        case ("each", let payload?, 0): self = .each(payload)
        case ("paced", let payload?, 2):
            self = .paced(payload, perSecond: numbers[0], nanoseconds: UInt64(numbers[1]) * 1_000_000)
        case ("close", _, 0): self = .close
        default: return nil
        }
    }

    func run(on client: any PeerClient) async throws -> Outcome {
        switch self {
        case .open(let port, let count): try await client.open(port: port, connectionCount: count)
        case .oneWay(let payload, let limit): return try await client.oneWay(payload, limit)
        case .fromServer(let payload, let limit): return try await client.fromServer(payload, limit)
        case .bothWays(let payload, let limit): return try await client.bothWays(payload, limit)
        case .echo(let payload, let inFlight, let limit):
            return try await client.echo(payload, inFlight: inFlight, limit)
        case .each(let payload): return try await client.each(payload)
        case .paced(let payload, let perSecond, let nanoseconds):
            return try await client.paced(payload, perSecond: perSecond, nanoseconds: nanoseconds)
        case .close: try await client.close()
        }
        return Outcome()
    }
}

extension SendLimit {
    fileprivate init(_ numbers: ArraySlice<Int>) {
        nanoseconds = UInt64(numbers[numbers.startIndex]) * 1_000_000
        messages = numbers[numbers.startIndex + 1]
    }
}
