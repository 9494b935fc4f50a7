internal import LifelineReachability

/// Makes one answer of two: the monitor's path, which is late because it waits until flaps are over, and the kernel's
/// route to the endpoint, which is asked for at any moment and so may be of the middle of a flap.
///
/// A flap that the monitor passes over has no news when it is over. So where the path leads to the endpoint and the
/// kernel knows no route, that is checked again soon, and counts only when it is found twice or with a path that is
/// news.
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
    /// name service that is slow for once answers one of three; a name service whose network is gone answers none.
    private static let unjudgedCheckLimit = 3
    /// As often as the monitor asks the kernel.
    private static let longestDelay = Duration.seconds(5)

    private var lastReport: NetworkStatus?
    private var lastInterfaces: [NetworkInterface]?
    private var doubt: Doubt?
    /// How often nobody could tell whether the path leads to the endpoint since it became another one; nil once
    /// somebody could.
    private var unjudgedCheckCount: Int?
    /// The time until the next check, if no event comes before. A route to a single host may come and go without one,
    /// as the path stays the same.
    private(set) var nextCheckDelay = longestDelay

    /// Returns what is to be reported.
    ///
    /// - Parameters:
    ///   - interfaces: those of the path that carry traffic.
    ///   - isReachable: whether there is a route, where the path leads to the endpoint; nil when nobody could tell,
    ///     which is no news at first, and none ever of a path that was found to lead there.
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
        // Other interfaces with the same result are news as long as they lead there.
        return status != lastReport || ((isNewPath || unjudgedCheckCount != nil) && status == .available) ? status : nil
    }
}
