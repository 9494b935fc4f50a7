// swift-tools-version: 6.3

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// A separate package, like the others. `../durable` builds and runs it.
let package = Package(
    name: "durable",
    products: [.executable(name: "DurableBenchmarks", targets: ["DurableBenchmarks"])],
    dependencies: [
        .package(name: "lifeline", path: "../..", traits: ["Store"]),
        .package(url: "https://github.com/groue/GRDB.swift.git", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
    ],
    targets: [
        .executableTarget(
            name: "DurableBenchmarks",
            dependencies: [
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Lifeline", package: "lifeline"),
                .product(name: "LifelineMessages", package: "lifeline"),
                .product(name: "LifelineStore", package: "lifeline"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        )
    ],
    swiftLanguageModes: [.v6]
)
