// swift-tools-version: 6.3

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// MARK: - Targets, by kind

/// C, which uses libprotobuf-c.
func c(_ name: String, path: String? = nil, _ dependencies: Target.Dependency...) -> Target {
    .target(name: name, dependencies: ["CProtobufC"] + dependencies, path: path)
}

/// A library in Swift.
func swift(_ name: String, path: String? = nil, _ dependencies: Target.Dependency...) -> Target {
    .target(name: name, dependencies: dependencies, path: path, swiftSettings: strict)
}

/// An executable in Swift.
func program(_ name: String, path: String? = nil, _ dependencies: Target.Dependency...) -> Target {
    .executableTarget(name: name, dependencies: dependencies, path: path, swiftSettings: strict)
}

/// The tests in the folder of their name.
func tests(_ name: String, exclude: [String] = [], _ dependencies: Target.Dependency...) -> Target {
    .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

// MARK: - Products of other packages

extension Target.Dependency {
    static let argumentParser = product(name: "ArgumentParser", package: "swift-argument-parser")
    static let coreMetrics = product(name: "CoreMetrics", package: "swift-metrics")
    static let crypto = product(name: "Crypto", package: "swift-crypto")
    static let grdb = product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Store"]))
    static let inMemoryTracing = product(name: "InMemoryTracing", package: "swift-distributed-tracing")
    static let logging = product(name: "Logging", package: "swift-log")
    static let metrics = product(name: "Metrics", package: "swift-metrics")
    static let metricsTestKit = product(name: "MetricsTestKit", package: "swift-metrics")
    static let nioConcurrencyHelpers = product(name: "NIOConcurrencyHelpers", package: "swift-nio")
    static let nioCore = product(name: "NIOCore", package: "swift-nio")
    static let nioEmbedded = product(name: "NIOEmbedded", package: "swift-nio")
    static let nioHTTP1 = product(name: "NIOHTTP1", package: "swift-nio")
    static let nioPosix = product(name: "NIOPosix", package: "swift-nio")
    static let nioSSL = product(name: "NIOSSL", package: "swift-nio-ssl")
    static let nioTLS = product(name: "NIOTLS", package: "swift-nio")
    static let nioWebSocket = product(name: "NIOWebSocket", package: "swift-nio")
    static let serviceLifecycle = product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
    static let serviceLifecycleTestKit = product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle")
    static let swiftASN1 = product(name: "SwiftASN1", package: "swift-asn1")
    static let swiftProtobuf = product(name: "SwiftProtobuf", package: "swift-protobuf")
    static let swiftProtobufPluginLibrary = product(name: "SwiftProtobufPluginLibrary", package: "swift-protobuf")
    static let tracing = product(name: "Tracing", package: "swift-distributed-tracing")
    static let unixSignals = product(name: "UnixSignals", package: "swift-service-lifecycle")
    static let x509 = product(name: "X509", package: "swift-certificates")
}

// MARK: - codegen/: everything that makes code

let codegen: [Target] = [
    swift("LifelineCodegen", path: "codegen/LifelineCodegen", .swiftProtobuf, .swiftProtobufPluginLibrary),
    program(
        "protoc-gen-lifeline",
        path: "codegen/protoc-gen-lifeline",
        "LifelineCodegen",
        .swiftProtobuf,
        .swiftProtobufPluginLibrary
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
]

// MARK: - Sources/: messages

let messages: [Target] = [
    .systemLibrary(name: "CProtobufC", pkgConfig: "libprotobuf-c", providers: [.apt(["libprotobuf-c-dev"])]),
    c("CLifelineMessages"),
    swift("LifelineMessages", "CProtobufC", "CLifelineMessages"),
    c("CLifelineWellKnownTypes", "CLifelineMessages"),
    swift("LifelineWellKnownTypes", "LifelineMessages", "CLifelineWellKnownTypes"),
    c("CLifelineDescriptorTypes", "CLifelineMessages"),
    swift("LifelineDescriptorTypes", "LifelineMessages", "CLifelineDescriptorTypes"),
    swift(
        "LifelineReflection",
        "CProtobufC",
        "CLifelineMessages",
        "LifelineDescriptorTypes",
        "LifelineMessages",
        "LifelineWellKnownTypes"
    ),
    c("CLifelineProtos", "CLifelineMessages", "CLifelineWellKnownTypes"),
    swift("LifelineProtos", "LifelineMessages", "LifelineWellKnownTypes", "CLifelineProtos"),
]

// MARK: - Sources/: the API of swift-protobuf

let compatibility: [Target] = [
    swift(
        "LifelineSwiftProtobufCompatibility",
        "CProtobufC",
        "CLifelineDescriptorTypes",
        "CLifelineMessages",
        "CLifelineWellKnownTypes",
        "LifelineCore",
        "LifelineMessageStreams",
        "LifelineMessages",
        "LifelineReflection",
        "LifelineWellKnownTypes"
    )
]

// MARK: - Sources/: connections

let connections: [Target] = [
    swift("LifelineCore"),
    swift("LifelineMessageStreams", "LifelineCore", "LifelineMessages"),
    swift("LifelineRuntime", "LifelineCore", .nioConcurrencyHelpers, .nioCore),
    .systemLibrary(name: "CLifelineNetlink"),
    swift(
        "LifelineReachability",
        "CLifelineNetlink",
        "LifelineCore",
        "LifelineRuntime",
        .logging,
        .nioConcurrencyHelpers,
        .nioCore,
        .nioPosix
    ),
    swift(
        "LifelineTransport",
        "LifelineCore",
        "LifelineRuntime",
        .coreMetrics,
        .crypto,
        .logging,
        .nioConcurrencyHelpers,
        .nioCore,
        .nioHTTP1,
        .nioPosix,
        .nioSSL,
        .nioTLS,
        .nioWebSocket,
        .swiftASN1,
        .x509
    ),
]

// MARK: - Sources/: clients, servers and sessions

let lifeline: [Target] = [
    swift(
        "Lifeline",
        "LifelineCore",
        "LifelineMessages",
        "LifelineReachability",
        "LifelineRuntime",
        "LifelineTransport",
        .logging,
        .metrics,
        .nioConcurrencyHelpers,
        .serviceLifecycle,
        .tracing
    ),
    swift(
        "LifelineOlderFramings",
        "Lifeline",
        "LifelineCore",
        "LifelineMessages",
        "LifelineRuntime",
        "LifelineTransport",
        .logging,
        .nioConcurrencyHelpers,
        .nioCore,
        .serviceLifecycle
    ),
    c("CLifelineFleet", "CLifelineMessages"),
    swift(
        "LifelineFleet",
        "CLifelineFleet",
        "Lifeline",
        "LifelineCore",
        "LifelineMessages",
        "LifelineRuntime",
        .logging,
        .nioConcurrencyHelpers,
        .serviceLifecycle
    ),
    c("CLifelineSessionReflection", "CLifelineMessages"),
    swift(
        "LifelineSessionReflection",
        "CLifelineSessionReflection",
        "Lifeline",
        "LifelineDescriptorTypes",
        "LifelineMessages",
        "LifelineReflection"
    ),
    swift("LifelineStore", "Lifeline", .grdb),
    swift(
        "LifelineFleetRedis",
        "Lifeline",
        "LifelineCore",
        "LifelineFleet",
        "LifelineRuntime",
        "LifelineTransport",
        .crypto,
        .logging,
        .nioConcurrencyHelpers,
        .nioCore
    ),
    .target(name: "CLifelineTesting"),
    swift(
        "LifelineTesting",
        "CLifelineTesting",
        "Lifeline",
        "LifelineCore",
        "LifelineFleet",
        "LifelineMessages",
        "LifelineRuntime",
        "LifelineTransport",
        .logging,
        .nioConcurrencyHelpers,
        .nioCore
    ),
    swift("SampleServices", "Lifeline", "LifelineProtos"),
    program(
        "LifelineCLI",
        "Lifeline",
        "LifelineCore",
        "LifelineDescriptorTypes",
        "LifelineMessages",
        "LifelineOlderFramings",
        "LifelineProtos",
        "LifelineReachability",
        "LifelineReflection",
        "LifelineSessionReflection",
        "LifelineStore",
        "LifelineWellKnownTypes",
        "SampleServices",
        .argumentParser,
        .grdb,
        .logging,
        .unixSignals
    ),
]

// MARK: - Examples/

let examples: [Target] = [
    program(
        "WebChatServer",
        path: "Examples/web-chat/server",
        "Lifeline",
        "LifelineProtos",
        "LifelineWellKnownTypes",
        .argumentParser,
        .unixSignals
    ),
    c("CTokenStreamProtos", path: "Examples/token-stream/CTokenStreamProtos", "CLifelineMessages"),
    swift(
        "TokenStreamProtos",
        path: "Examples/token-stream/TokenStreamProtos",
        "CTokenStreamProtos",
        "Lifeline",
        "LifelineMessages"
    ),
    program(
        "TokenStreamServer",
        path: "Examples/token-stream/server",
        "Lifeline",
        "TokenStreamProtos",
        .argumentParser,
        .unixSignals
    ),
    program(
        "TokenStreamClient",
        path: "Examples/token-stream/client",
        "Lifeline",
        "TokenStreamProtos",
        .argumentParser,
        .logging
    ),
    c(
        "CChatFleetProtos",
        path: "Examples/chat-fleet/CChatFleetProtos",
        "CLifelineMessages",
        "CLifelineWellKnownTypes"
    ),
    swift(
        "ChatFleetProtos",
        path: "Examples/chat-fleet/ChatFleetProtos",
        "CChatFleetProtos",
        "Lifeline",
        "LifelineMessages",
        "LifelineWellKnownTypes"
    ),
    program(
        "ChatFleetServer",
        path: "Examples/chat-fleet/server",
        "ChatFleetProtos",
        "Lifeline",
        "LifelineFleet",
        "LifelineFleetRedis",
        "LifelineWellKnownTypes",
        .argumentParser,
        .logging,
        .serviceLifecycle,
        .unixSignals
    ),
    c("CClubProtos", path: "Examples/club/CClubProtos", "CLifelineMessages"),
    swift("ClubProtos", path: "Examples/club/ClubProtos", "CClubProtos", "Lifeline", "LifelineMessages"),
    swift("Club", path: "Examples/club/Club", "ClubProtos", "Lifeline", "LifelineMessages"),
    c("CTelemetryProtos", path: "Examples/telemetry/CTelemetryProtos", "CLifelineMessages"),
    swift(
        "TelemetryProtos",
        path: "Examples/telemetry/TelemetryProtos",
        "CTelemetryProtos",
        "Lifeline",
        "LifelineMessages"
    ),
    program(
        "TelemetryGateway",
        path: "Examples/telemetry/gateway",
        "Lifeline",
        "LifelineStore",
        "TelemetryProtos",
        .argumentParser,
        .grdb
    ),
    program(
        "TelemetryCollector",
        path: "Examples/telemetry/collector",
        "Lifeline",
        "LifelineStore",
        "TelemetryProtos",
        .argumentParser,
        .grdb
    ),
    program(
        "Thermostat",
        path: "Examples/thermostat/Thermostat",
        "Lifeline",
        "LifelineOlderFramings",
        .argumentParser,
        .logging
    ),
]

// MARK: - Benchmarks/: what measures more than the public API

let benchmarks: [Target] = [
    program(
        "RedisBenchmarks",
        path: "Benchmarks/Redis",
        "Lifeline",
        "LifelineCore",
        "LifelineFleet",
        "LifelineFleetRedis",
        "LifelineMessages",
        .nioCore
    ),
    c("CHeap", path: "Benchmarks/Idle/CHeap"),
    program(
        "IdleBenchmarks",
        path: "Benchmarks/Idle/IdleBenchmarks",
        "CHeap",
        "Lifeline",
        "LifelineMessages",
        "LifelineProtos",
        .logging,
        .nioCore,
        .nioPosix
    ),
]

// MARK: - Tests/: one target for each of Sources/ and codegen/, and what they share

let unitTests: [Target] = [
    swift(
        "LifelineTestSupport",
        path: "Tests/LifelineTestSupport",
        .crypto,
        .logging,
        .nioConcurrencyHelpers,
        .nioPosix,
        .swiftASN1,
        .x509
    ),
    swift(
        "LifelineClientTestSupport",
        path: "Tests/LifelineClientTestSupport",
        "Lifeline",
        "LifelineCore",
        "LifelineRuntime",
        "LifelineTestSupport",
        "LifelineTransport",
        .nioConcurrencyHelpers,
        .nioCore
    ),
    c(
        "CTestProtos",
        path: "Tests/CTestProtos",
        "CLifelineDescriptorTypes",
        "CLifelineMessages",
        "CLifelineWellKnownTypes"
    ),
    swift(
        "TestProtos",
        path: "Tests/TestProtos",
        "CTestProtos",
        "LifelineDescriptorTypes",
        "LifelineMessages",
        "LifelineWellKnownTypes"
    ),
    c(
        "CTestServices",
        path: "Tests/CTestServices",
        "CLifelineDescriptorTypes",
        "CLifelineMessages",
        "CLifelineWellKnownTypes"
    ),
    swift(
        "TestServices",
        path: "Tests/TestServices",
        "CTestServices",
        "Lifeline",
        "LifelineDescriptorTypes",
        "LifelineMessages",
        "LifelineWellKnownTypes",
        "TestProtos"
    ),
    tests("LifelineCodegenTests", "LifelineCodegen", .swiftProtobuf, .swiftProtobufPluginLibrary),
    tests(
        "LifelineMessagesTests",
        "CLifelineMessages",
        "LifelineMessages",
        "LifelineProtos",
        "LifelineTestSupport",
        "LifelineWellKnownTypes",
        "TestProtos"
    ),
    tests(
        "LifelineReflectionTests",
        "CLifelineMessages",
        "LifelineDescriptorTypes",
        "LifelineMessages",
        "LifelineProtos",
        "LifelineReflection",
        "LifelineTestSupport",
        "LifelineWellKnownTypes",
        "TestProtos"
    ),
    swift(
        "CompatibilityTestProtos",
        path: "Tests/CompatibilityTestProtos",
        "CLifelineProtos",
        "CTestProtos",
        "LifelineMessages",
        "LifelineSwiftProtobufCompatibility"
    ),
    tests(
        "LifelineSwiftProtobufCompatibilityTests",
        "CompatibilityTestProtos",
        "LifelineSwiftProtobufCompatibility",
        "LifelineTestSupport"
    ),
    tests("LifelineCoreTests", "LifelineCore", "LifelineTestSupport"),
    tests(
        "LifelineMessageStreamsTests",
        "LifelineCore",
        "LifelineMessageStreams",
        "LifelineMessages",
        "LifelineProtos",
        "LifelineTestSupport"
    ),
    tests(
        "LifelineReachabilityTests",
        "FaultClient",
        "FaultPeer",
        "FaultSupport",
        "LifelineCLI",
        "LifelineCore",
        "LifelineReachability",
        "LifelineRuntime",
        "LifelineTestSupport",
        .logging,
        .nioCore,
        .nioEmbedded,
        .nioPosix
    ),
    tests(
        "LifelineTransportTests",
        "LifelineCore",
        "LifelineRuntime",
        "LifelineTestSupport",
        "LifelineTransport",
        .coreMetrics,
        .logging,
        .metricsTestKit,
        .nioConcurrencyHelpers,
        .nioCore,
        .nioEmbedded,
        .nioHTTP1,
        .nioPosix,
        .nioSSL,
        .nioWebSocket
    ),
    tests(
        "LifelineTests",
        "Lifeline",
        "LifelineClientTestSupport",
        "LifelineCore",
        "LifelineMessages",
        "LifelineProtos",
        "LifelineRuntime",
        "LifelineTestSupport",
        "LifelineTransport",
        "LifelineWellKnownTypes",
        "TestProtos",
        .inMemoryTracing,
        .logging,
        .metrics,
        .metricsTestKit,
        .nioConcurrencyHelpers,
        .nioCore,
        .nioPosix,
        .serviceLifecycle,
        .serviceLifecycleTestKit,
        .tracing,
        .unixSignals
    ),
    tests(
        "LifelineFleetTests",
        "Lifeline",
        "LifelineClientTestSupport",
        "LifelineCore",
        "LifelineFleet",
        "LifelineProtos",
        "LifelineRuntime",
        "LifelineTestSupport",
        "LifelineTesting",
        "SampleServices",
        .logging,
        .nioConcurrencyHelpers,
        .serviceLifecycleTestKit
    ),
    tests(
        "LifelineSessionReflectionTests",
        "Lifeline",
        "LifelineDescriptorTypes",
        "LifelineMessages",
        "LifelineReflection",
        "LifelineSessionReflection",
        "LifelineWellKnownTypes",
        "TestProtos",
        "TestServices"
    ),
    tests(
        "LifelineStoreTests",
        "Lifeline",
        "LifelineMessages",
        "LifelineRuntime",
        "LifelineStore",
        "LifelineTestSupport",
        "LifelineWellKnownTypes",
        .grdb,
        .nioConcurrencyHelpers
    ),
    tests(
        "LifelineFleetRedisTests",
        "Lifeline",
        "LifelineCore",
        "LifelineFleet",
        "LifelineFleetRedis",
        "LifelineProtos",
        "LifelineTestSupport",
        "LifelineTesting",
        "SampleServices",
        .logging,
        .nioConcurrencyHelpers,
        .nioCore,
        .serviceLifecycle,
        .unixSignals
    ),
    tests(
        "LifelineOlderFramingsTests",
        "Lifeline",
        "LifelineClientTestSupport",
        "LifelineCore",
        "LifelineOlderFramings",
        "LifelineRuntime",
        "LifelineTestSupport",
        "LifelineTransport",
        .nioConcurrencyHelpers,
        .nioCore,
        .nioEmbedded
    ),
    tests(
        "GeneratedServiceTests",
        "Lifeline",
        "LifelineMessages",
        "LifelineProtos",
        "LifelineWellKnownTypes",
        "SampleServices",
        "TestServices",
        .logging,
        .nioConcurrencyHelpers
    ),
    tests(
        "LifelineCLITests",
        "Lifeline",
        "LifelineCLI",
        "LifelineCore",
        "LifelineMessages",
        "LifelineProtos",
        "LifelineReachability",
        "LifelineReflection",
        "LifelineSessionReflection",
        "LifelineStore",
        "LifelineTestSupport",
        "LifelineWellKnownTypes",
        "SampleServices",
        "TestProtos",
        .grdb
    ),
]

// MARK: - Tests/: random stories on simulated time

let simulations: [Target] = [
    swift(
        "LifelineScenarios",
        path: "Tests/LifelineScenarios",
        "Lifeline",
        "LifelineCore",
        "LifelineFleet",
        "LifelineProtos",
        "LifelineTesting",
        "SampleServices",
        .nioConcurrencyHelpers
    ),
    swift(
        "ClubStories",
        path: "Tests/ClubStories",
        "Club",
        "ClubProtos",
        "Lifeline",
        "LifelineTesting",
        .logging
    ),
    program(
        "ScenarioSoak",
        path: "Tests/ScenarioSoak",
        "ClubStories",
        "LifelineScenarios",
        "LifelineTesting",
        .nioConcurrencyHelpers
    ),
    tests(
        "LifelineTestingTests",
        "Lifeline",
        "LifelineProtos",
        "LifelineScenarios",
        "LifelineTesting",
        "LifelineWellKnownTypes",
        "SampleServices",
        .nioConcurrencyHelpers
    ),
    tests(
        "ClubTests",
        "Club",
        "ClubProtos",
        "ClubStories",
        "Lifeline",
        "LifelineTesting"
    ),
]

// MARK: - Tests/: the examples, and the package itself

let wholes: [Target] = [
    tests(
        "ExampleTests",
        "LifelineClientTestSupport",
        "LifelineOlderFramings",
        "LifelineTestSupport",
        "TelemetryCollector",
        "TelemetryGateway",
        "Thermostat",
        .grdb
    ),
    // It looks into programs of this package.
    tests("PackageTests", "AutobahnPeer", "LifelineTestSupport", "SchemaRoundTrip", "TelemetryCollector"),
]

// MARK: - Tests/: other people's programs

let interop: [Target] = [
    tests(
        "InteropTests",
        exclude: ["Peers"],
        "ChatFleetServer",
        "Lifeline",
        "LifelineCLI",
        "LifelineCore",
        "LifelineOlderFramings",
        "LifelineProtos",
        "LifelineTestSupport",
        "LifelineTesting",
        "LifelineWellKnownTypes",
        "TokenStreamClient",
        "TokenStreamProtos",
        "TokenStreamServer",
        "WebChatServer",
        .logging,
        .nioConcurrencyHelpers
    ),
    // The client and server that Autobahn's WebSocket test suite talks to.
    program("AutobahnPeer", path: "Tests/AutobahnPeer", "Lifeline", .argumentParser, .logging),
    // The program of codegen/check-schemas: it reads and writes messages of published schemas.
    program("SchemaRoundTrip", path: "Tests/SchemaRoundTrip", "LifelineMessages", "LifelineReflection"),
]

// MARK: - Tests/: faults of real networks

let faults: [Target] = [
    swift(
        "FaultSupport",
        path: "Tests/FaultSupport",
        "LifelineCore",
        "LifelineRuntime",
        "LifelineTransport",
        .argumentParser
    ),
    program(
        "FaultClient",
        path: "Tests/FaultPrograms/Client",
        "FaultSupport",
        "Lifeline",
        "LifelineCore",
        "LifelineProtos",
        .argumentParser,
        .logging
    ),
    program(
        "FaultPeer",
        path: "Tests/FaultPrograms/Peer",
        "FaultSupport",
        "Lifeline",
        "LifelineProtos",
        .argumentParser,
        .logging
    ),
    program("FaultTable", path: "Tests/FaultPrograms/Table", "FaultSupport", .argumentParser),
    tests("FaultTests", "FaultClient", "FaultPeer", "FaultSupport", "LifelineCore"),
]

// MARK: - Tests/: sessions whose connections are cut

let sessionCuts: [Target] = [
    swift(
        "SessionCutSupport",
        path: "Tests/SessionCutSupport",
        "FaultSupport",
        "Lifeline",
        "LifelineCore",
        "LifelineProtos",
        .argumentParser,
        .logging
    ),
    program(
        "SessionCutClient",
        path: "Tests/SessionCutPrograms/Client",
        "FaultSupport",
        "Lifeline",
        "LifelineProtos",
        "SessionCutSupport",
        .argumentParser
    ),
    program(
        "SessionCutServer",
        path: "Tests/SessionCutPrograms/Server",
        "FaultSupport",
        "Lifeline",
        "LifelineProtos",
        "SessionCutSupport",
        .argumentParser
    ),
    program(
        "SessionCutRelay",
        path: "Tests/SessionCutPrograms/Relay",
        "FaultSupport",
        "LifelineTestSupport",
        "SessionCutSupport",
        .argumentParser
    ),
    program(
        "SessionCutProof",
        path: "Tests/SessionCutPrograms/Proof",
        "FaultSupport",
        "LifelineTestSupport",
        "SessionCutSupport",
        .argumentParser
    ),
    tests(
        "SessionCutTests",
        "FaultSupport",
        "LifelineTestSupport",
        "SessionCutClient",
        "SessionCutProof",
        "SessionCutRelay",
        "SessionCutServer",
        "SessionCutSupport"
    ),
]

// MARK: - Tests/: processes that are killed

let kills: [Target] = [
    program(
        "KillProof",
        path: "Tests/KillProof",
        "FaultSupport",
        "Lifeline",
        "LifelineStore",
        "LifelineTestSupport",
        "LifelineWellKnownTypes",
        .argumentParser,
        .grdb,
        .logging
    ),
    tests("KillTests", "KillProof", "LifelineTestSupport"),
]

// MARK: - Tests/: servers of a fleet that fail

let fleets: [Target] = [
    swift("FleetProofSupport", path: "Tests/FleetProofSupport"),
    program(
        "FleetProof",
        path: "Tests/FleetProof",
        "FaultSupport",
        "FleetProofSupport",
        "Lifeline",
        "LifelineCore",
        "LifelineFleet",
        "LifelineFleetRedis",
        "LifelineProtos",
        "LifelineRuntime",
        .argumentParser,
        .logging,
        .serviceLifecycle,
        .unixSignals
    ),
    tests("FleetProofTests", "FaultSupport", "FleetProof", "FleetProofSupport", "LifelineTestSupport"),
]

// MARK: - The package

let package = Package(
    name: "lifeline",
    products: [
        .library(name: "Lifeline", targets: ["Lifeline"]),
        .library(name: "LifelineFleet", targets: ["LifelineFleet"]),
        .library(name: "LifelineFleetRedis", targets: ["LifelineFleetRedis"]),
        .library(name: "LifelineMessageStreams", targets: ["LifelineMessageStreams"]),
        .library(name: "LifelineOlderFramings", targets: ["LifelineOlderFramings"]),
        .library(name: "LifelineReachability", targets: ["LifelineReachability"]),
        .library(
            name: "LifelineMessages",
            targets: ["LifelineDescriptorTypes", "LifelineMessages", "LifelineReflection", "LifelineWellKnownTypes"]
        ),
        .library(
            name: "LifelineSwiftProtobufCompatibility",
            targets: ["LifelineMessages", "LifelineSwiftProtobufCompatibility"]
        ),
        .library(name: "LifelineSessionReflection", targets: ["LifelineSessionReflection"]),
        .library(name: "LifelineStore", targets: ["LifelineStore"]),
        .library(name: "LifelineTesting", targets: ["LifelineTesting"]),
        .executable(name: "lifeline", targets: ["LifelineCLI"]),
        .plugin(name: "GenerateMessages", targets: ["GenerateMessages"]),
        .executable(name: "protoc-gen-lifeline", targets: ["protoc-gen-lifeline"]),
    ],
    traits: [
        // Without it, nobody fetches or builds GRDB, and LifelineStore and its tests are empty.
        .trait(name: "Store", description: "LifelineStore, which needs GRDB and SQLite.")
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.2"),
        // Certificates: parsing, and verification that says what failed.
        .package(url: "https://github.com/apple/swift-asn1.git", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates.git", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2"),
        // The interceptors that carry a trace from a client to its server.
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.37.6"),
        // The protoc plugin only.
        .package(url: "https://github.com/apple/swift-protobuf.git", from: "1.39.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
        // SQLite for durable sessions: of LifelineStore alone, with the trait Store.
        .package(url: "https://github.com/groue/GRDB.swift.git", from: "7.10.0"),
    ],
    targets: codegen + messages + compatibility + connections + lifeline + examples + benchmarks + unitTests
        + simulations + wholes + interop + faults + sessionCuts + kills + fleets,
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c11
)
