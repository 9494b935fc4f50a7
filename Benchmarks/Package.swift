// swift-tools-version: 6.3

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// Only a root package may have these, which this one always is.
let strictC: [CSetting] = [.unsafeFlags(["-Wall", "-Wextra", "-Werror"])]
let strictCxx: [CXXSetting] = [.unsafeFlags(["-Wall", "-Wextra", "-Werror"])]

// A separate package, so that the contenders are not dependencies of Lifeline. `run` generates the missing code, and
// builds.
let package = Package(
    name: "benchmarks",
    products: [
        .executable(name: "message-benchmarks", targets: ["MessageBenchmarks"]),
        // Not linked, but loaded with LD_PRELOAD to count allocations.
        .library(name: "AllocationCounter", type: .dynamic, targets: ["CAllocationCounter"]),
    ],
    dependencies: [
        // With the trait of the scripts that build in the same folder, so that nothing is built again.
        .package(name: "lifeline", path: "..", traits: ["Store"]),
        .package(name: "report", path: "Report"),
        .package(url: "https://github.com/apple/swift-protobuf.git", from: "1.39.0"),
    ],
    targets: [
        .executableTarget(
            name: "MessageBenchmarks",
            dependencies: [
                "CContender",
                "CLifelineChat",
                "CppContender",
                "NativeContender",
                .product(name: "BenchmarkReport", package: "report"),
                .product(name: "LifelineMessages", package: "lifeline"),
                .product(name: "LifelineSwiftProtobufCompatibility", package: "lifeline"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: strict
        ),
        // Generated: the C half of Lifeline's code.
        .target(
            name: "CLifelineChat",
            dependencies: [.product(name: "LifelineMessages", package: "lifeline")],
            cSettings: strictC
        ),
        // The contenders in other languages, behind one C interface.
        .target(name: "NativeContender"),
        .systemLibrary(
            name: "LibProtobufC",
            pkgConfig: "libprotobuf-c",
            providers: [.apt(["libprotobuf-c-dev"])]
        ),
        .target(
            name: "CContender",
            dependencies: ["LibProtobufC", "NativeContender"],
            cSettings: strictC + [.headerSearchPath("Generated")]
        ),
        .systemLibrary(
            name: "LibProtobuf",
            pkgConfig: "protobuf",
            providers: [.apt(["libprotobuf-dev"])]
        ),
        .target(
            name: "CppContender",
            dependencies: ["LibProtobuf", "NativeContender"],
            // Without NDEBUG, the assertions in protobuf's headers would be measured too.
            cxxSettings: strictCxx + [.headerSearchPath("Generated"), .define("NDEBUG")]
        ),
        .target(name: "CAllocationCounter", cSettings: strictC),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c11,
    cxxLanguageStandard: .cxx17
)
