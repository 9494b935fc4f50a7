internal import CLifelineNetlink
internal import Glibc
internal import NIOCore

/// Asks the name service and the kernel about one host. It blocks, so it needs a thread that may block.
struct RouteLookup {
    /// An address of a host.
    struct Destination: Hashable {
        var address: IPAddress
        /// The interface of a link-local address; 0 for others.
        var interface: Int32
    }

    /// Returns the best result of any address of the host.
    static func reachability(ofHost host: String) -> Reachability {
        let destinations: [Destination]
        switch resolve(host) {
        case .success(let found): destinations = found
        case .failure(let error): return Reachability(reason: .nameNotFound, detail: error.message)
        }
        let socket: NetlinkSocket
        do throws(IOError) {
            socket = try NetlinkSocket.open(subscribingTo: .nothing, blocking: true)
        } catch {
            return Reachability(reason: .unknown, address: destinations.first?.address, detail: "\(error)")
        }
        defer { socket.close() }
        var worst: Reachability?
        for destination in destinations {
            let result = reachability(of: destination, by: socket)
            if result.isReachable { return result }
            worst = worst ?? result
        }
        return worst ?? Reachability(reason: .nameNotFound, detail: "The name has no address.")
    }

    private static func reachability(of destination: Destination, by socket: NetlinkSocket) -> Reachability {
        // The kernel routes ::ffff:192.0.2.1 as the IPv4 address that it stands for.
        let address = destination.address.unmapped
        func result(_ reason: Reachability.Reason, _ interface: String? = nil, _ detail: String? = nil) -> Reachability
        {
            Reachability(reason: reason, address: address, interface: interface, detail: detail)
        }
        do throws(NetlinkError) {
            var lookup = Exchange(socket: socket)
            let route = try lookup.route(to: address, over: destination.interface)
            guard let route, let index = route.interfaces.first else { return result(.noRoute) }
            if route.isLocal { return result(.local) }
            guard route.isUnicast else { return result(.noRoute) }
            guard let link = try lookup.link(index) else { return result(.noRoute) }
            if !link.isUp { return result(.interfaceDown, link.name) }
            return result(link.hasCarrier || link.isLoopback ? .routed : .noCarrier, link.name)
        } catch {
            guard case .refused(let number) = error, Exchange.noRouteErrors.contains(number) else {
                return result(.unknown, nil, "\(error)")
            }
            return result(.noRoute, nil, String(cString: strerror(number)))
        }
    }

    /// The reason why a name has no addresses.
    private struct ResolutionError: Error {
        let message: String
    }

    private static func resolve(_ host: String) -> Result<[Destination], ResolutionError> {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, nil, &hints, &list)
        guard status == 0 else { return .failure(ResolutionError(message: String(cString: gai_strerror(status)))) }
        defer { freeaddrinfo(list) }
        var destinations: [Destination] = []
        var next = list
        while let entry = next {
            if let destination = Destination(entry.pointee) { destinations.append(destination) }
            next = entry.pointee.ai_next
        }
        return .success(destinations)
    }
}

extension RouteLookup.Destination {
    init?(_ entry: addrinfo) {
        guard let socketAddress = UnsafeRawPointer(entry.ai_addr) else { return nil }
        switch entry.ai_family {
        case AF_INET:
            let v4 = socketAddress.loadUnaligned(as: sockaddr_in.self).sin_addr
            guard let address = withUnsafeBytes(of: v4, { IPAddress(version: .v4, bytes: $0.bytes) }) else {
                return nil
            }
            self.init(address: address, interface: 0)
        case AF_INET6:
            let v6 = socketAddress.loadUnaligned(as: sockaddr_in6.self)
            guard let address = withUnsafeBytes(of: v6.sin6_addr, { IPAddress(version: .v6, bytes: $0.bytes) }) else {
                return nil
            }
            self.init(address: address, interface: Int32(bitPattern: v6.sin6_scope_id))
        default:
            return nil
        }
    }
}

/// Requests and answers, one at a time. The kernel answers within the sending call, so there is no waiting.
private struct Exchange {
    let socket: NetlinkSocket
    private var sequence: UInt32 = 0

    init(socket: NetlinkSocket) {
        self.socket = socket
    }

    /// The errors of missing routes: none, the host is unreachable, prohibited, black hole, or no such interface.
    static let noRouteErrors: Set<Int32> = [ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL, ENODEV, ENETDOWN, ESRCH]

    mutating func route(to address: IPAddress, over interface: Int32) throws(NetlinkError) -> RouteRecord? {
        sequence += 1
        var found: RouteRecord?
        try request(.route(to: address, over: interface, sequence: sequence)) { (type, payload) throws(NetlinkError) in
            if type == RTM_NEWROUTE { found = try RouteRecord(payload: payload) }
        }
        return found
    }

    mutating func link(_ index: Int32) throws(NetlinkError) -> LinkRecord? {
        sequence += 1
        var found: LinkRecord?
        try request(.link(index, sequence: sequence)) { (type, payload) throws(NetlinkError) in
            if type == RTM_NEWLINK { found = try LinkRecord(payload: payload) }
        }
        return found
    }

    private func request(
        _ request: NetlinkRequest,
        _ body: (_ type: Int, _ payload: RawSpan) throws(NetlinkError) -> Void
    ) throws(NetlinkError) {
        guard send(socket.descriptor, request.bytes, request.bytes.count, 0) == request.bytes.count else {
            throw .refused(errno)
        }
        var answer = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(socket.descriptor, &answer, answer.count, Int32(MSG_DONTWAIT))
        guard count >= 0 else { throw .refused(errno) }
        let expected = sequence
        try answer.span.bytes.extracting(first: count).forEachNetlinkMessage { (header, payload) throws(NetlinkError) in
            guard header.port == socket.port, header.sequence == expected else { return }
            if Int(header.type) == Int(NLMSG_ERROR), let status = payload.loadNetlink(Int32.self), status != 0 {
                throw .refused(Int32(clamping: status.magnitude))
            }
            try body(Int(header.type), payload)
        }
    }
}
