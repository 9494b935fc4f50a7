import Foundation
import LifelineTestSupport
import Testing

/// A product brings no more packages than it needs.
@Suite(.timeLimit(.minutes(2))) struct DependencyTests {
    /// The packages for sockets, TLS and logs.
    private static let network: Set = [
        "swift-asn1", "swift-certificates", "swift-crypto", "swift-distributed-tracing", "swift-log", "swift-metrics",
        "swift-nio", "swift-nio-ssl", "swift-service-lifecycle",
    ]

    /// For each product, the packages whose products it links.
    private static let packages: [String: Set<String>] = [
        "LifelineMessages": [],
        "LifelineMessageStreams": [],
        "LifelineSwiftProtobufCompatibility": [],
        "LifelineReachability": ["swift-log", "swift-nio"],
        "Lifeline": network,
        "LifelineFleet": network,
        "LifelineFleetRedis": network,
        "LifelineOlderFramings": network,
        "LifelineSessionReflection": network,
        "LifelineTesting": network,
        "LifelineStore": network.union(["grdb.swift"]),
        "protoc-gen-lifeline": ["swift-protobuf"],
        "lifeline": network.union(["grdb.swift", "swift-argument-parser"]),
    ]

    @Test func aProductLinksWhatTheTableSays() async throws {
        let manifest = try await Manifest.load()
        var found: [String: Set<String>] = [:]
        for product in manifest.products where !product.isPlugin {
            found[product.name] = manifest.packages(of: product.targets)
        }
        #expect(Set(found.keys) == Set(DependencyTests.packages.keys))
        for (product, packages) in DependencyTests.packages { #expect(found[product] == packages, "\(product)") }
    }

    /// The programs are some of this package that link one product each.
    @Test func aProgramLinksNothingElse() async throws {
        // A library's file, or a name in it.
        let signs = ["libprotobuf-c.so", "7NIOCore", "CNIOBoringSSL_SSL_new", "libsqlite3.so", "libhiredis"]
        func linked(_ program: String) async throws -> [String] {
            let path = try Program.product(program, []).path
            var found: [String] = []
            for sign in signs {
                let arguments = ["grep", "--quiet", "--text", "--fixed-strings", sign, path]
                let status = try await Program(URL(filePath: "/usr/bin/env"), arguments).outcome().status
                try #require(0...1 ~= status)
                if status == 0 { found.append(sign) }
            }
            return found
        }
        // LifelineMessages
        #expect(try await linked("SchemaRoundTrip") == ["libprotobuf-c.so"])
        // Lifeline
        #expect(try await linked("AutobahnPeer") == ["libprotobuf-c.so", "7NIOCore", "CNIOBoringSSL_SSL_new"])
        #if Store
        // LifelineStore
        #expect(try await linked("TelemetryCollector") == signs.dropLast())
        #endif
    }
}

/// The parts of `swift package dump-package`'s output that the tests need.
private struct Manifest: Decodable {
    struct Product: Decodable {
        let name: String
        let targets: [String]
        let isPlugin: Bool

        private enum Key: CodingKey { case name, targets, type }
        private enum Kind: CodingKey { case plugin }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: Key.self)
            name = try values.decode(String.self, forKey: .name)
            targets = try values.decode([String].self, forKey: .targets)
            isPlugin = try values.nestedContainer(keyedBy: Kind.self, forKey: .type).contains(.plugin)
        }
    }

    /// `product` is a list: the product's name, its package's, and more. `byName` begins with the target's name.
    struct Dependency: Decodable {
        let product: [Unknown]?
        let byName: [Unknown]?
    }

    /// A text, or something else.
    struct Unknown: Decodable {
        let text: String?

        init(from decoder: any Decoder) throws { text = try? decoder.singleValueContainer().decode(String.self) }
    }

    struct Target: Decodable {
        let name: String
        let dependencies: [Dependency]
    }

    let products: [Product]
    let targets: [Target]

    static func load() async throws -> Manifest {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized.path
        // Apart from the folder in which these tests were built, which may be locked.
        let output = try await withTemporaryPath("scratch") { scratch in
            let arguments = ["swift", "package", "--package-path", root, "--scratch-path", scratch, "dump-package"]
            return try await Program(URL(filePath: "/usr/bin/env"), arguments).run()
        }
        return try JSONDecoder().decode(Manifest.self, from: output)
    }

    /// The packages whose products are linked with some targets.
    func packages(of names: [String]) -> Set<String> {
        var (seen, waiting, packages) = (Set<String>(), names, Set<String>())
        while let name = waiting.popLast() {
            guard seen.insert(name).inserted, let target = targets.first(where: { $0.name == name }) else { continue }
            for dependency in target.dependencies {
                if let target = dependency.byName?.first?.text { waiting.append(target) }
                if let product = dependency.product, product.count > 1, let package = product[1].text {
                    packages.insert(package.lowercased())
                }
            }
        }
        return packages
    }
}
