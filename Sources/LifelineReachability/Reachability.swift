internal import LifelineCore

/// Whether an endpoint can be reached, and why.
public struct Reachability: Sendable, Hashable {
    /// The reason why an endpoint can or cannot be reached. More may be added.
    public struct Reason: Sendable, Hashable, CustomStringConvertible {
        private enum Kind {
            case local, routed, accepted, unknown
            case nameNotFound, noRoute, interfaceDown, noCarrier, noSocket, refused, timedOut, probeFailed, cancelled
        }
        private let kind: Kind

        /// Reachable: the endpoint is within this machine.
        public static let local = Reason(kind: .local)
        /// Reachable as far as this machine can tell: there is a route, and its interface is up and has carrier.
        public static let routed = Reason(kind: .routed)
        /// Reachable: the endpoint accepted a connection.
        public static let accepted = Reason(kind: .accepted)
        /// Counts as reachable: the kernel does not report its routes, as in some sandboxes.
        public static let unknown = Reason(kind: .unknown)
        /// The name service does not know the host, or does not answer.
        public static let nameNotFound = Reason(kind: .nameNotFound)
        /// The kernel has no route to the endpoint, or one that refuses.
        public static let noRoute = Reason(kind: .noRoute)
        /// The interface that leads to the endpoint is down.
        public static let interfaceDown = Reason(kind: .interfaceDown)
        /// The interface that leads to the endpoint has no carrier. (The kernel then keeps its routes.)
        public static let noCarrier = Reason(kind: .noCarrier)
        /// There is no socket at the path.
        public static let noSocket = Reason(kind: .noSocket)
        /// The host answers, but nothing listens on the port.
        public static let refused = Reason(kind: .refused)
        /// Nothing answered in time.
        public static let timedOut = Reason(kind: .timedOut)
        /// The connection failed for another reason, which `detail` names.
        public static let probeFailed = Reason(kind: .probeFailed)
        /// The task was cancelled before there was a result.
        public static let cancelled = Reason(kind: .cancelled)

        /// Whether the reason means that the endpoint can be reached.
        public var isReachable: Bool {
            switch kind {
            case .local, .routed, .accepted, .unknown: true
            default: false
            }
        }

        /// The reason's name.
        public var description: String { "\(kind)" }
    }

    /// The reason why the endpoint can or cannot be reached.
    public let reason: Reason
    /// The address of the route, if there is one; for a name with several, the first that can be reached.
    public let address: IPAddress?
    /// The interface that leads there, if there is one.
    public let interface: String?
    /// The system's text, if there is one.
    public let detail: String?

    /// Makes a result.
    public init(reason: Reason, address: IPAddress? = nil, interface: String? = nil, detail: String? = nil) {
        self.reason = reason
        self.address = address
        self.interface = interface
        self.detail = detail
    }

    /// Whether the endpoint can be reached.
    public var isReachable: Bool { reason.isReachable }
}

extension Reachability: CustomStringConvertible {
    /// The result in a line: `routed: 192.0.2.7 over eth0`.
    public var description: String {
        var text = "\(reason)"
        if let address { text += ": \(address)" }
        if let interface { text += " over \(interface.escaped())" }
        if let detail { text += " (\(detail))" }
        return text
    }
}
