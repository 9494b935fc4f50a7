internal import CLifelineNetlink

/// A route in a dump, or the answer to a look-up (`RTM_NEWROUTE`).
package struct RouteRecord: Hashable, Sendable {
    package var version: IPAddress.Version
    /// Nil for a default route, which has no attribute for it.
    package var destination: IPAddress?
    package var prefixLength: UInt8
    /// The outgoing interfaces: several for a multipath route, none for a route that leads nowhere.
    package var interfaces: [Int32]
    package var gateway: IPAddress?
    /// The number of the nexthop object (`ip nexthop`) that it uses. The kernel also reports the interfaces, unless
    /// `net.ipv4.nexthop_compat_mode` is 0.
    package var nexthop: UInt32?
    package var metric: UInt32
    /// The kernel's `RT_TABLE_…`.
    package var table: UInt32
    /// The kernel's `RTN_…`.
    package var type: UInt8
    /// Whether this is a route for a single destination. Look-ups return such routes, and dumps of IPv4 have the
    /// exceptions to routes that the kernel has learnt, which may outlast the route.
    package var isCached: Bool

    package init(
        version: IPAddress.Version,
        destination: IPAddress?,
        prefixLength: UInt8,
        interfaces: [Int32],
        gateway: IPAddress? = nil,
        nexthop: UInt32? = nil,
        metric: UInt32 = 0,
        table: UInt32,
        type: UInt8,
        isCached: Bool = false
    ) {
        (self.version, self.destination, self.prefixLength) = (version, destination, prefixLength)
        (self.interfaces, self.gateway, self.nexthop, self.metric) = (interfaces, gateway, nexthop, metric)
        (self.table, self.type, self.isCached) = (table, type, isCached)
    }

    /// Whether the route leads anywhere. Others refuse: unreachable, prohibited, a black hole, or `throw`, which ends a
    /// look-up in its table.
    package var isUnicast: Bool { type == UInt8(RTN_UNICAST) }
    /// Whether the route leads to the machine itself.
    package var isLocal: Bool { type == UInt8(RTN_LOCAL) }
    package var isDefault: Bool { prefixLength == 0 }

    /// Whether the route leads to other machines beyond the link.
    package var isUsable: Bool {
        guard isUnicast, !isCached, table != UInt32(RT_TABLE_LOCAL.rawValue) else { return false }
        guard let destination else { return true }
        return !destination.isLinkLocal && !destination.isMulticast && !destination.isLoopback
    }
}

extension RouteRecord {
    /// Reads a route; nil for protocols other than IPv4 and IPv6.
    package init?(payload: RawSpan) throws(NetlinkError) {
        guard let header = payload.loadNetlink(rtmsg.self) else { throw .truncatedPayload(type: UInt16(RTM_NEWROUTE)) }
        guard let version = IPAddress.Version(family: header.rtm_family) else { return nil }
        guard Int(header.rtm_dst_len) <= version.byteCount * 8 else { throw .invalidPrefixLength(header.rtm_dst_len) }
        var route = RouteRecord(
            version: version,
            destination: nil,
            prefixLength: header.rtm_dst_len,
            interfaces: [],
            table: UInt32(header.rtm_table),
            type: header.rtm_type,
            isCached: header.rtm_flags & UInt32(RTM_F_CLONED) != 0
        )
        let isDead = header.rtm_flags & UInt32(RTNH_F_DEAD) != 0
        try payload.forEachNetlinkAttribute(from: MemoryLayout<rtmsg>.size) { (type, value) throws(NetlinkError) in
            try route.set(type, value, isDead: isDead)
        }
        self = route
    }

    private mutating func set(_ type: UInt16, _ value: RawSpan, isDead: Bool) throws(NetlinkError) {
        switch Int(type) {
        case Int(RTA_DST.rawValue): destination = try value.netlinkAddress(version, ofAttribute: type)
        case Int(RTA_GATEWAY.rawValue): gateway = try value.netlinkAddress(version, ofAttribute: type)
        case Int(RTA_NH_ID.rawValue): nexthop = try value.netlinkNumber(UInt32.self, ofAttribute: type)
        case Int(RTA_PRIORITY.rawValue): metric = try value.netlinkNumber(UInt32.self, ofAttribute: type)
        // The whole number; the header has only eight bits of it.
        case Int(RTA_TABLE.rawValue): table = try value.netlinkNumber(UInt32.self, ofAttribute: type)
        case Int(RTA_OIF.rawValue):
            let interface = try value.netlinkNumber(Int32.self, ofAttribute: type)
            if !isDead { interfaces.append(interface) }
        case Int(RTA_MULTIPATH.rawValue): try addHops(value, ofAttribute: type)
        default: break
        }
    }

    /// Adds the hops of a multipath route, each with its own header and attributes.
    private mutating func addHops(_ hops: RawSpan, ofAttribute type: UInt16) throws(NetlinkError) {
        var offset = 0
        while offset < hops.byteCount {
            guard let hop = hops.loadNetlink(rtnexthop.self, at: offset),
                Int(hop.rtnh_len) >= MemoryLayout<rtnexthop>.size, Int(hop.rtnh_len) <= hops.byteCount - offset
            else { throw .invalidAttribute(type: type) }
            if Int32(hop.rtnh_flags) & Int32(RTNH_F_DEAD) == 0 { interfaces.append(hop.rtnh_ifindex) }
            offset += netlinkAligned(Int(hop.rtnh_len))
        }
    }
}
