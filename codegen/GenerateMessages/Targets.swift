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

extension Targets {
    /// Moves the files below `output`, which has a folder for each target, into the targets, and removes files that an
    /// earlier run generated.
    func replaceGeneratedFiles(with output: URL) throws {
        for target in [swift, c] {
            let generated = output.appending(path: target.name)
            let names = Set(try FileManager.default.subpathsOfDirectory(atPath: generated.path).filter(isGenerated))
            for old in try FileManager.default.subpathsOfDirectory(atPath: target.directoryURL.path).filter(isGenerated)
            where !names.contains(old) {
                try FileManager.default.removeItem(at: target.directoryURL.appending(path: old))
                print("removed \(target.directoryURL.appending(path: old).path)")
            }
            for name in names.sorted() {
                let destination = target.directoryURL.appending(path: name)
                if try replace(destination, with: generated.appending(path: name)) {
                    print("wrote \(destination.path)")
                }
            }
        }
    }

    private func isGenerated(_ path: String) -> Bool {
        [".pb.swift", ".pb-c.c", ".pb-c.h", ".lifeline.c", ".lifeline.h"].contains { path.hasSuffix($0) }
    }

    /// Returns false when the file is the same already: it is not touched, so that it is not built again.
    private func replace(_ destination: URL, with source: URL) throws -> Bool {
        let content = try Data(contentsOf: source)
        if (try? Data(contentsOf: destination)) == content { return false }
        try FileManager.default.createDirectory(
            at: destination.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try content.write(to: destination)
        return true
    }
}
