/// A place to connect to or to listen on: `tcp://host:port` or `unix:///path`.
public struct Endpoint: Sendable, Hashable {
    package enum Address: Sendable, Hashable {
        case tcp(host: String, port: Int)
        case unix(path: String)
    }

    package let address: Address

    package init(address: Address) {
        self.address = address
    }

    /// A TCP port of a host, which is a name, an IPv4 address, or an IPv6 address without brackets.
    ///
    /// Port 0 is for listening only: the system chooses a free one.
    public static func tcp(host: String, port: UInt16) -> Endpoint {
        Endpoint(address: .tcp(host: host, port: Int(port)))
    }

    /// A Unix-domain stream socket in the file system.
    public static func unix(path: String) -> Endpoint {
        Endpoint(address: .unix(path: path))
    }

    /// The TCP port, nil for a Unix socket.
    public var port: Int? {
        if case .tcp(_, let port) = address { port } else { nil }
    }
}

extension Endpoint: CustomStringConvertible {
    /// The endpoint in the form that `init(_:)` reads.
    public var description: String {
        switch address {
        case .tcp(let host, let port): host.contains(":") ? "tcp://[\(host)]:\(port)" : "tcp://\(host):\(port)"
        case .unix(let path): "unix://\(path)"
        }
    }
}
