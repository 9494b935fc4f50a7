internal import LifelineCore
internal import LifelineReachability
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

    /// As often as the monitor asks the kernel.
    private static let lookAgainInterval = Duration.seconds(5)

    let isAvailableAtFirst = false
    private let endpoint: Endpoint

    /// Nil when the endpoint is within this machine.
    init?(endpoint: Endpoint) {
        if NetworkPath(interfaces: []).mayReach(endpoint) { return nil }
        self.endpoint = endpoint
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
            // A route to a single host may come and go while the path stays what it is.
            group.addTask {
                while (try? await Task.sleep(for: Self.lookAgainInterval)) != nil { bell.ring() }
            }
            var last: (status: NetworkStatus, interfaces: [NetworkInterface])?
            while !Task.isCancelled {
                await bell.wait()
                guard let path = newest.withLockedValue({ $0 }) else { continue }
                let status = await status(of: path)
                if Task.isCancelled { break }
                // Interfaces that lead nowhere come and go, as those of containers do: that is no news.
                let interfaces = path.interfaces.filter(\.isUsable)
                if let last, last == (status, interfaces) { continue }
                if status == .available || last?.status != status { report(status) }
                last = (status, interfaces)
            }
            group.cancelAll()
        }
    }

    private func status(of path: NetworkPath) async -> NetworkStatus {
        guard path.mayReach(endpoint) else { return .unavailable }
        // A name is not looked up: where no name service answers, to try is better than to wait.
        guard case .tcp(let host, _) = endpoint.address, IPAddress(host) != nil else { return .available }
        let reachability = await WatchedNetwork.monitor.reachability(of: endpoint)
        return reachability.isReachable || reachability.reason == .timedOut ? .available : .unavailable
    }
}
