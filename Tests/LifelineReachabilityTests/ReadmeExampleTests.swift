import Foundation
import LifelineReachability
import Testing

extension NetworkMonitorTests {
    /// The README's section on reachability. Within that suite, which counts sockets: so they run one after the other.
    @Suite struct ReadmeExampleTests {}
}

extension NetworkMonitorTests.ReadmeExampleTests {
    /// As it stands there, but that it ends, and asks nobody but this machine. It needs no other import than the
    /// README's.
    private func example() async throws -> NetworkPath? {
        let monitor = NetworkMonitor()
        let server = try Endpoint("tcp://127.0.0.1:9")
        for await path in monitor.paths {
            print(path)
            print(path.mayReach(server))
            print(await monitor.reachability(of: server, probing: true))
            return path
        }
        return nil
    }

    @Test func theExampleRuns() async throws {
        #expect(try await example()?.isKnown == true)
    }

    @Test func theReadmeHasTheSame() throws {
        let file = URL(filePath: #filePath)
        let root = file.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let section = try #require(readme.components(separatedBy: "\n## Reachability\n").dropFirst().first)
        let code = section.components(separatedBy: "```")[1].split(separator: "\n").dropFirst().map { line in
            (line.components(separatedBy: "   //").first ?? "").trimmingCharacters(in: .whitespaces)
        }
        let own = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        #expect(code.count > 6)
        for line in code { #expect(own.contains(line.replacing("example.org:443", with: "127.0.0.1:9"))) }
        #expect(code.contains { $0.contains("example.org:443") })
    }
}
