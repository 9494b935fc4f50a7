// swift-tools-version: 6.3
import PackageDescription

let messages = Target.Dependency.product(name: "LifelineMessages", package: "lifeline")
let package = Package(
    name: "hello",
    dependencies: [.package(name: "lifeline", path: "LIFELINE_PATH")],
    targets: [
        .target(name: "CTripProtos", dependencies: [messages]),
        .target(name: "TripProtos", dependencies: ["CTripProtos", messages]),
        .executableTarget(name: "hello", dependencies: ["TripProtos", messages]),
    ]
)
