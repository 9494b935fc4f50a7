// swift-tools-version: 6.3

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// Only a root package may have these, which this one always is.
let strictC: [CSetting] = [.unsafeFlags(["-Wall", "-Wextra", "-Werror"])]

// A package apart from that of messages, because gRPC takes minutes to build. `../run` generates the missing code, and
// builds.
let package = Package(
    name: "connections",
    products: [
        .executable(name: "connection-benchmarks", targets: ["ConnectionBenchmarks"]),
        .executable(name: "connection-peer", targets: ["ConnectionPeer"]),
    ],
    dependencies: [
        // With the trait of the scripts that build in the same folder, so that nothing is built again.
        .package(name: "lifeline", path: "../..", traits: ["Store"]),
        .package(name: "report", path: "../Report"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        .package(url: "https://github.com/grpc/grpc-swift-2.git", from: "2.4.3"),
        .package(url: "https://github.com/grpc/grpc-swift-nio-transport.git", from: "2.9.2"),
    ],
    targets: [
        // A server or a client of any contender except Netty.
        .executableTarget(
            name: "ConnectionPeer",
            dependencies: [
                "CConnectionChat",
                "CEpollPeer",
                .product(name: "GRPCCore", package: "grpc-swift-2"),
                .product(name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport"),
                .product(name: "Lifeline", package: "lifeline"),
                .product(name: "LifelineMessages", package: "lifeline"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
        .target(name: "CEpollPeer", cSettings: strictC),
        // Generated: the C half of Lifeline's code.
        .target(
            name: "CConnectionChat",
            dependencies: [.product(name: "LifelineMessages", package: "lifeline")],
            cSettings: strictC
        ),
        // Starts the peers, sends them commands, and reports.
        .executableTarget(
            name: "ConnectionBenchmarks",
            dependencies: [
                "CEpollPeer",
                .product(name: "BenchmarkReport", package: "report"),
            ],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c11
)
