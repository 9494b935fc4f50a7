internal import LifelineCore
internal import LifelineRuntime
internal import NIOConcurrencyHelpers

extension MemoryFleetEngine {
    public func renewLease(of node: String, for duration: Duration) async throws {
        let now = clock.now
        leases.withLockedValue { leases in
            leases = leases.filter { $0.value > now }
            leases[node] = now + duration
        }
    }

    public func endLease(of node: String) async { leases.withLockedValue { _ = $0.removeValue(forKey: node) } }

    public func liveNodes(among nodes: [String]) async throws -> Set<String> {
        let now = clock.now
        return leases.withLockedValue { leases in Set(nodes.filter { leases[$0].map { $0 > now } ?? false }) }
    }
}
