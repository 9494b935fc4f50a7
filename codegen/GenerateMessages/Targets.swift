import Foundation
import PackagePlugin

/// The targets of the user's package that generated code goes into.
struct Targets {
    let swift: any Target
    /// Nil if only services are generated.
    let c: (any Target)?

    var all: [any Target] { [swift] + (c.map { [$0] } ?? []) }

    init(options: Options, package: Package) throws {
        let targets = package.targets
        if options.services == "only" {
            swift = try Self.targetOfServices(named: options.swiftTarget, among: targets)
            c = nil
            return
        }
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

    private static func targetOfServices(named name: String?, among targets: [any Target]) throws -> any Target {
        guard let name else { throw PluginError("Name the target of the services with --swift-target.") }
        guard let target = targets.first(where: { $0.name == name }) else {
            throw PluginError(
                """
                Package.swift declares no target \(name) for the generated services. Add

                    .target(name: "\(name)", dependencies: [.product(name: "Lifeline", package: "lifeline"), "…"]),

                with the target of the messages in place of …, and the folder Sources/\(name).
                """
            )
        }
        return target
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
