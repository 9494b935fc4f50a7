/// Which requests for a WebSocket a server takes. Endpoints of other schemes do not look at it.
public struct WebSocketServerConfiguration: Sendable {
    /// Paths that a request may name, query excluded. Others are answered with 404.
    public enum Paths: Sendable, Hashable {
        /// The path of the endpoint that the server listens on.
        case endpoint
        /// Every path: the handler decides.
        case any
        /// These.
        case only(Set<String>)
    }

    /// The pages whose scripts may connect. Others are answered with 403.
    ///
    /// A browser sends its user's cookies and passwords with every request, also with those that a stranger's page
    /// makes, and names that page's origin. A program that is no browser names none, and is taken whatever this says.
    public enum Origins: Sendable, Hashable {
        /// Those of the host and port that the request is for.
        case sameHost
        /// All of them.
        case any
        /// These: `https://example.org`, with a port where it is not the scheme's.
        case only(Set<String>)
    }

    /// Which paths are taken. Default: the endpoint's.
    public var paths = Paths.endpoint

    /// Which pages may connect. Default: those of the same host.
    public var origins = Origins.sameHost

    /// The subprotocols that are spoken here, the best one first: the first one that a client offers is chosen. A
    /// client that offers none of them is taken without one. Default: none.
    public var subprotocols: [String] = []

    /// Says whether basic authorization (RFC 7617) lets somebody in; others are answered with 401. It may take its
    /// time, up to the connect timeout, and its task is cancelled when that is over or the client goes away meanwhile:
    /// what it waits for must end with that, else such clients can have it run more often than there are connections.
    /// Default: nil, which asks nobody.
    public var authorize: (@Sendable (WebSocketCredentials) async -> Bool)?

    /// What browsers show when they ask for the name and the password. Default: "Lifeline".
    public var realm = "Lifeline"

    /// Makes a configuration with the default values.
    public init() {}
}
