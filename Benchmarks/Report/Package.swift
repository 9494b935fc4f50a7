// swift-tools-version: 6.3

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// The common report of the benchmarks of messages and connections: rows, tables, charts and goals.
let package = Package(
    name: "report",
    products: [
        .library(name: "BenchmarkReport", targets: ["BenchmarkReport"])
    ],
    targets: [
        .target(name: "BenchmarkReport", swiftSettings: strict),
        .testTarget(name: "BenchmarkReportTests", dependencies: ["BenchmarkReport"], swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
