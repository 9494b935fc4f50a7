import Foundation
import LifelineTestSupport
import Synchronization

/// Two network namespaces that a pair of virtual Ethernet interfaces connects, `eth0` in both: 10.9.0.2/24 and
/// 2001:db8::2/64 here, .1 and ::1 at the peer, which is the router for everything else.
struct NetworkNamespaces: Sendable {
    struct Impossible: Error, CustomStringConvertible {
        let description: String
    }

    let here: String
    let peer: String

    private static let lastNumber = Atomic(0)
    private static let prefix = "lifeline-net-"
    private static let ip = "/usr/sbin/ip"

    /// Makes them, runs `body`, and removes them whatever happens.
    static func with(_ body: (NetworkNamespaces) async throws -> Void) async throws {
        guard geteuid() == 0 else {
            throw Impossible(
                description: "Network namespaces need root. Run the tests as root, or --skip NamespaceTests."
            )
        }
        guard FileManager.default.isExecutableFile(atPath: ip) else {
            throw Impossible(description: "\(ip) is missing. Run scripts/install-dependencies test.")
        }
        try await removeLeftovers()
        let number = lastNumber.add(1, ordering: .relaxed).newValue
        let name = "\(prefix)\(getpid())-\(number)"
        let namespaces = NetworkNamespaces(here: "\(name)-here", peer: "\(name)-peer")
        do {
            try await namespaces.make()
            try await body(namespaces)
        } catch {
            await namespaces.remove()
            throw error
        }
        await namespaces.remove()
    }

    /// Runs `ip` with each of the commands, in this one's namespace, as one process.
    func ip(_ commands: String...) async throws {
        try await batch(commands, in: here)
    }

    func ip(atPeer commands: String...) async throws {
        try await batch(commands, in: peer)
    }

    func batch(_ commands: [String], in namespace: String) async throws {
        let input = Data((commands.joined(separator: "\n") + "\n").utf8)
        _ = try await Program(URL(filePath: Self.ip), ["-n", namespace, "-batch", "-"]).run(input: input)
    }

    /// What a program prints that runs here.
    func run(_ arguments: String...) async throws -> String {
        let output = try await Program(URL(filePath: Self.ip), ["netns", "exec", here] + arguments).run()
        return String(decoding: output, as: UTF8.self)
    }

    private func make() async throws {
        for name in [here, peer] { _ = try await Program(URL(filePath: Self.ip), ["netns", "add", name]).run() }
        try await ip(
            "link set lo up",
            "link add eth0 type veth peer name eth0 netns \(peer)"
        )
        try await ip(
            atPeer: "link set eth0 up",
            "address add 10.9.0.1/24 dev eth0",
            "address add 2001:db8::1/64 dev eth0 nodad"
        )
        try await ip(
            "link set eth0 up",
            "address add 10.9.0.2/24 dev eth0",
            "address add 2001:db8::2/64 dev eth0 nodad",
            "route add default via 10.9.0.1"
        )
    }

    private func remove() async {
        for name in [here, peer] { _ = try? await Program(URL(filePath: Self.ip), ["netns", "delete", name]).run() }
    }

    /// Those of earlier processes that were killed.
    private static func removeLeftovers() async throws {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/run/netns")) ?? []
        for name in names where name.hasPrefix(prefix) {
            let owner = name.dropFirst(prefix.count).prefix { $0 != "-" }
            guard let process = Int32(owner), kill(process, 0) != 0, errno == ESRCH else { continue }
            _ = try? await Program(URL(filePath: ip), ["netns", "delete", name]).run()
        }
    }
}
