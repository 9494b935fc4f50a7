import LifelineClientTestSupport
import LifelineCore
import LifelineReachability
import Testing

@testable import Lifeline

@Suite struct NetworkJudgementTests {
    private let ethernet = [NetworkJudgementTests.interface("eth0")]

    private static func interface(_ name: String) -> NetworkInterface {
        NetworkInterface(
            name: name,
            index: 2,
            kind: .ethernet,
            isUp: true,
            hasCarrier: true,
            addresses: [],
            usesIPv4: true,
            usesIPv6: false,
            hasDefaultRoute: true
        )
    }

    /// A judgement that has reported a network.
    private func available() -> NetworkJudgement {
        var judgement = NetworkJudgement()
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: true) == .available)
        #expect(judgement.nextCheckDelay == .seconds(5))
        return judgement
    }

    @Test func anUnchangedNetworkIsNoNews() {
        var judgement = available()
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: true) == nil)
        #expect(judgement.checked([], pathLeadsThere: false, isReachable: false) == .unavailable)
        #expect(judgement.checked([], pathLeadsThere: false, isReachable: false) == nil)
        #expect(judgement.nextCheckDelay == .seconds(5))
    }

    @Test func otherInterfacesThatLeadThereAreNews() {
        var judgement = available()
        let wifi = ethernet + [Self.interface("wlan0")]
        #expect(judgement.checked(wifi, pathLeadsThere: true, isReachable: true) == .available)
        #expect(judgement.checked([], pathLeadsThere: false, isReachable: false) == .unavailable)
        // A change of the other IP version, which the endpoint does not use.
        #expect(judgement.checked(ethernet, pathLeadsThere: false, isReachable: false) == nil)
    }

    /// The monitor does not report a flap this short, so the client has to check again by itself.
    @Test func aCheckDuringAFlapIsNoNewsAndIsRepeatedSoon() {
        var judgement = available()
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: false) == nil)
        #expect(judgement.nextCheckDelay == .milliseconds(120))
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: true) == nil)
        #expect(judgement.nextCheckDelay == .seconds(5))
    }

    @Test func aRouteThatStaysAwayIsNewsAndItsReturnIsCheckedFor() {
        var judgement = available()
        _ = judgement.checked(ethernet, pathLeadsThere: true, isReachable: false)
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: false) == .unavailable)
        var delays = [judgement.nextCheckDelay]
        for _ in 0..<6 {
            #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: false) == nil)
            delays.append(judgement.nextCheckDelay)
        }
        #expect(delays == [240, 480, 960, 1920, 3840, 5000, 5000].map { .milliseconds($0) })
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: true) == .available)
        // The count of checks begins again.
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: false) == nil)
        #expect(judgement.nextCheckDelay == .milliseconds(120))
    }

    /// The monitor has waited until the network was stable.
    @Test func aNewPathWithoutARouteIsNewsAtOnce() {
        var judgement = available()
        let other = [Self.interface("wlan0")]
        #expect(judgement.checked(other, pathLeadsThere: true, isReachable: false) == .unavailable)
        #expect(judgement.nextCheckDelay == .milliseconds(120))
        var first = NetworkJudgement()
        #expect(first.checked(ethernet, pathLeadsThere: true, isReachable: false) == .unavailable)
    }

    @Test func anUnknownStateIsNoNewsAndIsCheckedAgainSoon() {
        var judgement = available()
        var delays: [Duration] = []
        for _ in 0..<9 {
            #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: nil) == nil)
            delays.append(judgement.nextCheckDelay)
        }
        #expect(Array(delays.prefix(3)) == [120, 240, 480].map { .milliseconds($0) })
        // A change needs two checks that agree.
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: false) == nil)
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: false) == .unavailable)
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: nil) == nil)
        #expect(judgement.checked(ethernet, pathLeadsThere: true, isReachable: true) == .available)
    }

    /// A cable was pulled. Only a container bridge is left, and the name service was behind the cable.
    @Test func aNewPathWithUnknownStateIsUnavailableInTheEnd() {
        var judgement = available()
        let bridge = [Self.interface("docker0")]
        let news = (0..<6).map { _ in judgement.checked(bridge, pathLeadsThere: true, isReachable: nil) }
        #expect(news == [nil, nil, .unavailable, nil, nil, nil])
        #expect(judgement.checked(bridge, pathLeadsThere: true, isReachable: true) == .available)
    }

    /// The path may have been tried in vain meanwhile.
    @Test func thePathIsNewsAlsoIfItsStateWasUnknownAtFirst() {
        for path in [ethernet, [Self.interface("docker0")]] {
            var judgement = available()
            let bridge = [Self.interface("docker0")]
            #expect(judgement.checked(bridge, pathLeadsThere: true, isReachable: nil) == nil)
            #expect(judgement.checked(path, pathLeadsThere: true, isReachable: true) == .available)
            #expect(judgement.checked(path, pathLeadsThere: true, isReachable: true) == nil)
        }
    }

    /// A name, while there is only a bridge to containers.
    @Test(arguments: [(.timedOut, nil), (.nameNotFound, false), (.routed, true)] as [(Reachability.Reason, Bool?)])
    func aSlowNameServiceSaysNothing(reason: Reachability.Reason, isReachable: Bool?) async throws {
        let endpoint = Endpoint.tcp(host: "db.example", port: 1)
        let network = try #require(WatchedNetwork(endpoint: endpoint) { _, _ in Reachability(reason: reason) })
        let bridge = NetworkInterface(
            name: "docker0",
            index: 3,
            kind: .ethernet,
            isUp: true,
            hasCarrier: true,
            addresses: [],
            usesIPv4: true,
            usesIPv6: false,
            hasDefaultRoute: false,
            isHostOnly: true
        )
        let found = await network.check(NetworkPath(interfaces: [bridge]))
        #expect(found.pathLeadsThere && found.isReachable == isReachable)
    }
}
