internal import CLifelineNetlink
internal import Glibc
internal import NIOCore

/// Opens sockets to the kernel's routing tables. A socket belongs to the network namespace of the thread that opens it.
struct NetlinkSocket {
    let descriptor: CInt
    /// The number that the kernel gave the socket; answers to its requests carry it.
    let port: UInt32

    /// What a socket is told of by itself.
    enum Subscription {
        case nothing
        /// Links, addresses, routes and nexthop objects.
        case changes

        fileprivate var groups: UInt32 {
            switch self {
            case .nothing: 0
            case .changes:
                UInt32(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE)
                    // Groups are counted from 1. A kernel that does not know one leaves it out.
                    | 1 << (RTNLGRP_NEXTHOP.rawValue - 1)
            }
        }
    }

    static func open(subscribingTo subscription: Subscription, blocking: Bool) throws(IOError) -> NetlinkSocket {
        let type = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue) | (blocking ? 0 : Int32(SOCK_NONBLOCK.rawValue))
        let descriptor = socket(AF_NETLINK, type, Int32(NETLINK_ROUTE))
        guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket(AF_NETLINK)") }
        do throws(IOError) {
            return NetlinkSocket(descriptor: descriptor, port: try bind(descriptor, groups: subscription.groups))
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    /// Another descriptor of the same socket.
    func duplicate() throws(IOError) -> CInt {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw IOError(errnoCode: errno, reason: "fcntl(F_DUPFD_CLOEXEC)") }
        return copy
    }

    func close() {
        Glibc.close(descriptor)
    }

    private static func bind(_ descriptor: CInt, groups: UInt32) throws(IOError) -> UInt32 {
        var address = sockaddr_nl()
        address.nl_family = sa_family_t(AF_NETLINK)
        address.nl_groups = groups
        var length = socklen_t(MemoryLayout<sockaddr_nl>.size)
        let failedCall: String? = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                if Glibc.bind(descriptor, $0, length) < 0 { return "bind(AF_NETLINK)" }
                return getsockname(descriptor, $0, &length) < 0 ? "getsockname(AF_NETLINK)" : nil
            }
        }
        if let failedCall { throw IOError(errnoCode: errno, reason: failedCall) }
        return address.nl_pid
    }
}
