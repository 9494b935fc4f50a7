internal import Glibc
internal import NIOConcurrencyHelpers

/// Ports that nobody listens on, and that stay so until a test listens there itself, also again and again.
///
/// A port that the system chose may be chosen again as soon as it is free, for somebody else's listener or for the own
/// end of a connection. These are below the ones that it chooses from.
package enum TestPort {
    private static let ports = NIOLockedValueBox(
        (10_000..<min(forOtherProcesses.lowerBound, systemsFirst)).shuffled()[...]
    )

    /// For processes that choose for themselves, and cannot know what this one handed out: these it never does. They,
    /// too, are below those that the system chooses from, which begin at 32,768 by default.
    package static let forOtherProcesses = 30_000..<32_000

    /// A port that was not handed out before, and is free.
    package static func next() throws -> UInt16 {
        while let port = ports.withLockedValue({ $0.popFirst() }) {
            // Another program may have it. (To listen there would be to occupy it: see `waitUntilFree`.)
            if try !KernelSocket.all.contains(where: { $0.localPort == port }) { return UInt16(port) }
        }
        throw RawSocket.Failure(call: "bind", code: EADDRINUSE)
    }

    /// A TCP endpoint with such a port, as text.
    package static func nextEndpoint() throws -> String { "tcp://127.0.0.1:\(try next())" }

    /// Waits until one can listen again on a port whose listener this process has closed. That one lives on in any
    /// child that is being started just then, until its exec closes it: in a third of all cases when some are all the
    /// time.
    ///
    /// - Throws: `EADDRINUSE` when this process has not closed it.
    package static func waitUntilFree(_ port: UInt16) async throws {
        while let listener = try KernelSocket.all.first(where: { $0.localPort == port && $0.state == .listening }) {
            if listener.isHeld() { throw RawSocket.Failure(call: "close", code: EADDRINUSE) }
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// Where the ports begin that the system chooses from.
    private static var systemsFirst: Int {
        guard let file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r") else { return 32_768 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 64)
        guard fgets(&line, Int32(line.count), file) != nil else { return 32_768 }
        return max(10_001, strtol(line, nil, 10))
    }
}
