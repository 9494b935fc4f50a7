import LifelineReachability
import Testing

extension NetworkMonitorTests {
    /// Runs the code of the article about the network. It is in this suite, which counts sockets, so that the tests run
    /// one after the other.
    @Suite struct ArticleTests {}
}

extension NetworkMonitorTests.ArticleTests {
    /// Replaces the article's endpoint by one of this machine.
    private func Endpoint(_ text: String) throws -> LifelineReachability.Endpoint {
        _ = try LifelineReachability.Endpoint(text)
        return .tcp(host: "127.0.0.1", port: 9)
    }

    /// The article's code, but with an end. It needs only the article's import.
    private func example() async throws -> NetworkPath? {
        // snippet.network-monitor
        let monitor = NetworkMonitor()
        let server = try Endpoint("tcp://example.org:443")
        for await path in monitor.paths {  // watches while a task iterates
            print(path)  // satisfied, IPv4, default route: eth0 (ethernet) 192.0.2.2
            print(path.mayReach(server))  // from the known state, without a probe
            print(await monitor.reachability(of: server, probing: true))  // accepted, refused, noCarrier, …
            // snippet.hide
            return path
            // snippet.show
        }
        // snippet.end
        return nil
    }

    @Test func theExampleRuns() async throws {
        #expect(try await example()?.isKnown == true)
    }
}
