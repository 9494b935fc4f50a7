// swift-tools-version: 6.3

import PackageDescription

// Only messages and their tests. scripts/test builds them optimized with AddressSanitizer, because optimized code frees
// values after their last visible use, and with ThreadSanitizer, not optimized. The package above would also build
// everything that it depends on, which takes ten minutes. The targets are links, because a package may not contain a
// path outside itself.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

func c(_ name: String, _ dependencies: Target.Dependency...) -> Target {
    .target(name: name, dependencies: ["CProtobufC"] + dependencies, path: "Links/\(name)")
}

func swift(_ name: String, _ dependencies: Target.Dependency...) -> Target {
    .target(name: name, dependencies: dependencies, path: "Links/\(name)", swiftSettings: strict)
}

let package = Package(
    name: "optimized-tests",
    targets: [
        .systemLibrary(name: "CProtobufC", path: "Links/CProtobufC", pkgConfig: "libprotobuf-c"),
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
        c("CTestProtos", "CLifelineDescriptorTypes", "CLifelineMessages", "CLifelineWellKnownTypes"),
        swift(
            "TestProtos",
            "CTestProtos",
            "LifelineDescriptorTypes",
            "LifelineMessages",
            "LifelineWellKnownTypes"
        ),
        swift("LifelineCore"),
        swift("LifelineMessageStreams", "LifelineCore", "LifelineMessages"),
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
        ),
        swift(
            "CompatibilityTestProtos",
            "CLifelineProtos",
            "CTestProtos",
            "LifelineMessages",
            "LifelineSwiftProtobufCompatibility"
        ),
        .target(
            name: "LifelineTestSupport",
            path: "Links/LifelineTestSupport",
            sources: ["SeededGenerator.swift"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineMessagesTests",
            dependencies: [
                "CLifelineMessages", "LifelineMessages", "LifelineProtos", "LifelineTestSupport",
                "LifelineWellKnownTypes",
                "TestProtos",
            ],
            path: "Links/LifelineMessagesTests",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineReflectionTests",
            dependencies: [
                "CLifelineMessages", "LifelineDescriptorTypes", "LifelineMessages", "LifelineProtos",
                "LifelineReflection", "LifelineTestSupport", "LifelineWellKnownTypes", "TestProtos",
            ],
            path: "Links/LifelineReflectionTests",
            swiftSettings: strict
        ),
        .testTarget(
            name: "LifelineSwiftProtobufCompatibilityTests",
            dependencies: ["CompatibilityTestProtos", "LifelineSwiftProtobufCompatibility", "LifelineTestSupport"],
            path: "Links/LifelineSwiftProtobufCompatibilityTests",
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c11
)
