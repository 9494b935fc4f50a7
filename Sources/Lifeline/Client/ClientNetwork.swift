internal import LifelineCore
internal import LifelineReachability
internal import LifelineRuntime
internal import NIOConcurrencyHelpers

/// Whether there is a network that leads to a client's endpoint.
package enum NetworkStatus: Sendable, Hashable {
    /// It came, came back, or changed.
    case available
    /// There is none.
    case unavailable
}

/// What tells a client of the network.
package protocol ClientNetwork: Sendable {
    /// Whether there is a network before anything was reported.
    var isAvailableAtFirst: Bool { get }

    /// Reports what is, and every change, until the task is cancelled. It may return when nothing can change.
    func watch(_ report: @Sendable (NetworkStatus) -> Void) async
}

/// The network of an endpoint within this machine, and of those who do not want to watch it: it is always there.
package struct ConstantNetwork: ClientNetwork {
    package let isAvailableAtFirst = true

    package init() {}

    package func watch(_ report: @Sendable (NetworkStatus) -> Void) async {}
}

/// The network as the kernel tells of it: there when a route leads to the endpoint over an interface that works.
struct WatchedNetwork: ClientNetwork {
    /// One socket for all clients of the process; none while there is no client.
    private static let monitor = NetworkMonitor()

    let isAvailableAtFirst = false
    private let endpoint: Endpoint
    private let lookUp: @Sendable (Endpoint, _ timeout: Duration) async -> Reachability

    /// Nil when the endpoint is within this machine.
    ///
    /// - Parameter lookUp: asks the name service and the kernel's routes.
    init?(
        endpoint: Endpoint,
        lookUp: @escaping @Sendable (Endpoint, _ timeout: Duration) async -> Reachability = {
            await WatchedNetwork.monitor.reachability(of: $0, timeout: $1)
        }
    ) {
        if NetworkPath(interfaces: []).mayReach(endpoint) { return nil }
        self.endpoint = endpoint
        self.lookUp = lookUp
    }

    func watch(_ report: @Sendable (NetworkStatus) -> Void) async {
        let newest = NIOLockedValueBox<NetworkPath?>(nil)
        let bell = Doorbell()
        await withTaskGroup { group in
            group.addTask {
                for await path in WatchedNetwork.monitor.paths {
                    newest.withLockedValue { $0 = path }
                    bell.ring()
                }
            }
            var judgement = NetworkJudgement()
            while !Task.isCancelled {
                await bell.wait(timeout: judgement.nextCheckDelay)
                guard let path = newest.withLockedValue({ $0 }) else { continue }
                let (pathLeadsThere, isReachable) = await check(path)
                if Task.isCancelled { break }
                let news = judgement.checked(
                    // Interfaces that lead nowhere come and go, as those of containers do: that is no news.
                    path.interfaces.filter(\.isUsable),
                    pathLeadsThere: pathLeadsThere,
                    isReachable: isReachable
                )
                if let news { report(news) }
            }
            group.cancelAll()
        }
    }

    /// Checks whether a path leads to the endpoint. Returns what `NetworkJudgement.checked` takes.
    func check(_ path: NetworkPath) async -> (pathLeadsThere: Bool, isReachable: Bool?) {
        switch path.prospect(of: endpoint) {
        case .none: return (false, false)
        case .good: return (true, true)
        case .byRoute:
            let reachability = await lookUp(endpoint, .seconds(10))
            return (true, reachability.isReachable || reachability.reason == .timedOut)
        case .byName:
            // Short, for a network that comes meanwhile is not seen before. What knows such a name mostly answers at
            // once; one that is slow for once says nothing of the network.
            let reachability = await lookUp(endpoint, .milliseconds(250))
            return (true, reachability.reason == .timedOut ? nil : reachability.isReachable)
        }
    }
}

extension Doorbell {
    /// Waits until it is rung, the timeout is over, or the task is cancelled. For one task at a time.
    fileprivate func wait(timeout: Duration) async {
        await withTaskGroup { group in
            group.addTask { await self.wait() }
            group.addTask { try? await Task.sleep(for: timeout) }
            await group.next()
            group.cancelAll()
        }
    }
}
