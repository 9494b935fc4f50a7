internal import Glibc
internal import NIOConcurrencyHelpers

/// Ports on which nobody listens until a test does, even repeatedly.
///
/// The system may choose a free port again at once, for another listener or for the local end of a connection. The
/// ports here are below the range from which it chooses.
package enum TestPort {
    private static let ports = NIOLockedValueBox(
        (10_000..<min(forOtherProcesses.lowerBound, systemsFirst)).shuffled()[...]
    )

    /// Ports for processes that choose one themselves, and cannot know which ones this process handed out. It never
    /// hands these out. They are also below the system's range, which begins at 32,768 by default.
    package static let forOtherProcesses = 30_000..<32_000

    /// A free port that was not handed out before.
    package static func next() throws -> UInt16 {
        while let port = ports.withLockedValue({ $0.popFirst() }) {
            // Another program may use it. (A trial listener would occupy it: see `waitUntilFree`.)
            if try !KernelSocket.all.contains(where: { $0.localPort == port }) { return UInt16(port) }
        }
        throw RawSocket.Failure(call: "bind", code: EADDRINUSE)
    }

    /// A TCP endpoint with such a port, as text.
    package static func nextEndpoint() throws -> String { "tcp://127.0.0.1:\(try next())" }

    /// Waits until a port is free again whose listener this process has closed. A child that is just being started
    /// still has the listener, until its exec closes it. This happens in a third of all cases while children are
    /// started all the time.
    ///
    /// - Throws: `EADDRINUSE` when this process has not closed it.
    package static func waitUntilFree(_ port: UInt16) async throws {
        while let listener = try KernelSocket.all.first(where: { $0.localPort == port && $0.state == .listening }) {
            if listener.isHeld() { throw RawSocket.Failure(call: "close", code: EADDRINUSE) }
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// The first port of the range from which the system chooses.
    private static var systemsFirst: Int {
        guard let file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r") else { return 32_768 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 64)
        guard fgets(&line, Int32(line.count), file) != nil else { return 32_768 }
        return max(10_001, strtol(line, nil, 10))
    }
}
