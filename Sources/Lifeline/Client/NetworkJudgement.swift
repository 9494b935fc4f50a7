internal import LifelineReachability

/// Combines two answers into one: the monitor's path, which is late because the monitor waits until flaps are over, and
/// the kernel's route to the endpoint, which is asked for at any moment and so may show the middle of a flap.
///
/// The monitor reports nothing at the end of a flap that it has passed over. So when the path leads to the endpoint but
/// the kernel knows no route, that is checked again soon. It counts only when it is found twice, or together with a new
/// path.
struct NetworkJudgement {
    /// Why a path that leads to the endpoint is not enough.
    private enum Doubt {
        case noRoute
        /// The name service did not answer in time.
        case unknown
    }

    /// Longer than the monitor waits for the end of a flap.
    private static let shortestDelay = Duration.milliseconds(120)
    /// The number of checks without a result after which a new path counts as one that does not lead to the endpoint. A
    /// name service with one slow answer answers at least one check of three; without a network it answers none.
    private static let unjudgedCheckLimit = 3
    /// The interval at which the monitor asks the kernel.
    private static let longestDelay = Duration.seconds(5)

    private var lastReport: NetworkStatus?
    private var lastInterfaces: [NetworkInterface]?
    private var doubt: Doubt?
    /// The number of checks without a result since the path changed; nil once a check had a result.
    private var unjudgedCheckCount: Int?
    /// The time until the next check, if no event comes before. A route to a single host may come and go without one,
    /// as the path stays the same.
    private(set) var nextCheckDelay = longestDelay

    /// Returns the status to report.
    ///
    /// - Parameters:
    ///   - interfaces: the interfaces of the path that carry traffic.
    ///   - isReachable: whether there is a route, where the path leads to the endpoint; nil when the check had no
    ///     result. A missing result is not reported at first, and never for a path that was found to lead there.
    mutating func checked(
        _ interfaces: [NetworkInterface],
        pathLeadsThere: Bool,
        isReachable: Bool?
    ) -> NetworkStatus? {
        let isNewPath = interfaces != lastInterfaces
        lastInterfaces = interfaces
        let lastDoubt = doubt
        doubt = isReachable == nil ? .unknown : pathLeadsThere && isReachable == false ? .noRoute : nil
        nextCheckDelay =
            switch (lastDoubt, doubt) {
            case (_, nil): Self.longestDelay
            case (nil, _): Self.shortestDelay
            case (_, _): min(nextCheckDelay * 2, Self.longestDelay)
            }
        var isReachable = isReachable
        if isReachable == nil {
            if isNewPath { unjudgedCheckCount = 0 }
            unjudgedCheckCount? += 1
            if let unjudgedCheckCount, unjudgedCheckCount >= Self.unjudgedCheckLimit { isReachable = false }
        }
        guard let isReachable else { return nil }
        if doubt == .noRoute, lastDoubt != .noRoute, !isNewPath, lastReport == .available { return nil }
        let status = isReachable ? NetworkStatus.available : .unavailable
        defer { (lastReport, unjudgedCheckCount) = (status, nil) }
        // Other interfaces with the same result are reported as long as they lead there.
        return status != lastReport || ((isNewPath || unjudgedCheckCount != nil) && status == .available) ? status : nil
    }
}
