// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "lifeline",
    targets: [
        .systemLibrary(
            name: "CProtobufC",
            pkgConfig: "libprotobuf-c",
            providers: [.apt(["libprotobuf-c-dev"])]
        ),
        .target(
            name: "CLifelineMessages",
            dependencies: ["CProtobufC"]
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c11
)
