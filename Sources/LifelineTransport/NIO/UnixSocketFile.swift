internal import FoundationEssentials
internal import Glibc
internal import LifelineCore
internal import NIOCore

/// The file of a Unix socket that a server listens on.
struct UnixSocketFile: Sendable {
    private let path: String
    private let identity: Identity

    /// Distinguishes a file from another one made later at the same path.
    private struct Identity: Equatable {
        private let device: String?
        private let inode: String?
        // File systems reuse an inode number at once. A change of mode does not change this time.
        private let modified: Date?

        // With Foundation, because the C module in which the compiler finds `stat` depends on the modules loaded
        // before.
        init(_ attributes: [FileAttributeKey: Any]) {
            // Numbers are integers here, and objects in a program that links all of Foundation.
            device = attributes[.systemNumber].map { "\($0)" }
            inode = attributes[.systemFileNumber].map { "\($0)" }
            modified = attributes[.modificationDate] as? Date
        }
    }

    /// Makes a value for the file that is at `path` now.
    init?(listeningAt path: String) {
        guard let attributes = UnixSocketFile.attributes(of: path) else { return nil }
        self.path = path
        identity = Identity(attributes)
    }

    /// Removes the file, unless another one has replaced it.
    func remove() {
        guard UnixSocketFile(listeningAt: path)?.identity == identity else { return }
        unlink(path)
    }

    /// The longest path that a socket address has room for, in bytes: 107 on Linux, and a NUL.
    static var maximumPathLength: Int { MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1 }

    /// Throws when no socket address has room for `path`.
    private static func checkLength(of path: String) throws(ConnectionError) {
        guard path.utf8.count <= maximumPathLength else {
            throw ConnectionError(
                code: .unixSocketPathTooLong,
                message: "\(path) has \(path.utf8.count) bytes; a Unix socket's path can have \(maximumPathLength). "
                    + "Choose a shorter one, such as one in /run or /tmp."
            )
        }
    }

    /// Returns the address of a path. NIO's own conversion accepts 103 bytes, the least of all systems.
    static func socketAddress(of path: String) throws(ConnectionError) -> SocketAddress {
        try checkLength(of: path)
        return SocketAddress(address(of: path))
    }

    /// Makes a socket that listens at `path`, for NIO to take over. NIO itself would remove the path's file when it
    /// closes, even if another process owns it by then.
    static func listen(at path: String, backlog: Int32) throws -> CInt {
        try removeStale(at: path)
        let descriptor = try makeSocket()
        let isListening = withAddress(of: path) {
            Glibc.bind(descriptor, $0, $1) == 0 && Glibc.listen(descriptor, backlog) == 0
        }
        guard isListening else {
            let error = IOError(errnoCode: errno, reason: "bind")
            _ = Glibc.close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Makes room for a new socket at `path`: removes a socket without a listener, which a killed server leaves behind,
    /// and refuses when something else is there.
    ///
    /// Two servers that start on a stale file at the same moment can both pass; the later one then owns the path.
    private static func removeStale(at path: String) throws(ConnectionError) {
        try checkLength(of: path)
        guard let attributes = attributes(of: path) else { return }
        guard attributes[.type] as? FileAttributeType == .typeSocket else {
            throw ConnectionError(
                code: .addressInUse,
                message: "\(path) exists and is no socket; it was left alone. Remove it or choose another path."
            )
        }
        guard isStale(path) else {
            throw ConnectionError(
                code: .addressInUse,
                message: "A server is listening on \(path). Stop it or choose another path."
            )
        }
        unlink(path)
    }

    /// Returns whether the kernel refuses a connection because nothing listens. Any other answer counts as alive.
    private static func isStale(_ path: String) -> Bool {
        guard let descriptor = try? makeSocket() else { return false }
        defer { _ = Glibc.close(descriptor) }
        return withAddress(of: path) { Glibc.connect(descriptor, $0, $1) } != 0 && errno == ECONNREFUSED
    }

    private static func makeSocket() throws -> CInt {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        if descriptor < 0 { throw IOError(errnoCode: errno, reason: "socket") }
        return descriptor
    }

    private static func withAddress<Result>(
        of path: String,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        withUnsafePointer(to: address(of: path)) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// Returns the address of a path whose length was checked.
    private static func address(of path: String) -> sockaddr_un {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return address
    }

    /// Returns the attributes of the file itself, without following links; nil when there is none.
    private static func attributes(of path: String) -> [FileAttributeKey: Any]? {
        try? FileManager.default.attributesOfItem(atPath: path)
    }
}
