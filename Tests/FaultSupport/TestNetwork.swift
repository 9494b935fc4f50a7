internal import Glibc
internal import Synchronization

/// A network in three network namespaces: a client, a router and a server.
///
///     client  10.77.1.2, fd77:1::2 ── router ── 10.77.2.2, fd77:2::2  server
///
/// The ends notice changes at the router only by the packets that arrive. Nothing outside the namespaces changes.
package struct TestNetwork: Sendable {
    package enum Node: String, CaseIterable, Sendable {
        case client, router, server
    }

    package enum Family: String, CaseIterable, Sendable {
        case ipv4, ipv6
    }

    private let prefix: String

    // MARK: Making one

    /// Runs `body` with a new network, which is removed however `body` ends. Programs in it must have ended by then.
    ///
    /// It also removes the leftovers of earlier, killed runs.
    package static func with<Result>(
        _ body: nonisolated(nonsending) (TestNetwork) async throws -> Result
    ) async throws -> Result {
        try checkRequirements()
        try await removeLeftovers()
        let number = count.withLock { count in
            count += 1
            return count
        }
        let network = TestNetwork(prefix: "\(namePrefix)\(getpid())-\(number)-")
        let result: Result
        do {
            try await network.make()
            result = try await body(network)
        } catch {
            try? await network.remove()
            throw error
        }
        try await network.remove()
        return result
    }

    /// Throws an error that names a missing requirement.
    package static func checkRequirements(
        user: UInt32 = geteuid(),
        tools: [String] = ["ip", "nft", "ss"]
    ) throws {
        guard user == 0 else {
            throw FaultFailure("Network namespaces need root's rights: run it as root, for example with sudo.")
        }
        for tool in tools { _ = try Tool.path(of: tool) }
    }

    private static let count = Mutex(0)

    // MARK: Using one

    /// The name of a node's namespace for `ip netns`.
    package func namespace(of node: Node) -> String { prefix + node.rawValue }

    /// The server's address.
    package func serverAddress(_ family: Family) -> String {
        switch family {
        case .ipv4: "10.77.2.2"
        case .ipv6: "fd77:2::2"
        }
    }

    /// The arguments with which `ip` runs a program at a node. `ip` becomes that program, in the same process.
    package func arguments(toRun path: String, _ arguments: [String], at node: Node) -> [String] {
        ["netns", "exec", namespace(of: node), path] + arguments
    }

    /// Runs a system program at a node.
    @discardableResult package func run(_ tool: String, _ arguments: [String], at node: Node) async throws -> Tool.Run {
        try await Tool.run("ip", self.arguments(toRun: Tool.path(of: tool), arguments, at: node))
    }

    /// Runs commands of `ip` at a node, in one process.
    @discardableResult package func ip(_ commands: [String], at node: Node) async throws -> Moment {
        let input = commands.map { $0 + "\n" }.joined()
        return try await Tool.run("ip", ["-n", namespace(of: node), "-batch", "-"], input: input).moment
    }

    // MARK: -

    private func make() async throws {
        for node in Node.allCases { try await Tool.run("ip", ["netns", "add", namespace(of: node)]) }
        for node in Node.allCases {
            // Duplicate address detection would delay every new link by a second. The other setting makes a link that
            // goes down keep its IPv6 addresses, like those of IPv4.
            var settings = ["accept_dad=0", "keep_addr_on_down=1"].flatMap { setting in
                ["net.ipv6.conf.all.\(setting)", "net.ipv6.conf.default.\(setting)"]
            }
            if node == .router { settings += ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"] }
            try await set(settings, at: node)
        }
        for node in [Node.client, .server] {
            let peer = "type veth peer name eth0 netns \(namespace(of: node))"
            // The kernel reports carrier changes at most once a second, but at once for links whose other end has
            // another interface number.
            let index = node == .client ? 101 : 102
            try await ip(["link add \(node) index \(index) \(peer)"], at: .router)
        }
        try await ip(
            [(Node.client, 1), (.server, 2)].flatMap { node, subnet in
                [
                    "address add 10.77.\(subnet).1/24 dev \(node)",
                    "address add fd77:\(subnet)::1/64 dev \(node)",
                    "link set \(node) up",
                ]
            },
            at: .router
        )
        for (node, subnet) in [(Node.client, 1), (.server, 2)] {
            try await ip(
                [
                    "link set lo up",
                    "address add 10.77.\(subnet).2/24 dev eth0",
                    "address add fd77:\(subnet)::2/64 dev eth0",
                    "link set eth0 up",
                    "route add default via 10.77.\(subnet).1",
                    "route add default via fd77:\(subnet)::1",
                ],
                at: node
            )
        }
        try await makeFilter()
        for node in Node.allCases { try await waitUntilUsable(node) }
    }

    /// Waits until IPv6 addresses are usable: the kernel sets up new links in a separate thread.
    private func waitUntilUsable(_ node: Node) async throws {
        let deadline = ContinuousClock.now + .seconds(30)
        let query = ["-n", namespace(of: node), "-6", "-oneline", "address", "show", "tentative"]
        while true {
            let tentative = try await Tool.run("ip", query).output
            if tentative.isEmpty { return }
            guard .now < deadline else { throw FaultFailure("The \(node)'s addresses are tentative: \(tentative)") }
        }
    }

    private func set(_ settings: [String], at node: Node) async throws {
        let script = settings.map { setting in
            let parts = setting.split(separator: "=")
            return "echo \(parts[1]) > /proc/sys/\(parts[0].split(separator: ".").joined(separator: "/"))"
        }
        try await run("sh", ["-ec", script.joined(separator: "\n")], at: node)
    }

    private func remove() async throws {
        try await TestNetwork.remove(Node.allCases.map(namespace))
    }

    private static let namePrefix = "lifeline-test-"

    /// Removes the namespaces of ended processes, and kills programs that still run in them: stopped programs do not
    /// end by themselves.
    private static func removeLeftovers() async throws {
        let names = try await Tool.run("ip", ["netns", "list"]).output.split(separator: "\n").compactMap { line in
            line.split(separator: " ").first.map(String.init)
        }
        let leftovers = names.filter { name in
            guard name.hasPrefix(namePrefix), let id = pid_t(name.dropFirst(namePrefix.count).prefix(while: \.isNumber))
            else { return false }
            return kill(id, 0) != 0 && errno == ESRCH
        }
        for name in leftovers {
            // Another run may remove the same.
            guard let processes = try? await Tool.run("ip", ["netns", "pids", name]).output else { continue }
            for process in processes.split(separator: "\n").compactMap({ pid_t($0) }) { kill(process, SIGKILL) }
            try? await remove([name])
        }
    }

    /// Removes as much as possible, and then throws the first failure.
    private static func remove(_ namespaces: [String]) async throws {
        var failure: (any Error)?
        for name in namespaces {
            do { try await Tool.run("ip", ["netns", "delete", name]) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}
