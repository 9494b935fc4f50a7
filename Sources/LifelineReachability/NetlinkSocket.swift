internal import CLifelineNetlink
internal import Glibc
internal import NIOConcurrencyHelpers
package import NIOCore
internal import NIOPosix

/// Opens sockets to the kernel's routing tables. A socket belongs to the network namespace of the thread that opens it.
package struct NetlinkSocket {
    package let descriptor: CInt
    /// The kernel's number for the socket, which answers to its requests carry.
    package let port: UInt32

    package init(descriptor: CInt, port: UInt32) {
        self.descriptor = descriptor
        self.port = port
    }

    /// The events that a socket gets.
    package enum Subscription {
        case nothing
        /// Links, addresses, routes and nexthop objects.
        case changes

        fileprivate var groups: UInt32 {
            switch self {
            case .nothing: 0
            case .changes:
                UInt32(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE)
                    // Groups are counted from 1. A kernel ignores groups that it does not know.
                    | 1 << (RTNLGRP_NEXTHOP.rawValue - 1)
            }
        }
    }

    package static func open(subscribingTo subscription: Subscription, blocking: Bool) throws(IOError) -> NetlinkSocket
    {
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

    /// Makes a channel, which owns the socket. Runs on the loop. If that fails, the socket is closed.
    ///
    /// - Parameter initialize: called with the channel before anything is read.
    package func makeChannel(
        on loop: any EventLoop,
        _ initialize: @escaping @Sendable (any Channel) throws -> Void
    ) throws -> EventLoopFuture<any Channel> {
        let writing: CInt
        do throws(IOError) {
            // NIO would duplicate it without O_CLOEXEC, and children of this process would inherit it.
            writing = try duplicate()
        } catch {
            close()
            throw error
        }
        // Once there is a channel, NIO closes the descriptors, also on failure. Their numbers may then already belong
        // to other files.
        let isTaken = NIOLockedValueBox(false)
        let made = NIOPipeBootstrap(group: loop)
            .channelInitializer { channel in
                isTaken.withLockedValue { $0 = true }
                return channel.eventLoop.makeCompletedFuture {
                    // Fixed, because the rest of a datagram that does not fit is lost. The kernel's datagrams have up
                    // to 32 KiB.
                    let allocator = FixedSizeRecvByteBufferAllocator(capacity: 64 << 10)
                    try channel.syncOptions?.setOption(.recvAllocator, value: allocator)
                    try initialize(channel)
                }
            }
            .takingOwnershipOfDescriptors(input: descriptor, output: writing)
        return made.flatMapErrorThrowing { error in
            if !isTaken.withLockedValue(\.self) {
                self.close()
                Glibc.close(writing)
            }
            throw error
        }
    }

    /// Returns another descriptor of the same socket.
    private func duplicate() throws(IOError) -> CInt {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw IOError(errnoCode: errno, reason: "fcntl(F_DUPFD_CLOEXEC)") }
        return copy
    }

    package func close() {
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
