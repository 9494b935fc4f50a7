// swift-tools-version: 6.3
import PackageDescription

let messages = Target.Dependency.product(name: "LifelineMessages", package: "lifeline")
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]
let strictC: [CSetting] = [.enableWarning("all"), .enableWarning("extra"), .treatAllWarnings(as: .error)]
let package = Package(
    name: "hello",
    dependencies: [.package(name: "lifeline", path: "LIFELINE_PATH")],
    targets: [
        .target(name: "CGeoProtos", dependencies: [messages], cSettings: strictC),
        .target(name: "GeoProtos", dependencies: ["CGeoProtos", messages], swiftSettings: strict),
        .target(name: "CHello", dependencies: ["CGeoProtos", messages], cSettings: strictC),
        .executableTarget(name: "hello", dependencies: ["CHello", "GeoProtos", messages], swiftSettings: strict),
    ]
)
