import Foundation
import LifelineCore
import LifelineReachability
import LifelineRuntime
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

/// The assumptions of the netlink socket's driver.
@Suite struct NetlinkChannelTests {
    /// While the machine sleeps, the loop's clock stops, but the clock of deadlines runs.
    @Test func aTimerOfBeforeTheMachineSleptDoesNotKeepALaterOneFromRinging() {
        let loop = EmbeddedEventLoop()
        var timer = LoopTimer()
        var rings: [String] = []
        let start = MonotonicTime(nanoseconds: 0)
        timer.set(to: start + .seconds(10), now: start, on: loop) { rings.append("old") }
        let awake = start + .seconds(3_600)
        timer.set(to: awake + .milliseconds(100), now: awake, on: loop) { rings.append("new") }
        loop.advanceTime(by: .milliseconds(100))
        #expect(rings == ["new"])
        loop.advanceTime(by: .seconds(20))
        #expect(rings == ["new"])
    }

    @Test func aTimerThatIsDueEarlierIsKept() {
        let loop = EmbeddedEventLoop()
        var timer = LoopTimer()
        var rings: [String] = []
        let start = MonotonicTime(nanoseconds: 0)
        timer.set(to: start + .milliseconds(100), now: start, on: loop) { rings.append("early") }
        timer.set(to: start + .seconds(10), now: start, on: loop) { rings.append("late") }
        loop.advanceTime(by: .milliseconds(100))
        #expect(rings == ["early"])
    }

    private struct Refusal: Error {}

    /// NIO has closed the socket by then, and its number may be reused.
    @Test func aChannelThatFailsClosesNobodyElsesDescriptor() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let others = NIOLockedValueBox<[CInt]>([])
        let made = loop.flatSubmit {
            do {
                let socket = try NetlinkSocket.open(subscribingTo: .nothing, blocking: false)
                return try socket.makeChannel(on: loop) { channel in
                    // NIO does this on a failure, and leaves no moment to check in between.
                    channel.close(promise: nil)
                    // They get the lowest free numbers: that of the socket, unless another test is faster.
                    others.withLockedValue { $0 = (0..<8).map { _ in open("/dev/null", O_RDONLY | O_CLOEXEC) } }
                    throw Refusal()
                }
            } catch {
                return loop.makeFailedFuture(error)
            }
        }
        await #expect(throws: Refusal.self) { _ = try await made.get() }
        let descriptors = others.withLockedValue(\.self)
        #expect(descriptors.count == 8)
        for descriptor in descriptors {
            #expect(fcntl(descriptor, F_GETFD) >= 0)
            close(descriptor)
        }
        try await group.shutdownGracefully()
    }

    /// NIO refuses a regular file: there is no channel, and the caller closes the descriptors.
    @Test func socketsWithoutAChannelAreClosed() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let name = "lifeline-netlink-\(UUID())"
        let path = FileManager.default.temporaryDirectory.appending(path: name).path()
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        unlink(path)
        let made = loop.flatSubmit {
            let socket = NetlinkSocket(descriptor: descriptor, port: 0)
            do {
                return try socket.makeChannel(on: loop) { _ in }
            } catch {
                return loop.makeFailedFuture(error)
            }
        }
        await #expect(throws: (any Error).self) { _ = try await made.get() }
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))?.contains(name) == true
        }
        #expect(open.isEmpty)
        try await group.shutdownGracefully()
    }
}
