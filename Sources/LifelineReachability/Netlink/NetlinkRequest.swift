internal import CLifelineNetlink

/// A request to the kernel, in the form for the socket.
package struct NetlinkRequest: Hashable, Sendable {
    package let bytes: [UInt8]

    /// Requests everything of a kind.
    package static func dump(_ subject: NetworkDump.Subject, sequence: UInt32) -> NetlinkRequest {
        let flags = UInt16(NLM_F_REQUEST | NLM_F_DUMP)
        switch subject {
        case .links:
            // Without the counters, which are the largest part of the answer.
            let filter = UInt32(RTEXT_FILTER_SKIP_STATS)
            let attribute = Self.attribute(UInt16(IFLA_EXT_MASK), withUnsafeBytes(of: filter) { Array($0) })
            return NetlinkRequest(UInt16(RTM_GETLINK), flags, sequence, ifinfomsg(), attribute)
        case .addresses: return NetlinkRequest(UInt16(RTM_GETADDR), flags, sequence, ifaddrmsg(), [])
        case .nexthops: return NetlinkRequest(UInt16(RTM_GETNEXTHOP), flags, sequence, nhmsg(), [])
        case .routes: return NetlinkRequest(UInt16(RTM_GETROUTE), flags, sequence, rtmsg(), [])
        }
    }

    /// Requests the route of packets to `destination`.
    ///
    /// - Parameter interface: the outgoing interface; 0 for that of the routes.
    package static func route(to destination: IPAddress, over interface: Int32, sequence: UInt32) -> NetlinkRequest {
        var header = rtmsg()
        header.rtm_family = destination.version.family
        header.rtm_dst_len = UInt8(destination.version.byteCount * 8)
        var attributes = attribute(UInt16(RTA_DST.rawValue), destination.bytes)
        if interface != 0 {
            attributes += attribute(UInt16(RTA_OIF.rawValue), withUnsafeBytes(of: interface) { Array($0) })
        }
        return NetlinkRequest(UInt16(RTM_GETROUTE), UInt16(NLM_F_REQUEST), sequence, header, attributes)
    }

    /// Requests one interface.
    package static func link(_ index: Int32, sequence: UInt32) -> NetlinkRequest {
        var header = ifinfomsg()
        header.ifi_index = index
        return NetlinkRequest(UInt16(RTM_GETLINK), UInt16(NLM_F_REQUEST), sequence, header, [])
    }

    private init<Body: BitwiseCopyable>(
        _ type: UInt16,
        _ flags: UInt16,
        _ sequence: UInt32,
        _ body: Body,
        _ attributes: [UInt8]
    ) {
        var header = nlmsghdr()
        header.nlmsg_len = UInt32(netlinkHeaderSize + MemoryLayout<Body>.size + attributes.count)
        (header.nlmsg_type, header.nlmsg_flags, header.nlmsg_seq) = (type, flags, sequence)
        bytes = withUnsafeBytes(of: header) { Array($0) } + withUnsafeBytes(of: body) { Array($0) } + attributes
    }

    private static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        let length = MemoryLayout<nlattr>.size + value.count
        let header = nlattr(nla_len: UInt16(length), nla_type: type)
        let padding = [UInt8](repeating: 0, count: netlinkAligned(length) - length)
        return withUnsafeBytes(of: header) { Array($0) } + value + padding
    }
}
