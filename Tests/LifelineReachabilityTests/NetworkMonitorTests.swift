import Foundation
import LifelineCore
import LifelineReachability
import LifelineTestSupport
import Logging
import NIOCore
import NIOPosix
import Testing

/// The monitor in the process's own network namespace, whatever that is like.
@Suite(.timeLimit(.minutes(1)), .serialized) struct NetworkMonitorTests {
    /// Sockets of the netlink family that this process has open.
    private func netlinkSocketCount() throws -> Int {
        let own = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }
        let inodes = try String(contentsOfFile: "/proc/net/netlink", encoding: .utf8).split(separator: "\n").dropFirst()
            .compactMap { $0.split(separator: " ").last }
        return own.filter { link in inodes.contains { link == "socket:[\($0)]" } }.count
    }

    /// With a loop of its own, so that what the loop still has to do can be waited for.
    private func withMonitor(
        _ body: (_ monitor: NetworkMonitor, _ settle: () async throws -> Void) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let logger = Logger(label: "test")
        let monitor = NetworkMonitor(configuration: NetworkMonitorConfiguration(), logger: logger, group: group)
        try await body(monitor) {
            // What closes a socket takes a few turns.
            for _ in 0..<10 { try await group.next().submit {}.get() }
        }
        try await group.shutdownGracefully()
    }

    @Test func theFirstPathComesAtOnceAndTheSocketGoesWithTheLastIterator() async throws {
        try await withMonitor { monitor, settle in
            let before = try netlinkSocketCount()
            for await path in monitor.paths {
                #expect(path.isKnown)
                #expect(path.interfaces.contains { $0.kind == .loopback })
                #expect(try netlinkSocketCount() > before)
                break
            }
            try await settle()
            #expect(try netlinkSocketCount() == before)
        }
    }

    @Test func manyIteratorsShareASocket() async throws {
        try await withMonitor { monitor, settle in
            let before = try netlinkSocketCount()
            var first = monitor.paths.makeAsyncIterator()
            let path = await first.next()
            let descriptors = try netlinkSocketCount()
            var second = monitor.paths.makeAsyncIterator()
            #expect(await second.next() == path)
            #expect(try await monitor.currentPath == path)
            #expect(try netlinkSocketCount() == descriptors)
            _ = consume first
            _ = consume second
            try await settle()
            #expect(try netlinkSocketCount() == before)
        }
    }

    @Test func cancellationEndsTheSequence() async throws {
        try await withMonitor { monitor, settle in
            let before = try netlinkSocketCount()
            let started = AsyncStream.makeStream(of: Void.self)
            let task = Task {
                var count = 0
                for await _ in monitor.paths {
                    count += 1
                    started.continuation.finish()
                }
                return count
            }
            for await _ in started.stream {}
            task.cancel()
            #expect(await task.value == 1)
            try await settle()
            #expect(try netlinkSocketCount() == before)
        }
    }

    @Test func aTaskThatIsCancelledAlreadyLeavesNothing() async throws {
        try await withMonitor { monitor, settle in
            let before = try netlinkSocketCount()
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await monitor.currentPath
            }
            await #expect(throws: CancellationError.self) { try await task.value }
            try await settle()
            #expect(try netlinkSocketCount() == before)
        }
    }

    @Test func startingAndStoppingManyTimesLeavesNothing() async throws {
        try await withMonitor { monitor, settle in
            let before = try netlinkSocketCount()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<8 {
                    group.addTask { for _ in 0..<50 { _ = try await monitor.currentPath } }
                }
                try await group.waitForAll()
            }
            try await settle()
            #expect(try netlinkSocketCount() == before)
        }
    }

    // MARK: Endpoints

    @Test func endpointsWithinTheMachine() async throws {
        let monitor = NetworkMonitor()
        #expect(await monitor.reachability(of: try Endpoint("tcp://127.0.0.1:1")).reason == .local)
        #expect(await monitor.reachability(of: try Endpoint("tcp://localhost:1")).reason == .local)
        #expect(await monitor.reachability(of: try Endpoint("tcp://[::ffff:127.0.0.1]:1")).reason == .local)
        #expect(await monitor.isReachable(try Endpoint("tcp://127.0.0.1:1")))
    }

    @Test func aProbeIsAcceptedOrRefused() async throws {
        let monitor = NetworkMonitor()
        let listener = try await RawSocket.listen()
        let open = Endpoint.tcp(host: "127.0.0.1", port: UInt16(listener.port))
        let accepted = await monitor.reachability(of: open, probing: true)
        #expect(accepted.reason == .accepted)
        #expect(accepted.address == IPAddress("127.0.0.1"))
        // A port that nothing listens on: no user's program gets port 1.
        let refused = await monitor.reachability(of: try Endpoint("tcp://127.0.0.1:1"), probing: true)
        #expect(refused.reason == .refused)
        #expect(!refused.isReachable)
    }

    @Test func aUnixSocketIsThereOrNot() async throws {
        let monitor = NetworkMonitor()
        try await withTemporaryPath { path in
            #expect(await monitor.reachability(of: .unix(path: path)).reason == .noSocket)
            makeFile(at: path)
            #expect(await monitor.reachability(of: .unix(path: path)).reason == .noSocket)
            removeFile(at: path)
            try await RawSocket.bindAndAbandon(path: path)
            #expect(await monitor.reachability(of: .unix(path: path)).reason == .local)
            #expect(await monitor.reachability(of: .unix(path: path), probing: true).reason == .refused)
        }
        let long = Endpoint.unix(path: "/" + String(repeating: "x", count: 200))
        #expect(await monitor.reachability(of: long, probing: true).reason == .noSocket)
    }

    @Test func aNameThatDoesNotExist() async throws {
        let monitor = NetworkMonitor()
        let result = await monitor.reachability(of: try Endpoint("tcp://no-such-name.invalid:1"))
        #expect([.nameNotFound, .timedOut].contains(result.reason))
        #expect(!result.isReachable)
    }

    @Test func cancellationIsAnAnswer() async throws {
        let monitor = NetworkMonitor()
        let endpoint = try Endpoint("tcp://127.0.0.1:1")
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await monitor.reachability(of: endpoint, probing: true)
        }
        #expect(await task.value.reason == .cancelled)
    }
}
