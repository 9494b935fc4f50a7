internal import Glibc
internal import Lifeline
internal import LifelineCore
package import LifelineRuntime
internal import NIOConcurrencyHelpers

/// The engine of a single process, whose data ends with the process. Several servers of the process may share it.
public final class MemoryFleetEngine: FleetEngine {
    private struct Entry {
        let offset: UInt64
        let time: MonotonicTime
        let bytes: [UInt8]
    }

    private struct Group {
        let epoch: UInt64
        var newest: UInt64 = 0
        var entries = FIFO<Entry>()
        var byteCount = 0
        var maximumAge = Duration.zero
        /// The names of the nodes that follow the group.
        var followers: Set<String> = []

        var position: GroupPosition { GroupPosition(epoch: epoch, offset: newest) }

        mutating func append(_ bytes: [UInt8], keeping history: GroupHistory, now: MonotonicTime) -> GroupPosition {
            newest += 1
            maximumAge = history.maximumAge
            entries.append(Entry(offset: newest, time: now, bytes: bytes))
            byteCount += bytes.count
            forgetOld(history.maximumCount, history.maximumByteCount, now: now)
            return position
        }

        mutating func forgetOld(_ maximumCount: Int = .max, _ maximumByteCount: Int = .max, now: MonotonicTime) {
            while let first = entries.first,
                entries.count > maximumCount || byteCount > maximumByteCount || now - first.time > maximumAge
            {
                byteCount -= entries.removeFirst().bytes.count
            }
        }

        func page(after offset: UInt64, now: MonotonicTime) -> GroupPage {
            let messages = entries.numbers.map { entries[$0] }.filter { $0.offset > offset }
                .map { GroupPage.Message(offset: $0.offset, age: now - $0.time, bytes: $0.bytes) }
            return GroupPage(newest: position, messages: messages)
        }
    }

    private struct State {
        var nodes: [String: FleetNode] = [:]
        var groups: [ExactName: Group] = [:]
        var lastEpoch: UInt64
        /// The number of groups at which empty ones are searched for.
        var sweepCount = 1_024

        mutating func withGroup<Result>(_ name: String, _ body: (inout Group) -> Result) -> Result {
            let name = ExactName(name)
            if groups[name] == nil { lastEpoch += 1 }
            return body(&groups[name, default: Group(epoch: lastEpoch)])
        }

        /// Forgets groups without followers and messages: when they come back, their positions are of a new epoch.
        mutating func sweep(now: MonotonicTime) {
            guard groups.count > sweepCount else { return }
            for name in groups.keys {
                groups[name]?.forgetOld(now: now)
                if let group = groups[name], group.followers.isEmpty, group.entries.isEmpty { groups[name] = nil }
            }
            sweepCount = max(2 * groups.count, 1_024)
        }
    }

    let clock: any ClientClock
    /// The times until which nodes count as alive.
    let leases = NIOLockedValueBox<[String: MonotonicTime]>([:])
    let sessions = NIOLockedValueBox(MemorySessions())
    let presences = NIOLockedValueBox(MemoryPresence())
    private let state: NIOLockedValueBox<State>

    /// Makes an engine without any groups.
    public convenience init() { self.init(clock: BootTimeClock()) }

    package init(clock: any ClientClock) {
        self.clock = clock
        // Greater than the epochs of an earlier process, and different from those of another process that began in the
        // same second.
        let epoch = UInt64(max(time(nil), 0)) << 20 | .random(in: 0..<(1 << 20))
        state = NIOLockedValueBox(State(lastEpoch: epoch))
    }

    public func attach(_ node: FleetNode) { state.withLockedValue { $0.nodes[node.name] = node } }

    func node(_ name: String) -> FleetNode? { state.withLockedValue { $0.nodes[name] } }

    public func detach(_ node: String) {
        presences.withLockedValue { $0.unwatchAll(node) }
        state.withLockedValue { state in
            state.nodes[node] = nil
            for group in state.groups.keys { state.groups[group]?.followers.remove(node) }
        }
    }

    /// Whether several nodes of the process use it.
    public var isShared: Bool { state.withLockedValue { $0.nodes.count > 1 } }

    public func tell(_ message: [UInt8], to node: String) async throws -> Bool {
        guard let node = state.withLockedValue({ $0.nodes[node] }) else { return false }
        node.receive(.told(message))
        return true
    }

    public func run(_ node: String) async throws { try await Latch<Void>().wait() }

    public func append(
        _ message: [UInt8],
        to group: String,
        keeping history: GroupHistory
    ) async throws -> GroupPosition {
        let now = clock.now
        return state.withLockedValue { state in
            let (position, followers) = state.withGroup(group) {
                ($0.append(message, keeping: history, now: now), $0.followers)
            }
            // Under the lock, so that news comes in the order of the offsets.
            for name in followers { state.nodes[name]?.receive(.message(message, at: position, in: group)) }
            if followers.isEmpty { state.sweep(now: now) }
            return position
        }
    }

    public func follow(_ group: String, _ node: String) async throws -> GroupPage {
        let now = clock.now
        return state.withLockedValue { state in
            state.withGroup(group) { group in
                group.followers.insert(node)
                group.forgetOld(now: now)
                return group.page(after: 0, now: now)
            }
        }
    }

    public func unfollow(_ group: String, _ node: String) async {
        let now = clock.now
        state.withLockedValue { state in
            _ = state.groups[ExactName(group)]?.followers.remove(node)
            state.sweep(now: now)
        }
    }

    public func read(_ group: String, after offset: UInt64) async throws -> GroupPage {
        let now = clock.now
        return state.withLockedValue { state in
            state.withGroup(group) { group in
                group.forgetOld(now: now)
                return group.page(after: offset, now: now)
            }
        }
    }

    public func newest(of groups: [String]) async throws -> [GroupPosition] {
        state.withLockedValue { state in groups.map { name in state.withGroup(name) { $0.position } } }
    }
}
