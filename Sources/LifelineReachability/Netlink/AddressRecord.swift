internal import CLifelineNetlink

/// An address in a dump (`RTM_NEWADDR`).
package struct AddressRecord: Hashable, Sendable {
    package var interface: Int32
    package var address: IPAddress
    /// The kernel's `RT_SCOPE_…`, the scope in which the address is valid.
    package var scope: UInt8
    /// The kernel's `IFA_F_…`.
    package var flags: UInt32

    package init(interface: Int32, address: IPAddress, scope: UInt8, flags: UInt32) {
        (self.interface, self.address, self.scope, self.flags) = (interface, address, scope, flags)
    }

    /// Whether the address is valid beyond the link, and may be used now.
    package var isUsable: Bool {
        let isPending = flags & UInt32(IFA_F_TENTATIVE) != 0 && flags & UInt32(IFA_F_OPTIMISTIC) == 0
        return scope < UInt8(RT_SCOPE_LINK.rawValue) && !address.isLinkLocal && !address.isLoopback && !isPending
            && flags & UInt32(IFA_F_DADFAILED) == 0
    }
}

extension AddressRecord {
    /// Reads an address; nil for protocols other than IPv4 and IPv6, and without an address.
    package init?(payload: RawSpan) throws(NetlinkError) {
        guard let header = payload.loadNetlink(ifaddrmsg.self) else {
            throw .truncatedPayload(type: UInt16(RTM_NEWADDR))
        }
        guard let version = IPAddress.Version(family: header.ifa_family) else { return nil }
        var address: IPAddress?
        var local: IPAddress?
        var flags = UInt32(header.ifa_flags)
        try payload.forEachNetlinkAttribute(from: MemoryLayout<ifaddrmsg>.size) { (type, value) throws(NetlinkError) in
            switch Int(type) {
            case IFA_ADDRESS: address = try value.netlinkAddress(version, ofAttribute: type)
            case IFA_LOCAL: local = try value.netlinkAddress(version, ofAttribute: type)
            // All flags; the header has only eight bits of them.
            case IFA_FLAGS: flags = try value.netlinkNumber(UInt32.self, ofAttribute: type)
            default: break
            }
        }
        // On a point-to-point link IFA_ADDRESS is that of the other end.
        guard let own = local ?? address else { return nil }
        self.init(
            interface: Int32(bitPattern: header.ifa_index),
            address: own,
            scope: header.ifa_scope,
            flags: flags
        )
    }
}
