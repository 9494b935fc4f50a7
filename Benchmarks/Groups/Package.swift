// swift-tools-version: 6.3

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// A separate package, like the others. `../groups` builds and runs it.
let package = Package(
    name: "groups",
    products: [.executable(name: "GroupBenchmarks", targets: ["GroupBenchmarks"])],
    dependencies: [
        .package(name: "lifeline", path: "../..", traits: ["Store"]),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
    ],
    targets: [
        .executableTarget(
            name: "GroupBenchmarks",
            dependencies: [
                .product(name: "Lifeline", package: "lifeline"),
                .product(name: "LifelineFleet", package: "lifeline"),
                .product(name: "LifelineMessages", package: "lifeline"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        )
    ],
    swiftLanguageModes: [.v6]
)
