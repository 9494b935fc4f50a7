internal import Glibc
internal import NIOPosix

/// A plain blocking socket: a peer that sends exactly the bytes of a test, and reads only on request.
///
/// Blocking calls run on threads of their own, so that they hold up neither event loops nor tasks.
package final class RawSocket: Sendable {
    package struct Failure: Error, Hashable {
        package let call: String
        package let code: Int32
    }

    private static let threads: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 32)
        pool.start()
        return pool
    }()

    package let descriptor: Int32

    private init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        _ = Glibc.close(descriptor)
    }

    // MARK: Making one

    package static func connect(toPort port: Int) async throws -> RawSocket {
        try await open(AF_INET) { try $0.call("connect", withAddress(port: port) { Glibc.connect($1, $0, $2) }($0)) }
    }

    package static func connect(toPath path: String) async throws -> RawSocket {
        try await open(AF_UNIX) { try $0.call("connect", withAddress(path: path) { Glibc.connect($1, $0, $2) }($0)) }
    }

    /// Listens on 127.0.0.1, on a port that the system chooses, or on one that another socket may just have used.
    package static func listen(port: Int = 0, backlog: Int32 = 16) async throws -> RawSocket {
        try await open(AF_INET) {
            var value: Int32 = 1
            try $0.call(
                "setsockopt",
                setsockopt($0.descriptor, SOL_SOCKET, SO_REUSEADDR, &value, socklen_t(MemoryLayout<Int32>.size))
            )
            try $0.call("bind", withAddress(port: port) { Glibc.bind($1, $0, $2) }($0))
            try $0.call("listen", Glibc.listen($0.descriptor, backlog))
        }
    }

    /// Listens on a Unix socket.
    package static func listen(path: String) async throws -> RawSocket {
        try await open(AF_UNIX) {
            try $0.call("bind", withAddress(path: path) { Glibc.bind($1, $0, $2) }($0))
            try $0.call("listen", Glibc.listen($0.descriptor, 16))
        }
    }

    /// Binds a Unix socket without listening. With `leavingFile`, this is the file that a killed server leaves.
    package static func bindAndAbandon(path: String) async throws {
        _ = try await open(AF_UNIX) { try $0.call("bind", withAddress(path: path) { Glibc.bind($1, $0, $2) }($0)) }
    }

    /// The port that a listening socket got.
    package var port: Int {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &length) }
        }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    package func accept() async throws -> RawSocket {
        try await run {
            let accepted = Glibc.accept(self.descriptor, nil, nil)
            try self.call("accept", accepted)
            // If a child held it, the peer would not see its end. (Glibc's module lacks accept4.)
            _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
            return RawSocket(descriptor: accepted)
        }
    }

    // MARK: Using it

    package func write(_ bytes: [UInt8]) async throws {
        try await run {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    send(self.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                try self.call("send", Int32(clamping: count))
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Reads until `count` bytes have arrived or the stream has ended.
    package func read(_ count: Int = .max) async throws -> [UInt8] {
        try await run {
            var bytes: [UInt8] = []
            var chunk = [UInt8](repeating: 0, count: 65536)
            while bytes.count < count {
                let received = recv(self.descriptor, &chunk, min(chunk.count, count - bytes.count), 0)
                try self.call("recv", Int32(clamping: received))
                if received == 0 { break }
                bytes += chunk[..<received]
            }
            return bytes
        }
    }

    /// Waits for bytes, and reads up to `count` of them; none at the end of the stream.
    package func readSome(_ count: Int) async throws -> [UInt8] {
        try await run {
            var bytes = [UInt8](repeating: 0, count: count)
            let received = recv(self.descriptor, &bytes, count, 0)
            try self.call("recv", Int32(clamping: received))
            return Array(bytes[..<received])
        }
    }

    /// The number of received bytes that were not read.
    package var unreadByteCount: Int {
        get throws {
            var count: Int32 = 0
            try call("ioctl", ioctl(descriptor, UInt(FIONREAD), &count))
            return Int(count)
        }
    }

    /// Acknowledges all received bytes, which the kernel may delay for about 40 ms.
    package func acknowledgeNow() throws {
        var value: Int32 = 1
        try call(
            "setsockopt",
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_QUICKACK, &value, socklen_t(MemoryLayout<Int32>.size))
        )
    }

    /// Ends this side of the connection.
    package func finish() throws {
        try call("shutdown", shutdown(descriptor, Int32(SHUT_WR)))
    }

    /// Resets the connection.
    package func reset() throws {
        // Connecting to an unspecified address disconnects (connect(2)); for TCP, at once and with a reset.
        var address = sockaddr()
        address.sa_family = sa_family_t(AF_UNSPEC)
        try call("connect", Glibc.connect(descriptor, &address, socklen_t(MemoryLayout<sockaddr>.size)))
    }

    /// Makes the release of the object reset the connection instead of ending the stream.
    package func resetWhenReleased() throws {
        var value = linger(l_onoff: 1, l_linger: 0)
        try call(
            "setsockopt",
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
        )
    }

    // MARK: -

    private static func open(_ family: Int32, _ body: @escaping @Sendable (RawSocket) throws -> Void) async throws
        -> RawSocket
    {
        try await threads.runIfActive {
            let descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            let socket = RawSocket(descriptor: descriptor)
            try socket.call("socket", descriptor)
            try body(socket)
            return socket
        }
    }

    private func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await RawSocket.threads.runIfActive(body)
    }

    private func call(_ name: String, _ result: Int32) throws {
        if result < 0 { throw Failure(call: name, code: errno) }
    }

    private typealias AddressCall = (UnsafePointer<sockaddr>, Int32, socklen_t) -> Int32

    private static func withAddress(port: Int, _ body: @escaping AddressCall) -> (RawSocket) -> Int32 {
        { socket in
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(port).bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            return withUnsafePointer(to: address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socket.descriptor, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
    }

    private static func withAddress(path: String, _ body: @escaping AddressCall) -> (RawSocket) -> Int32 {
        { socket in
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            return withUnsafePointer(to: address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socket.descriptor, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
    }
}
