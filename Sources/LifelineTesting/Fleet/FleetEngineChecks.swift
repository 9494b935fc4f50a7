public import LifelineFleet
internal import NIOConcurrencyHelpers

/// Checks whether an engine keeps the rules of `FleetEngine`, for authors of engines.
///
///     @Test(arguments: FleetEngineChecks.all) func theEngineKeepsTheRules(_ check: FleetEngineCheck) async throws {
///         try await check.run { [MyEngine(url), MyEngine(url)] }
///     }
///
/// Each check makes groups of its own, so engines may use a store that is not empty.
public enum FleetEngineChecks {
    /// All checks.
    public static let all = groups + leases + presence + sessions

    private static let groups = [
        FleetEngineCheck("messages are counted") { fleet in
            let group = fleet.group()
            let first = try await fleet.append("one", to: group)
            try expect(first.offset == 1, "The first message of a group has the offset \(first.offset).")
            let second = try await fleet.append("two", to: group, by: 1)
            try expect(
                second == GroupPosition(epoch: first.epoch, offset: 2),
                "The message behind \(first) is at \(second)."
            )
            let other = try await fleet.append("one", to: fleet.group())
            try expect(other.offset == 1, "The first message of another group has the offset \(other.offset).")
        },
        FleetEngineCheck("messages of many tasks have places of their own") { fleet in
            let group = fleet.group()
            let positions = try await withThrowingTaskGroup { tasks in
                for number in 0..<200 {
                    tasks.addTask { try await fleet.append("\(number)", to: group, by: number % 2) }
                }
                return try await tasks.reduce(into: []) { $0.append($1) }
            }
            try expect(
                positions.map(\.offset).sorted() == Array(1...200),
                "200 messages are at \(Set(positions.map(\.offset)).count) places."
            )
            try expect(Set(positions.map(\.epoch)).count == 1, "They are of several epochs.")
            let page = try await fleet.engines[0].read(group, after: 0)
            try expect(page.newest.offset == 200, "The newest one is at \(page.newest).")
        },
        FleetEngineCheck("nodes that follow a group are told of its messages") { fleet in
            let group = fleet.group()
            for node in 0...1 {
                let page = try await fleet.engines[node].follow(group, fleet.nodes[node].name)
                try expect(page.newest.offset == 0 && page.messages.isEmpty, "A new group has messages.")
            }
            let texts = (1...50).map { "message \($0)" }
            for (index, text) in texts.enumerated() { try await fleet.append(text, to: group, by: index % 2) }
            for node in 0...1 { try await fleet.waitForNews(of: group, at: node, texts) }
        },
        FleetEngineCheck("a node is told what was there before it followed") { fleet in
            let group = fleet.group()
            for text in ["one", "two", "three"] { try await fleet.append(text, to: group) }
            let page = try await fleet.engines[1].follow(group, fleet.nodes[1].name)
            try expect(page.texts == ["1:one", "2:two", "3:three"], "It was told \(page.texts).")
            try expect(page.newest.offset == 3, "The newest one is at \(page.newest).")
        },
        FleetEngineCheck("a node that follows no longer is told nothing") { fleet in
            let (group, mark) = (fleet.group(), fleet.group())
            for name in [group, mark] { _ = try await fleet.engines[1].follow(name, fleet.nodes[1].name) }
            try await fleet.append("heard", to: group)
            try await fleet.waitForNews(of: group, at: 1, ["heard"])
            await fleet.engines[1].unfollow(group, fleet.nodes[1].name)
            try await fleet.append("not heard", to: group)
            try await fleet.append("mark", to: mark)
            try await fleet.waitForNews(of: mark, at: 1, ["mark"])
            try expect(fleet.news(of: group, at: 1) == ["heard"], "It was told \(fleet.news(of: group, at: 1)).")
        },
        FleetEngineCheck("reading begins behind an offset") { fleet in
            let group = fleet.group()
            for number in 1...5 { try await fleet.append("\(number)", to: group) }
            for offset: UInt64 in [0, 3, 5, 9] {
                let page = try await fleet.engines[1].read(group, after: offset)
                let offsets = page.messages.map(\.offset)
                try expect(offsets == (1...5).filter { $0 > offset }, "Behind \(offset) there are \(offsets).")
                try expect(page.newest.offset == 5, "The newest one is at \(page.newest).")
            }
        },
        FleetEngineCheck("the history has a number of messages") { fleet in
            let group = fleet.group()
            var history = GroupHistory()
            history.maximumCount = 3
            for number in 1...10 { try await fleet.append("\(number)", to: group, keeping: history) }
            let page = try await fleet.engines[0].read(group, after: 0)
            try expect(page.texts == ["8:8", "9:9", "10:10"], "It has \(page.texts).")
        },
        FleetEngineCheck("the history has a number of bytes") { fleet in
            let group = fleet.group()
            var history = GroupHistory()
            history.maximumByteCount = 1_000
            for _ in 1...10 { try await fleet.append(String(repeating: "x", count: 300), to: group, keeping: history) }
            let page = try await fleet.engines[0].read(group, after: 0)
            try expect(page.messages.map(\.offset) == [8, 9, 10], "It has \(page.messages.map(\.offset)).")
        },
        FleetEngineCheck("the history has an age") { fleet in
            let group = fleet.group()
            var history = GroupHistory()
            history.maximumAge = .milliseconds(100)
            try await fleet.append("old", to: group, keeping: history)
            try await Task.sleep(for: .milliseconds(50))
            let young = try await fleet.engines[0].read(group, after: 0)
            let age = young.messages.first?.age ?? .milliseconds(100)
            try expect(age >= .milliseconds(49), "A message of 50 ms has the age \(age).")
            try await Task.sleep(for: .milliseconds(100))
            let position = try await fleet.append("new", to: group, keeping: history)
            let page = try await fleet.engines[0].read(group, after: 0)
            try expect(page.texts.last == "\(position.offset):new", "It has \(page.texts).")
            try expect(page.messages.count == 1, "It has \(page.messages.count) messages.")
        },
        FleetEngineCheck("the newest positions of several groups are known") { fleet in
            let groups = [fleet.group(), fleet.group(), fleet.group()]
            for _ in 1...2 { try await fleet.append("x", to: groups[0]) }
            try await fleet.append("x", to: groups[2])
            let offsets = try await fleet.engines[1].newest(of: groups).map(\.offset)
            try expect(offsets == [2, 0, 1], "They are \(offsets).")
            let none = try await fleet.engines[1].newest(of: [])
            try expect(none.isEmpty, "No groups have \(none.count) positions.")
        },
        FleetEngineCheck("names and messages may be anything") { fleet in
            let base = fleet.group()
            let names = [
                "\(base){x}", "\(base) y", "\(base)\n\"*?[é", "\(base){", "\(base)}", "\(base):\u{0}",
                // Three names that look alike, or begin with an accent.
                "\(base)\u{E9}", "\(base)e\u{301}", "\u{301}\(base){\u{301}%7B",
            ]
            for name in names { _ = try await fleet.engines[1].follow(name, fleet.nodes[1].name) }
            let contents: [[UInt8]] = [Array(0...255), [], [UInt8](repeating: 0x0D, count: 100_000)]
            for name in names {
                for bytes in contents {
                    _ = try await fleet.engines[0].append(bytes, to: name, keeping: GroupHistory())
                }
            }
            for name in names {
                let page = try await fleet.engines[0].read(name, after: 0)
                try expect(page.messages.map(\.bytes) == contents, "A message has come back as another one.")
                try await fleet.waitForNews(of: name, at: 1, count: contents.count)
            }
        },
    ]
}

/// A rule and its check.
public struct FleetEngineCheck: Sendable, CustomStringConvertible {
    /// The rule.
    public let description: String
    private let body: @Sendable (CheckedFleet) async throws -> Void

    init(_ description: String, _ body: @escaping @Sendable (CheckedFleet) async throws -> Void) {
        (self.description, self.body) = (description, body)
    }

    /// Checks two engines that belong together, as in two processes. They may be the same engine.
    ///
    /// - Throws: `FleetEngineViolation`; errors of the engine.
    public func run(_ makeEngines: () async throws -> [any FleetEngine]) async throws {
        let fleet = CheckedFleet(try await makeEngines())
        try await withThrowingTaskGroup { tasks in
            for (engine, node) in zip(fleet.engines, fleet.nodes) {
                tasks.addTask { try await engine.run(node.name) }
            }
            tasks.addTask { try await body(fleet) }
            defer { tasks.cancelAll() }
            // Engines run until they are cancelled, so the check ends first, or an engine that fails.
            try await tasks.next()
        }
    }
}

/// A rule that an engine breaks.
public struct FleetEngineViolation: Error, CustomStringConvertible {
    /// The finding, in words.
    public let description: String
}

func expect(_ condition: Bool, _ description: @autoclosure () -> String) throws(FleetEngineViolation) {
    if !condition { throw FleetEngineViolation(description: description()) }
}

extension GroupPage {
    fileprivate var texts: [String] { messages.map { "\($0.offset):\(String(decoding: $0.bytes, as: UTF8.self))" } }
}

/// Two nodes, and the news that they receive.
struct CheckedFleet: Sendable {
    let engines: [any FleetEngine]
    let nodes: [FleetNode]
    private let heard: NIOLockedValueBox<[[String: [UInt64: String]]]>
    /// The members that each node was told of, by group.
    let changes: NIOLockedValueBox<[[String: [PresenceChange]]]>

    init(_ engines: [any FleetEngine]) {
        let heard = NIOLockedValueBox(engines.map { _ in [String: [UInt64: String]]() })
        let changes = NIOLockedValueBox(engines.map { _ in [String: [PresenceChange]]() })
        (self.engines, self.heard, self.changes) = (engines, heard, changes)
        nodes = engines.indices.map { index in
            FleetNode(name: "node \(index) \(UInt64.random(in: .min ... .max))") { news in
                switch news {
                case .message(let bytes, let position, let group):
                    let text = String(decoding: bytes, as: UTF8.self)
                    heard.withLockedValue { $0[index][group, default: [:]][position.offset] = text }
                case .presence(let change, let group):
                    changes.withLockedValue { $0[index][group, default: []].append(change) }
                // An empty one shows whether the node listens.
                case .told(let bytes) where !bytes.isEmpty:
                    heard.withLockedValue { heard in
                        let number = UInt64(heard[index]["told"]?.count ?? 0) + 1
                        heard[index]["told", default: [:]][number] = String(decoding: bytes, as: UTF8.self)
                    }
                case .told, .interrupted: break
                }
            }
        }
        for (engine, node) in zip(engines, nodes) { engine.attach(node) }
    }

    /// The name of an unused group.
    func group() -> String { "check/\(UInt64.random(in: .min ... .max))" }

    @discardableResult
    func append(
        _ text: String,
        to group: String,
        by engine: Int = 0,
        keeping history: GroupHistory = GroupHistory()
    ) async throws -> GroupPosition {
        try await engines[engine].append(Array(text.utf8), to: group, keeping: history)
    }

    /// The messages of a group that a node received, in the order of their offsets.
    func news(of group: String, at node: Int) -> [String] {
        heard.withLockedValue { ($0[node][group] ?? [:]).sorted { $0.key < $1.key }.map(\.value) }
    }

    func waitForNews(of group: String, at node: Int, _ texts: [String]) async throws {
        try await waitForNews(of: group, at: node, count: texts.count)
        let news = news(of: group, at: node)
        try expect(news == texts, "A node was told \(news).")
    }

    /// Waits for up to 10 s.
    func waitForNews(of group: String, at node: Int, count: Int) async throws {
        for _ in 0..<2_000 where news(of: group, at: node).count < count {
            try await Task.sleep(for: .milliseconds(5))
        }
        let told = news(of: group, at: node).count
        try expect(told == count, "A node was told of \(told) messages of \(count) within 10 s.")
    }
}
