// swift-tools-version: 6.3

import PackageDescription

// Built by scripts/fuzz, with sanitizers, coverage and libFuzzer: not a part of the package above.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "fuzzers",
    dependencies: [.package(name: "lifeline", path: "../..")],
    targets: [
        // What the tests of the package above use too; a package may not hold a path outside itself, so by links.
        .target(
            name: "CTestProtos",
            dependencies: [.product(name: "LifelineMessages", package: "lifeline")],
            path: "Links/CTestProtos"
        ),
        .target(
            name: "TestProtos",
            dependencies: [.product(name: "LifelineMessages", package: "lifeline"), "CTestProtos"],
            path: "Links/TestProtos",
            swiftSettings: strict
        ),
        .target(
            name: "Mutations",
            dependencies: [.product(name: "LifelineMessages", package: "lifeline"), "TestProtos"],
            path: "Mutations",
            swiftSettings: strict
        ),
        // The parsing of netlink is no API, so that it is built here once more; what does I/O is left out. The names of
        // the targets in Sources are taken, so that what stands in for them here has names of its own.
        .systemLibrary(name: "CNetlink", path: "Links/CLifelineNetlink"),
        .target(name: "Core", path: "Links/Core", swiftSettings: strict),
        .target(
            name: "Netlink",
            dependencies: ["CNetlink", "Core"],
            path: "Links/Netlink",
            swiftSettings: strict + [.unsafeFlags(["-module-alias", "LifelineCore=Core"])]
        ),
        .systemLibrary(name: "CLibFuzzer", path: "CLibFuzzer"),
        .executableTarget(
            name: "netlink",
            dependencies: ["CLibFuzzer", "Netlink"],
            path: "NetlinkMain",
            swiftSettings: strict
        ),
        // The machine of sessions and its wire, and what the tests of both use.
        .target(
            name: "Session",
            dependencies: ["Core", .product(name: "LifelineMessages", package: "lifeline")],
            path: "Links/Session",
            swiftSettings: strict + [.unsafeFlags(["-module-alias", "LifelineCore=Core"])]
        ),
        .executableTarget(
            name: "session",
            dependencies: [
                "CLibFuzzer", "Core", "Session", "TestProtos", .product(name: "LifelineMessages", package: "lifeline"),
            ],
            path: "SessionMain",
            swiftSettings: strict + [
                .unsafeFlags(["-module-alias", "LifelineCore=Core", "-module-alias", "Lifeline=Session"])
            ]
        ),
        .executableTarget(
            name: "descriptors",
            dependencies: ["CLibFuzzer", .product(name: "LifelineMessages", package: "lifeline")],
            path: "DescriptorsMain",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "mutations",
            dependencies: ["CLibFuzzer", "Mutations"],
            path: "MutationsMain",
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c11
)
