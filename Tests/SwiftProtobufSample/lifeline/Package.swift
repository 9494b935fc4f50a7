// swift-tools-version: 6.1

import Foundation
import PackageDescription

let package = Package(
    name: "lifeline-sample",
    dependencies: [.package(name: "lifeline", path: Context.environment["LIFELINE_PACKAGE"]!)],
    targets: [
        .target(
            name: "CSampleProtos",
            dependencies: [.product(name: "LifelineSwiftProtobufCompatibility", package: "lifeline")]
        ),
        .executableTarget(
            name: "Program",
            dependencies: [
                "CSampleProtos", .product(name: "LifelineSwiftProtobufCompatibility", package: "lifeline"),
            ]
        ),
    ]
)
