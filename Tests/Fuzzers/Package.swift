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
        // Files that the tests of the package above also use, by links, because a package may not contain a path
        // outside itself.
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
        // The parsing of netlink is not public, so it is built here again, without I/O. The names of the targets in
        // Sources are taken, so their replacements here have other names.
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
        // The session machine and its wire format, and the helpers of their tests.
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
