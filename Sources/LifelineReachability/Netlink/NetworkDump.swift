internal import CLifelineNetlink

/// Asks the kernel for links, then addresses, then routes, and then, if routes have no interfaces, nexthop objects, and
/// combines the answers. It does no I/O: the owner of the socket sends the requests and passes in the answers.
package struct NetworkDump: Sendable {
    /// The subject of one request.
    package enum Subject: UInt32, Sendable, CaseIterable {
        case links, addresses, routes, nexthops
    }

    private var subject = Subject.links
    private let firstSequence: UInt32
    private var tables = NetworkTables()
    private var isInterrupted = false

    /// The request to send first.
    package var firstRequest: NetlinkRequest { .dump(.links, sequence: firstSequence) }

    /// - Parameter number: the number of this dump on its socket. It distinguishes its answers from those to earlier
    ///   dumps.
    package init(number: UInt32) {
        firstSequence = number &* UInt32(Subject.allCases.count) &+ 1
    }

    /// The step after a message.
    package enum Action: Hashable, Sendable {
        /// Wait for the next message.
        case none
        /// Send this request.
        case send(NetlinkRequest)
        /// The dump is done. The result is consistent unless something changed meanwhile.
        case finish(NetworkTables, isConsistent: Bool)
    }

    /// Handles an answer to this socket.
    ///
    /// - Throws: `NetlinkError` when it is malformed or the kernel refused: then the dump cannot go on.
    package mutating func received(_ header: NetlinkHeader, _ payload: RawSpan) throws(NetlinkError) -> Action {
        guard header.sequence == firstSequence &+ subject.rawValue else { return .none }
        if header.isInterrupted { isInterrupted = true }
        switch (Int(header.type), subject) {
        case (RTM_NEWLINK, .links):
            try tables.add(LinkRecord(payload: payload))
        case (RTM_NEWADDR, .addresses):
            if let address = try AddressRecord(payload: payload) { try tables.add(address) }
        case (RTM_NEWROUTE, .routes):
            if let route = try RouteRecord(payload: payload) { try tables.add(route) }
        case (RTM_NEWNEXTHOP, .nexthops):
            if let nexthop = try NexthopRecord(payload: payload) { try tables.add(nexthop) }
        case (Int(NLMSG_DONE), _), (Int(NLMSG_ERROR), _):
            // Both begin with a negative error number, or 0 on success.
            let status = payload.loadNetlink(Int32.self) ?? 0
            if status != 0 { throw .refused(Int32(clamping: status.magnitude)) }
            return next()
        default:
            break
        }
        return .none
    }

    private mutating func next() -> Action {
        guard let next = Subject(rawValue: subject.rawValue + 1), next != .nexthops || tables.awaitsNexthops else {
            tables.resolveNexthops()
            return .finish(tables, isConsistent: !isInterrupted)
        }
        subject = next
        return .send(.dump(next, sequence: firstSequence &+ next.rawValue))
    }
}
