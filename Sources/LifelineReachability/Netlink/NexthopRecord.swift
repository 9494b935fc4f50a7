internal import CLifelineNetlink

/// A nexthop object in a dump (`RTM_NEWNEXTHOP`): a way out that routes share.
package struct NexthopRecord: Hashable, Sendable {
    package var id: UInt32
    /// Nil for a group, and for a black hole.
    package var interface: Int32?
    /// The objects of a group.
    package var group: [UInt32]

    package init(id: UInt32, interface: Int32? = nil, group: [UInt32] = []) {
        (self.id, self.interface, self.group) = (id, interface, group)
    }
}

extension NexthopRecord {
    /// Reads an object; nil for one without a number, which no route can use.
    package init?(payload: RawSpan) throws(NetlinkError) {
        guard let header = payload.loadNetlink(nhmsg.self) else {
            throw .truncatedPayload(type: UInt16(RTM_NEWNEXTHOP))
        }
        var id: UInt32?
        var interface: Int32?
        var group: [UInt32] = []
        let isDead = header.nh_flags & UInt32(RTNH_F_DEAD) != 0
        try payload.forEachNetlinkAttribute(from: MemoryLayout<nhmsg>.size) { (type, value) throws(NetlinkError) in
            switch Int(type) {
            case NHA_ID: id = try value.netlinkNumber(UInt32.self, ofAttribute: type)
            case NHA_OIF:
                let index = try value.netlinkNumber(Int32.self, ofAttribute: type)
                if !isDead { interface = index }
            case NHA_GROUP: group = try Self.group(value, ofAttribute: type)
            default: break
            }
        }
        guard let id else { return nil }
        self.init(id: id, interface: interface, group: group)
    }

    private static func group(_ members: RawSpan, ofAttribute type: UInt16) throws(NetlinkError) -> [UInt32] {
        let size = MemoryLayout<nexthop_grp>.size
        guard members.byteCount.isMultiple(of: size) else { throw .invalidAttribute(type: type) }
        return stride(from: 0, to: members.byteCount, by: size).compactMap {
            members.loadNetlink(nexthop_grp.self, at: $0)?.id
        }
    }
}
