// swift-tools-version: 6.1

import PackageDescription

let package = Package(
    name: "swift-protobuf-sample",
    dependencies: [.package(url: "https://github.com/apple/swift-protobuf.git", from: "1.39.0")],
    targets: [
        .executableTarget(name: "Program", dependencies: [.product(name: "SwiftProtobuf", package: "swift-protobuf")])
    ]
)
