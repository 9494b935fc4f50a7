// swift-tools-version: 6.2

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "lifeline",
    products: [
        .library(name: "Lifeline", targets: ["Lifeline"]),
        .library(name: "LifelineReachability", targets: ["LifelineReachability"]),
        .library(name: "LifelineMessages", targets: ["LifelineMessages", "LifelineWellKnownTypes"]),
        .library(name: "LifelineTesting", targets: ["LifelineTesting"]),
        .executable(name: "lifeline", targets: ["LifelineCLI"]),
        .plugin(name: "GenerateMessages", targets: ["GenerateMessages"]),
        .executable(name: "protoc-gen-lifeline", targets: ["protoc-gen-lifeline"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.2"),
        // Certificates: parsing, and verification that says what failed.
        .package(url: "https://github.com/apple/swift-asn1.git", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates.git", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2"),
        // In the interceptors that carry a trace from a client to its server.
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.37.6"),
        // In the protoc plugin only.
        .package(url: "https://github.com/apple/swift-protobuf.git", from: "1.39.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
    ],
    targets: [
        // Code generation
        .target(
            name: "LifelineCodegen",
            dependencies: [
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                .product(name: "SwiftProtobufPluginLibrary", package: "swift-protobuf"),
            ],
            path: "codegen/LifelineCodegen",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "protoc-gen-lifeline",
            dependencies: [
                "LifelineCodegen",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                .product(name: "SwiftProtobufPluginLibrary", package: "swift-protobuf"),
            ],
            path: "codegen/protoc-gen-lifeline",
            swiftSettings: strict
        ),
        .plugin(
            name: "GenerateMessages",
            capability: .command(
                intent: .custom(
                    verb: "generate-messages",
                    description: "Generates C and Swift for the package's .proto files."
                ),
                permissions: [
                    .writeToPackageDirectory(reason: "It writes generated code into two of the package's targets.")
                ]
            ),
            dependencies: ["protoc-gen-lifeline"],
            path: "codegen/GenerateMessages"
        ),
        // Messages
        .systemLibrary(
            name: "CProtobufC",
            pkgConfig: "libprotobuf-c",
            providers: [.apt(["libprotobuf-c-dev"])]
        ),
        .target(name: "CLifelineMessages", dependencies: ["CProtobufC"]),
        .target(
            name: "LifelineMessages",
            dependencies: ["CProtobufC", "CLifelineMessages"],
            swiftSettings: strict
        ),
        .target(name: "CLifelineWellKnownTypes", dependencies: ["CProtobufC", "CLifelineMessages"]),
        .target(
            name: "LifelineWellKnownTypes",
            dependencies: ["LifelineMessages", "CLifelineWellKnownTypes"],
            swiftSettings: strict
        ),
        .target(
            name: "CLifelineProtos",
            dependencies: ["CProtobufC", "CLifelineMessages", "CLifelineWellKnownTypes"]
        ),
        .target(
            name: "LifelineProtos",
            dependencies: ["LifelineMessages", "LifelineWellKnownTypes", "CLifelineProtos"],
            swiftSettings: strict
        ),
        // Connections
        .target(name: "LifelineCore", swiftSettings: strict),
        .systemLibrary(name: "CLifelineNetlink"),
        .target(
            name: "LifelineReachability",
            dependencies: [
                "CLifelineNetlink",
                "LifelineCore",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LifelineTransport",
            dependencies: [
                "LifelineCore",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Lifeline",
            dependencies: [
                "LifelineCore",
                "LifelineMessages",
                "LifelineProtos",
                "LifelineReachability",
                "LifelineTransport",
                "LifelineWellKnownTypes",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: strict
        ),
        .target(name: "LifelineTesting", dependencies: ["Lifeline", "LifelineCore"], swiftSettings: strict),
        .executableTarget(
            name: "LifelineCLI",
            dependencies: [
                "Lifeline",
                "LifelineCore",
                "LifelineMessages",
                "LifelineProtos",
                "LifelineReachability",
                "LifelineWellKnownTypes",
                "SampleServices",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        // Examples
        .executableTarget(
            name: "WebChatServer",
            dependencies: [
                "Lifeline",
                "LifelineProtos",
                "LifelineWellKnownTypes",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            path: "Examples/web-chat/server",
            swiftSettings: strict
        ),
        // Tests
        .target(
            name: "CTestProtos",
            dependencies: ["CProtobufC", "CLifelineMessages", "CLifelineWellKnownTypes"],
            path: "Tests/CTestProtos"
        ),
        .target(
            name: "TestProtos",
            dependencies: ["LifelineMessages", "LifelineWellKnownTypes", "CTestProtos"],
            path: "Tests/TestProtos",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineCodegenTests",
            dependencies: [
                "LifelineCodegen",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                .product(name: "SwiftProtobufPluginLibrary", package: "swift-protobuf"),
            ],
            swiftSettings: strict
        ),
        // Generated services
        .target(
            name: "SampleServices",
            dependencies: ["Lifeline", "LifelineProtos"],
            swiftSettings: strict
        ),
        .target(
            name: "CTestServices",
            dependencies: ["CProtobufC", "CLifelineMessages", "CLifelineWellKnownTypes"],
            path: "Tests/CTestServices"
        ),
        .target(
            name: "TestServices",
            dependencies: [
                "CTestServices", "Lifeline", "LifelineMessages", "LifelineWellKnownTypes", "TestProtos",
            ],
            path: "Tests/TestServices",
            swiftSettings: strict
        ),
        .testTarget(
            name: "GeneratedServiceTests",
            dependencies: [
                "Lifeline", "LifelineMessages", "LifelineProtos", "LifelineWellKnownTypes", "SampleServices",
                "TestServices",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineMessagesTests",
            dependencies: [
                "LifelineMessages", "LifelineProtos", "LifelineTestSupport", "LifelineWellKnownTypes", "TestProtos",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LifelineTestSupport",
            dependencies: [
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ],
            path: "Tests/LifelineTestSupport",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineCoreTests",
            dependencies: ["LifelineCore", "LifelineTestSupport"],
            swiftSettings: strict
        ),
        .target(
            name: "LifelineScenarios",
            dependencies: ["Lifeline", "LifelineCore", "LifelineProtos", "LifelineTesting"],
            path: "Tests/LifelineScenarios",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "ScenarioSoak",
            dependencies: ["LifelineScenarios"],
            path: "Tests/ScenarioSoak",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineTestingTests",
            dependencies: ["LifelineScenarios", "LifelineTesting"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineReachabilityTests",
            dependencies: [
                "FaultClient",
                "FaultPeer",
                "FaultSupport",
                "LifelineCLI",
                "LifelineCore",
                "LifelineReachability",
                "LifelineTestSupport",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineTransportTests",
            dependencies: [
                "LifelineCore",
                "LifelineTestSupport",
                "LifelineTransport",
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineTests",
            dependencies: [
                "Lifeline",
                "LifelineCore",
                "LifelineProtos",
                "LifelineTestSupport",
                "LifelineTransport",
                "LifelineWellKnownTypes",
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineCLITests",
            dependencies: [
                "Lifeline", "LifelineCLI", "LifelineCore", "LifelineMessages", "LifelineProtos", "LifelineTestSupport",
                "LifelineWellKnownTypes", "SampleServices",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "InteropTests",
            dependencies: [
                "Lifeline",
                "LifelineCLI",
                "LifelineCore",
                "LifelineProtos",
                "LifelineTestSupport",
                "LifelineWellKnownTypes",
                "WebChatServer",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
            ],
            exclude: ["Peers"],
            swiftSettings: strict
        ),
        // What Autobahn's WebSocket test suite talks to
        .executableTarget(
            name: "AutobahnPeer",
            dependencies: [
                "Lifeline",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/AutobahnPeer",
            swiftSettings: strict
        ),
        // Faults of real networks
        .target(
            name: "FaultSupport",
            dependencies: ["LifelineCore", "LifelineTransport"],
            path: "Tests/FaultSupport",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "FaultClient",
            dependencies: [
                "FaultSupport",
                "Lifeline",
                "LifelineCore",
                "LifelineProtos",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/FaultPrograms/Client",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "FaultPeer",
            dependencies: [
                "FaultSupport",
                "Lifeline",
                "LifelineProtos",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/FaultPrograms/Peer",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "FaultTable",
            dependencies: [
                "FaultSupport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/FaultPrograms/Table",
            swiftSettings: strict
        ),
        .testTarget(
            name: "FaultTests",
            dependencies: ["FaultClient", "FaultPeer", "FaultSupport", "LifelineCore"],
            swiftSettings: strict
        ),
        // Sessions whose connections are cut
        .target(
            name: "SessionCutSupport",
            dependencies: [
                "Lifeline",
                "LifelineCore",
                "LifelineProtos",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/SessionCutSupport",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "SessionCutClient",
            dependencies: [
                "FaultSupport",
                "Lifeline",
                "LifelineProtos",
                "SessionCutSupport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/SessionCutPrograms/Client",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "SessionCutServer",
            dependencies: [
                "FaultSupport",
                "Lifeline",
                "LifelineProtos",
                "SessionCutSupport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/SessionCutPrograms/Server",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "SessionCutRelay",
            dependencies: [
                "FaultSupport",
                "LifelineTestSupport",
                "SessionCutSupport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/SessionCutPrograms/Relay",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "SessionCutProof",
            dependencies: [
                "FaultSupport",
                "LifelineTestSupport",
                "SessionCutSupport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/SessionCutPrograms/Proof",
            swiftSettings: strict
        ),
        .testTarget(
            name: "SessionCutTests",
            dependencies: [
                "FaultSupport", "LifelineTestSupport", "SessionCutClient", "SessionCutProof", "SessionCutRelay",
                "SessionCutServer", "SessionCutSupport",
            ],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c11
)
