import Foundation
import LifelineCore
import LifelineReachability
import LifelineTestSupport
import Logging
import NIOCore
import NIOPosix
import Testing

/// The monitor in the process's own network namespace, in any state.
@Suite(.timeLimit(.minutes(1)), .serialized) struct NetworkMonitorTests {
    /// The sockets with these inodes that this process has open. (A child that another test is just starting may hold
    /// more.)
    private func ownDescriptors(ofSockets inodes: some Sequence<Substring>) throws -> [Int32] {
        let wanted = Set(inodes.map { "socket:[\($0)]" })
        return try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
            let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
            return link.map(wanted.contains) ?? false
        }.compactMap { Int32($0) }
    }

    /// Rows and columns of one of the kernel's tables of sockets.
    private func table(_ name: String) throws -> [[Substring]] {
        // String(contentsOfFile:) reads a file of the kernel only in part, because its size is unknown.
        let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/net/\(name)"))
        defer { try? file.close() }
        let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        return text.split(separator: "\n").dropFirst().map { $0.split(separator: " ") }
    }

    /// The netlink sockets of this process that subscribe to groups. Sockets that only make requests, as the C
    /// library's for names and those of other tests, do not belong to a monitor.
    private func netlinkSockets() throws -> [Int32] {
        // The fourth column is the groups that it subscribes to, the last one the inode.
        let sockets = try table("netlink").filter { UInt32($0[3], radix: 16) != 0 }
        return try ownDescriptors(ofSockets: sockets.compactMap(\.last))
    }

    private func netlinkSocketCount() throws -> Int { try netlinkSockets().count }

    /// With its own loop, so that the test can wait for the loop's remaining work.
    private func withMonitor(
        _ body: (_ monitor: NetworkMonitor, _ settle: () async throws -> Void) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let logger = Logger(label: "test")
        let monitor = NetworkMonitor(configuration: NetworkMonitorConfiguration(), logger: logger, group: group)
        try await body(monitor) {
            // Closing a socket takes a few turns.
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

    @Test func aLateSubscriberBeginsWithTheNewest() async throws {
        try await withMonitor { monitor, _ in
            var early = monitor.paths.makeAsyncIterator()
            let newest = await early.next()
            var late = monitor.paths.makeAsyncIterator()
            #expect(newest != nil)
            #expect(await late.next() == newest)
        }
    }

    @Test func childrenDoNotInheritTheSocket() async throws {
        try await withMonitor { monitor, settle in
            for await _ in monitor.paths {
                let descriptors = try netlinkSockets()
                #expect(!descriptors.isEmpty)
                #expect(descriptors.allSatisfy { fcntl($0, F_GETFD) & FD_CLOEXEC != 0 })
                break
            }
            try await settle()
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

    @Test func toWhoIsSlowAChangeAndItsReversalAreNone() async throws {
        let here = NetworkPath(interfaces: [])
        let stream = AsyncStream { continuation in
            for path in [here, here, .unknown, .unknown, here] { continuation.yield(path) }
            continuation.finish()
        }
        var iterator = NetworkPaths.AsyncIterator(base: stream.makeAsyncIterator())
        #expect(await iterator.next() == here)
        #expect(await iterator.next() == .unknown)
        #expect(await iterator.next(isolation: nil) == here)
        #expect(await iterator.next() == nil)
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

    /// The sockets that are still connecting to a port of this machine.
    private func connectingSocketCount(to port: Int) throws -> Int {
        let end = ":" + String(format: "%04X", port)
        // The third column is the other's address, the fourth the state, where 02 is SYN_SENT, and the tenth the inode.
        let sockets = try table("tcp").filter { $0[2].hasSuffix(end) && $0[3] == "02" }
        return try ownDescriptors(ofSockets: sockets.map { $0[9] }).count
    }

    @Test func aProbeThatIsGivenUpLeavesNoSocket() async throws {
        try await withMonitor { monitor, settle in
            let listener = try await RawSocket.listen(backlog: 0)
            let endpoint = Endpoint.tcp(host: "127.0.0.1", port: UInt16(listener.port))
            // The connection that the queue has room for.
            let first = try await RawSocket.connect(toPort: listener.port)
            let probe = Task { await monitor.reachability(of: endpoint, probing: true, timeout: .seconds(3_600)) }
            while try connectingSocketCount(to: listener.port) == 0 { await Task.yield() }
            probe.cancel()
            #expect(await probe.value.reason == .cancelled)
            try await settle()
            #expect(try connectingSocketCount(to: listener.port) == 0)

            let late = await monitor.reachability(of: endpoint, probing: true, timeout: .milliseconds(50))
            #expect(late.reason == .timedOut)
            try await settle()
            #expect(try connectingSocketCount(to: listener.port) == 0)
            withExtendedLifetime(first) {}
        }
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
