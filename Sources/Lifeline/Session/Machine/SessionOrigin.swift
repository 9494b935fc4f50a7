package import LifelineCore

/// The origin of a session. Sessions of one origin share limits.
package struct SessionOrigin: Sendable, Hashable {
    /// The client's identity, as the server has checked it; nil if it has none.
    package let subject: String?
    /// The network that the client connects from; nil if it does not distinguish clients.
    package let network: String?

    package init(subject: String? = nil, network: String? = nil) {
        self.subject = subject
        self.network = network
    }

    /// - Parameter address: the address of the client. For IPv6 the first 64 bits count, because a client has all
    ///   addresses with these bits.
    package init(subject: String?, address: Endpoint.Address) {
        self.subject = subject
        guard case .tcp(let host, _) = address else {
            network = nil
            return
        }
        // A zone names one of this host's interfaces.
        let text = String(host.prefix { $0 != "%" })
        network =
            IPAddress(text).map { address in
                let bytes = address.unmapped.bytes
                return bytes.prefix(bytes.count == 16 ? 8 : 4).map { "\($0)" }.joined(separator: ".")
            } ?? text
    }
}

/// The sessions without a connection, by the networks that left them. Finds the network with the most, and its oldest
/// session.
///
/// Every event takes constant time on average. Memory is proportional to the sessions.
struct AbandonedSessions: Sendable {
    private struct Network {
        /// The sessions by their deadlines' numbers, which ascend.
        var sessions = SparseQueue<SessionID>()
        /// The position among the networks with the same number of sessions.
        var position = 0
    }

    private var networks: [String: Network] = [:]
    /// The networks for each number of sessions.
    private var namesByCount: [[String]] = []

    /// Returns the number of sessions that a network has left.
    func count(of network: String) -> Int { networks[network]?.sessions.count ?? 0 }

    /// A network that has left the most sessions; nil if none has left any.
    var greediest: String? { namesByCount.last?.first }

    /// Returns the oldest session that a network has left.
    func oldest(of network: String) -> SessionID? { networks[network]?.sessions.first?.element }

    mutating func add(_ id: SessionID, of network: String, number: UInt64) {
        unlist(network)
        networks[network, default: Network()].sessions.append(number, id)
        list(network)
    }

    mutating func remove(number: UInt64, of network: String) {
        guard networks[network]?.sessions[number] != nil else { return }
        unlist(network)
        networks[network]?.sessions.remove(number)
        list(network)
    }

    private mutating func list(_ network: String) {
        let count = count(of: network)
        guard count > 0 else { return networks[network] = nil }
        while namesByCount.count <= count { namesByCount.append([]) }
        networks[network]?.position = namesByCount[count].count
        namesByCount[count].append(network)
    }

    private mutating func unlist(_ network: String) {
        guard let known = networks[network] else { return }
        let count = known.sessions.count
        // The last one replaces it.
        if let last = namesByCount[count].popLast(), last != network {
            namesByCount[count][known.position] = last
            networks[last]?.position = known.position
        }
        while namesByCount.last?.isEmpty == true { namesByCount.removeLast() }
    }
}
