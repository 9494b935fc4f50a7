import LifelineReachability

/// A dump's datagrams with another sequence number, as the answer to another request would have.
func withSequence(_ sequence: UInt32, _ datagram: [UInt8]) -> [UInt8] {
    var result = datagram
    var offset = 0
    while offset < result.count {
        let length = Int(result[offset]) | Int(result[offset + 1]) << 8
        for (index, byte) in bytes(of: sequence).enumerated() { result[offset + 8 + index] = byte }
        offset += (length + 3) & ~3
    }
    return result
}

/// A netlink message.
func message(type: UInt16, flags: UInt16 = 2, sequence: UInt32 = 7, port: UInt32 = 0, _ payload: [UInt8]) -> [UInt8] {
    bytes(of: UInt32(16 + payload.count)) + bytes(of: type) + bytes(of: flags) + bytes(of: sequence) + bytes(of: port)
        + payload + [UInt8](repeating: 0, count: -payload.count & 3)
}

/// A netlink attribute.
func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
    bytes(of: UInt16(4 + value.count)) + bytes(of: type) + value + [UInt8](repeating: 0, count: -value.count & 3)
}

func bytes<Number: FixedWidthInteger & BitwiseCopyable>(of number: Number) -> [UInt8] {
    withUnsafeBytes(of: number) { Array($0) }
}

/// Numbers of the kernel's interface.
enum Kernel {
    static let error: UInt16 = 2
    static let done: UInt16 = 3
    static let newLink: UInt16 = 16
    static let newAddress: UInt16 = 20
    static let newRoute: UInt16 = 24
    static let newNexthop: UInt16 = 104
    static let dumpInterrupted: UInt16 = 0x10
}

/// The records in all messages of some datagrams.
struct Records: Hashable {
    var links: [LinkRecord] = []
    var addresses: [AddressRecord] = []
    var routes: [RouteRecord] = []
    var nexthops: [NexthopRecord] = []
    var others: [UInt16] = []

    init() {}

    init(_ datagrams: [[UInt8]]) throws(NetlinkError) {
        for datagram in datagrams {
            try datagram.span.bytes.forEachNetlinkMessage { (header, payload) throws(NetlinkError) in
                try add(header, payload)
            }
        }
    }

    private mutating func add(_ header: NetlinkHeader, _ payload: RawSpan) throws(NetlinkError) {
        switch header.type {
        case Kernel.newLink: links.append(try LinkRecord(payload: payload))
        case Kernel.newAddress: if let address = try AddressRecord(payload: payload) { addresses.append(address) }
        case Kernel.newRoute: if let route = try RouteRecord(payload: payload) { routes.append(route) }
        case Kernel.newNexthop: if let nexthop = try NexthopRecord(payload: payload) { nexthops.append(nexthop) }
        default: others.append(header.type)
        }
    }
}
