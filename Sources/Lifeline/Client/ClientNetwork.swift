internal import LifelineCore
internal import LifelineReachability
internal import LifelineRuntime
internal import NIOConcurrencyHelpers

/// Whether there is a network that leads to a client's endpoint.
package enum NetworkStatus: Sendable, Hashable {
    /// A network came, came back, or changed.
    case available
    /// There is no network.
    case unavailable
}

/// Tells a client about the network.
package protocol ClientNetwork: Sendable {
    /// Whether there is a network before anything was reported.
    var isAvailableAtFirst: Bool { get }

    /// Reports the present status, and every change, until the task is cancelled. It may return when nothing can
    /// change.
    func watch(_ report: @Sendable (NetworkStatus) -> Void) async
}

/// A network that is always there: for endpoints within this machine, and for clients that do not watch the network.
package struct ConstantNetwork: ClientNetwork {
    package let isAvailableAtFirst = true

    package init() {}

    package func watch(_ report: @Sendable (NetworkStatus) -> Void) async {}
}

/// The network as the kernel reports it: available when a route leads to the endpoint over a working interface.
struct WatchedNetwork: ClientNetwork {
    /// One socket for all clients of the process; none while there is no client.
    private static let monitor = NetworkMonitor()

    let isAvailableAtFirst = false
    private let endpoint: Endpoint
    private let lookUp: @Sendable (Endpoint, _ timeout: Duration) async -> Reachability

    /// Returns nil when the endpoint is within this machine.
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
                    // Interfaces that lead nowhere, such as those of containers, come and go. They are not reported.
                    path.interfaces.filter(\.isUsable),
                    pathLeadsThere: pathLeadsThere,
                    isReachable: isReachable
                )
                if let news { report(news) }
            }
            group.cancelAll()
        }
    }

    /// Checks whether a path leads to the endpoint. Returns the arguments of `NetworkJudgement.checked`.
    func check(_ path: NetworkPath) async -> (pathLeadsThere: Bool, isReachable: Bool?) {
        switch path.prospect(of: endpoint) {
        case .none: return (false, false)
        case .good: return (true, true)
        case .byRoute:
            let reachability = await lookUp(endpoint, .seconds(10))
            return (true, reachability.isReachable || reachability.reason == .timedOut)
        case .byName:
            // Short, because a network that comes meanwhile is not seen before the timeout. Name servers mostly answer
            // at once; a single slow answer says nothing about the network.
            let reachability = await lookUp(endpoint, .milliseconds(250))
            return (true, reachability.reason == .timedOut ? nil : reachability.isReachable)
        }
    }
}

extension Doorbell {
    /// Waits until the bell rings, the timeout is over, or the task is cancelled. Only one task may wait at a time.
    fileprivate func wait(timeout: Duration) async {
        await withTaskGroup { group in
            group.addTask { await self.wait() }
            group.addTask { try? await Task.sleep(for: timeout) }
            await group.next()
            group.cancelAll()
        }
    }
}
