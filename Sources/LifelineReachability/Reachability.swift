internal import LifelineCore

/// Whether an endpoint can be reached, and why.
public struct Reachability: Sendable, Hashable {
    /// Why it can or cannot be reached. More may be added.
    public struct Reason: Sendable, Hashable, CustomStringConvertible {
        private enum Kind {
            case local, routed, accepted, unknown
            case nameNotFound, noRoute, interfaceDown, noCarrier, noSocket, refused, timedOut, probeFailed, cancelled
        }
        private let kind: Kind

        /// Reachable: it is within this machine.
        public static let local = Reason(kind: .local)
        /// Reachable as far as this machine can tell: there is a route, and its interface is up and has carrier.
        public static let routed = Reason(kind: .routed)
        /// Reachable: it accepted a connection.
        public static let accepted = Reason(kind: .accepted)
        /// Taken as reachable: the kernel does not tell of its routes, as in some sandboxes.
        public static let unknown = Reason(kind: .unknown)
        /// The name service does not know the host, or does not answer.
        public static let nameNotFound = Reason(kind: .nameNotFound)
        /// The kernel has no route to it, or one that refuses.
        public static let noRoute = Reason(kind: .noRoute)
        /// The interface that leads to it is down.
        public static let interfaceDown = Reason(kind: .interfaceDown)
        /// The interface that leads to it has no carrier. (The kernel keeps its routes then.)
        public static let noCarrier = Reason(kind: .noCarrier)
        /// There is no socket at the path.
        public static let noSocket = Reason(kind: .noSocket)
        /// Its host answers, and nothing listens on the port.
        public static let refused = Reason(kind: .refused)
        /// Nothing answered in time.
        public static let timedOut = Reason(kind: .timedOut)
        /// The connection failed for another reason, which `detail` names.
        public static let probeFailed = Reason(kind: .probeFailed)
        /// The task was cancelled before it was known.
        public static let cancelled = Reason(kind: .cancelled)

        /// Whether it means that the endpoint can be reached.
        public var isReachable: Bool {
            switch kind {
            case .local, .routed, .accepted, .unknown: true
            default: false
            }
        }

        /// The reason's name.
        public var description: String { "\(kind)" }
    }

    /// Why it can or cannot be reached.
    public let reason: Reason
    /// The address that the route is to, where there is one: of a name that has several, the first that can be reached.
    public let address: IPAddress?
    /// The interface that leads there, where there is one.
    public let interface: String?
    /// What the system said, where it said something.
    public let detail: String?

    /// Makes a result.
    public init(reason: Reason, address: IPAddress? = nil, interface: String? = nil, detail: String? = nil) {
        self.reason = reason
        self.address = address
        self.interface = interface
        self.detail = detail
    }

    /// Whether it can be reached.
    public var isReachable: Bool { reason.isReachable }
}

extension Reachability: CustomStringConvertible {
    /// All of it in a line: `routed: 192.0.2.7 over eth0`.
    public var description: String {
        var text = "\(reason)"
        if let address { text += ": \(address)" }
        if let interface { text += " over \(interface.escaped())" }
        if let detail { text += " (\(detail))" }
        return text
    }
}
