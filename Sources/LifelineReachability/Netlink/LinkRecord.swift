internal import CLifelineNetlink

/// An interface in a dump (`RTM_NEWLINK`).
package struct LinkRecord: Hashable, Sendable {
    package var index: Int32
    package var name: String
    /// The kernel's `IFF_…`.
    package var flags: UInt32
    /// RFC 2863's state, the kernel's `IF_OPER_…`; 0 (unknown) if the message has none.
    package var operationalState: UInt8
    /// The kernel's `ARPHRD_…`.
    package var hardwareType: UInt16
    /// The kind of a virtual interface (`IFLA_INFO_KIND`): `veth`, `bridge`, `wireguard`, …
    package var kind: String?
    /// The bridge, or similar interface, that this one is a port of (`IFLA_MASTER`).
    package var master: Int32?

    package init(
        index: Int32,
        name: String,
        flags: UInt32,
        operationalState: UInt8 = 0,
        hardwareType: UInt16,
        kind: String? = nil,
        master: Int32? = nil
    ) {
        (self.index, self.name, self.flags) = (index, name, flags)
        (self.operationalState, self.hardwareType, self.kind) = (operationalState, hardwareType, kind)
        self.master = master
    }

    package var isUp: Bool { flags & LIFELINE_IFF_UP != 0 }
    package var isLoopback: Bool { flags & LIFELINE_IFF_LOOPBACK != 0 }
    package var hasCarrier: Bool {
        flags & LIFELINE_IFF_LOWER_UP != 0 && operationalState != LIFELINE_IF_OPER_DORMANT
    }
}

extension LinkRecord {
    package init(payload: RawSpan) throws(NetlinkError) {
        guard let link = payload.loadNetlink(ifinfomsg.self) else { throw .truncatedPayload(type: UInt16(RTM_NEWLINK)) }
        var name: String?
        var operationalState: UInt8 = 0
        var kind: String?
        var master: Int32?
        try payload.forEachNetlinkAttribute(from: MemoryLayout<ifinfomsg>.size) { (type, value) throws(NetlinkError) in
            switch Int(type) {
            case IFLA_IFNAME: name = try value.netlinkText(ofAttribute: type, maximumLength: Self.longestName)
            case IFLA_OPERSTATE: operationalState = try value.netlinkNumber(UInt8.self, ofAttribute: type)
            case IFLA_MASTER: master = try value.netlinkNumber(Int32.self, ofAttribute: type)
            case IFLA_LINKINFO: kind = try Self.kind(linkInfo: value)
            default: break
            }
        }
        guard let name, !name.isEmpty else { throw .missingName(index: link.ifi_index) }
        self.init(
            index: link.ifi_index,
            name: name,
            flags: link.ifi_flags,
            operationalState: operationalState,
            hardwareType: link.ifi_type,
            kind: kind,
            master: master
        )
    }

    private static func kind(linkInfo: RawSpan) throws(NetlinkError) -> String? {
        var kind: String?
        try linkInfo.forEachNetlinkAttribute { (type, value) throws(NetlinkError) in
            if Int(type) == IFLA_INFO_KIND {
                kind = try value.netlinkText(ofAttribute: type, maximumLength: Self.longestKind)
            }
        }
        return kind
    }

    /// The kernel's IFNAMSIZ, without the NUL.
    private static let longestName = 15
    /// The kernel's MODULE_NAME_LEN, which bounds the kind.
    private static let longestKind = 56
}
