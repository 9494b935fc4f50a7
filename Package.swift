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
        .library(name: "LifelineMessages", targets: ["LifelineMessages"])
    ],
    targets: [
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
    ],
    swiftLanguageModes: [.v6]
)
