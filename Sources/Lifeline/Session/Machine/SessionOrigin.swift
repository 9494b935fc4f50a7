package import LifelineCore

/// Where a session comes from: those of one origin share limits.
package struct SessionOrigin: Sendable, Hashable {
    /// Who its client is, as the server found out; nil: nobody in particular.
    package let subject: String?
    /// The network that it connects from; nil: none that tells clients apart.
    package let network: String?

    package init(subject: String? = nil, network: String? = nil) {
        self.subject = subject
        self.network = network
    }

    /// - Parameter address: that of the client. Of IPv6 the first 64 bits count, as a client has all addresses behind
    ///   them.
    package init(subject: String?, address: Endpoint.Address) {
        self.subject = subject
        guard case .tcp(let host, _) = address else {
            network = nil
            return
        }
        // A zone says by which of this host's interfaces.
        let text = String(host.prefix { $0 != "%" })
        network =
            IPAddress(text).map { address in
                let bytes = address.unmapped.bytes
                return bytes.prefix(bytes.count == 16 ? 8 : 4).map { "\($0)" }.joined(separator: ".")
            } ?? text
    }
}

/// The sessions without a connection, by the networks that left them behind: which has the most, and its oldest.
///
/// Every event takes constant time on average. Memory follows the sessions.
struct AbandonedSessions: Sendable {
    private struct Network {
        /// By their deadlines' numbers, which ascend.
        var sessions = SparseQueue<SessionID>()
        /// Where it stands among those that have as many.
        var position = 0
    }

    private var networks: [String: Network] = [:]
    /// The networks that have so many, for each number.
    private var namesByCount: [[String]] = []

    /// How many a network has left behind.
    func count(of network: String) -> Int { networks[network]?.sessions.count ?? 0 }

    /// A network that has left the most behind; nil where none has left any.
    var greediest: String? { namesByCount.last?.first }

    /// The oldest that a network has left behind.
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
        // The last takes its place.
        if let last = namesByCount[count].popLast(), last != network {
            namesByCount[count][known.position] = last
            networks[last]?.position = known.position
        }
        while namesByCount.last?.isEmpty == true { namesByCount.removeLast() }
    }
}
