/// Settings for which WebSocket requests a server accepts. Endpoints of other schemes ignore them.
public struct WebSocketServerConfiguration: Sendable {
    /// The paths that a request may have, query excluded. Others are answered with 404.
    public enum Paths: Sendable, Hashable {
        /// The path of the endpoint that the server listens on.
        case endpoint
        /// Every path: the handler decides.
        case any
        /// Only these paths.
        case only(Set<String>)
    }

    /// The pages whose scripts may connect. Others are answered with 403.
    ///
    /// A browser sends its user's cookies and passwords with every request, even with those of a foreign page, and
    /// sends that page's origin. Other programs send no origin, and are always accepted.
    public enum Origins: Sendable, Hashable {
        /// Pages of the host and port of the request.
        case sameHost
        /// All pages.
        case any
        /// Pages of these origins: `https://example.org`, with a port unless it is the scheme's default.
        case only(Set<String>)
    }

    /// The accepted paths. Default: that of the endpoint.
    public var paths = Paths.endpoint

    /// The pages that may connect. Default: those of the same host.
    public var origins = Origins.sameHost

    /// The subprotocols of this server, the best one first: the first one that a client offers is chosen. A client that
    /// offers none of them is accepted without one. Default: none.
    public var subprotocols: [String] = []

    /// Decides whether to let a client in by basic authorization (RFC 7617); others are answered with 401. It may take
    /// up to the connect timeout. Its task is cancelled when that is over or the client goes away, and it must end
    /// then: otherwise such clients can start it more often than there are connections. Default: nil, clients are not
    /// asked.
    public var authorize: (@Sendable (WebSocketCredentials) async -> Bool)?

    /// The text that browsers show when they ask for the name and the password. Default: "Lifeline".
    public var realm = "Lifeline"

    /// Makes a configuration with the default values.
    public init() {}
}
