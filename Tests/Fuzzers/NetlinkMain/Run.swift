internal import Netlink

/// Reads `bytes` as one datagram: each message by itself, whatever it claims to be, and all of them as the answers to a
/// dump. Errors are fine. Traps at a contradiction.
func run(_ bytes: [UInt8]) {
    // The captured dumps of the corpus answer requests 7 to 9.
    var dump = NetworkDump(number: 2)
    do throws(NetlinkError) {
        try bytes.span.bytes.forEachNetlinkMessage { (header, payload) throws(NetlinkError) in
            checkRecords(payload)
            if case .finish(let tables, _) = try dump.received(header, payload) { check(tables) }
        }
    } catch {}
}

private func checkRecords(_ payload: RawSpan) {
    if let link = try? LinkRecord(payload: payload) {
        check(!link.name.isEmpty && link.name.unicodeScalars.count <= 15)
    }
    if let address = try? AddressRecord(payload: payload) { check(address.address) }
    if let route = try? RouteRecord(payload: payload) {
        check(Int(route.prefixLength) <= route.version.byteCount * 8)
        for address in [route.destination, route.gateway].compactMap({ $0 }) {
            check(address)
            check(address.version == route.version)
        }
    }
}

private func check(_ address: IPAddress) {
    check(IPAddress("\(address)") == address)
    check(address.bytes.count == address.version.byteCount)
    check(address.unmapped.unmapped == address.unmapped)
}

private func check(_ tables: NetworkTables) {
    let path = NetworkPath(tables) { _ in .other }
    check(path.interfaces.count == tables.links.count)
    check(zip(path.interfaces, path.interfaces.dropFirst()).allSatisfy { $0.index < $1.index })
    check((path.status == .satisfied) == (path.usesIPv4 || path.usesIPv6))
    check(!path.hasDefaultRoute || path.status == .satisfied)
    for interface in path.interfaces where interface.isUsable {
        check(interface.isUp && interface.hasCarrier && !interface.addresses.isEmpty)
    }
    check(!"\(path)".isEmpty)
}

private func check(_ condition: Bool, line: UInt = #line) {
    if !condition { fatalError("what line \(line) checks does not hold") }
}
