/// The summary of the records of all servers.
package struct ServerSummary: Sendable {
    /// A sender of messages to one session.
    struct Teller: Hashable, Sendable {
        let sender: String
        let session: String
    }

    /// A sender of messages to one group.
    struct Pusher: Hashable, Sendable {
        let sender: String
        let group: String
    }

    /// The numbers of a client's messages, each with the time of its processing.
    private(set) var processed: [ClientMethod: [Int: [(time: Int64, number: Int)]]] = [:]
    /// The last accepted number of each client.
    private(set) var told: [Int: [Teller: Int]] = [:]
    private(set) var pushed: [Pusher: Int] = [:]
    private(set) var doubted: [Pusher: Set<Int>] = [:]
    private var openings: [String: [Int64]] = [:]

    package init() {}

    package mutating func add(_ entry: ServerEntry) {
        switch entry {
        case .processed(let method, let client, let number, let time):
            processed[method, default: [:]][client, default: []].append((time, number))
        case .told(let sender, let client, let session, let number):
            told[client, default: [:]][Teller(sender: sender, session: session)] = number
        case .pushed(let sender, let group, let number): pushed[Pusher(sender: sender, group: group)] = number
        case .doubted(let sender, let group, let number):
            doubted[Pusher(sender: sender, group: group), default: []].insert(number)
        case .opened(let server, let time): openings[server, default: []].append(time)
        }
    }

    /// The largest number of sessions that began at one server within some seconds, after a time in nanoseconds.
    package func mostOpenings(within seconds: Int, after start: Int64) -> Int {
        openings.values.map { Self.most($0.filter { $0 >= start }.sorted(), within: Int64(seconds) * 1_000_000_000) }
            .max() ?? 0
    }

    /// How many sessions began at all servers after a time in nanoseconds.
    package func openingCount(after start: Int64) -> Int {
        openings.values.reduce(0) { $0 + $1.count { $0 >= start } }
    }

    private static func most(_ times: [Int64], within length: Int64) -> Int {
        var (most, first) = (0, 0)
        for (index, time) in times.enumerated() {
            while time - times[first] >= length { first += 1 }
            most = max(most, index - first + 1)
        }
        return most
    }
}
