import Foundation
import PackagePlugin

/// The two targets of the user's package that generated code goes into.
struct Targets {
    let swift: any Target
    let c: any Target

    init(options: Options, package: Package) throws {
        let targets = package.targets
        let swiftName = try options.swiftTarget ?? Self.guessedSwiftTarget(among: targets)
        let cName = options.cTarget ?? "C\(swiftName)"
        guard let swift = targets.first(where: { $0.name == swiftName }),
            let c = targets.first(where: { $0.name == cName })
        else {
            throw PluginError(Self.remedy(swiftTarget: swiftName, cTarget: cName))
        }
        self.swift = swift
        self.c = c
    }

    private static func guessedSwiftTarget(among targets: [any Target]) throws -> String {
        let names = Set(targets.map(\.name))
        let candidates = names.filter { names.contains("C\($0)") }
        guard let name = candidates.first, candidates.count == 1 else {
            throw PluginError(
                candidates.isEmpty
                    ? remedy(swiftTarget: "Messages", cTarget: "CMessages")
                    : "Name the Swift target with --swift-target: \(candidates.sorted().joined(separator: ", ")) all qualify."
            )
        }
        return name
    }

    private static func remedy(swiftTarget: String, cTarget: String) -> String {
        """
        Package.swift declares no targets \(swiftTarget) and \(cTarget) for the generated code. Add

            .target(name: "\(cTarget)", dependencies: [.product(name: "LifelineMessages", package: "lifeline")]),
            .target(name: "\(swiftTarget)", dependencies: ["\(cTarget)", .product(name: "LifelineMessages", package: "lifeline")]),

        and the folders Sources/\(cTarget)/include and Sources/\(swiftTarget), or name other targets with --swift-target and \
        --c-target.
        """
    }
}
