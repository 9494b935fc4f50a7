import Foundation
import PackagePlugin

/// `swift package generate-messages`: runs protoc on all .proto files of a folder and writes into the package's
/// targets.
@main
struct GenerateMessages: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) async throws {
        guard let options = try Options(arguments) else {
            print(Options.usage)
            return
        }
        let package = context.package
        let protoFolder = package.directoryURL.appending(argument: options.protos)
        let protoc = try options.protoc.map(package.directoryURL.appending(argument:)) ?? installedProtoc()
        let importFolders =
            options.importPaths.map(package.directoryURL.appending(argument:))
            + [ownImportFolder(of: protoc), URL(filePath: "/usr/local/include"), URL(filePath: "/usr/include")]
            .filter(exists)
        let targets = try Targets(options: options, package: package)
        let protos = try protoFiles(below: protoFolder)
        let parameter =
            (["SwiftTarget=\(targets.swift.name)"] + (targets.c.map { ["CTarget=\($0.name)"] } ?? [])
            + ["Visibility=\(options.visibility)", "Services=\(options.services)"]
            + ["Compatibility=\(options.compatibility)"]
            + (options.accessLevelOnImports.map { ["UseAccessLevelOnImports=\($0)"] } ?? [])
            + options.moduleMappings.map { "ModuleMapping=\($0)" }).joined(separator: ",")
        let output = try context.pluginWorkDirectoryURL.emptiedFolder(named: "generated")

        try run(
            protoc,
            ["--plugin=protoc-gen-lifeline=\(try context.tool(named: "protoc-gen-lifeline").url.path)"]
                + ([protoFolder] + importFolders).map { "-I\($0.path)" } + [try importPathOfOptions(in: package)]
                + ["--lifeline_out=\(output.path)", "--lifeline_opt=\(parameter)"] + protos
        )
        try GeneratedFiles(targets: targets, packageFolder: package.directoryURL).replace(with: output)
        print("The code of \(protos.count) .proto file\(protos.count == 1 ? "" : "s") is up to date.")
    }

    /// The .proto files below a folder, as paths relative to it, in order. Hidden folders, like .build, do not count.
    private func protoFiles(below folder: URL) throws -> [String] {
        let paths = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        let protos = paths.filter { $0.hasSuffix(".proto") && !"/\($0)".contains("/.") }.sorted()
        if protos.isEmpty {
            throw PluginError(
                "There are no .proto files in \(folder.path). Put them there, or name their folder with --protos."
            )
        }
        return protos
    }

    /// Lets protoc find `lifeline/options.proto` but no other schema of Lifeline: it maps a path to the file.
    private func importPathOfOptions(in package: Package) throws -> String {
        let packages = [package] + package.dependencies.map(\.package)
        guard let lifeline = packages.first(where: { $0.targets.contains { $0.name == "protoc-gen-lifeline" } }) else {
            throw PluginError("Package.swift does not depend on the package that has protoc-gen-lifeline.")
        }
        let path = "lifeline/options.proto"
        return "-I\(path)=\(lifeline.directoryURL.appending(path: "Protos/\(path)").path)"
    }

    /// The folder, beside `bin`, where a protoc has the well-known types of its own version. Older ones lack features.
    private func ownImportFolder(of protoc: URL) -> URL {
        protoc.resolvingSymlinksInPath().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "include")
    }

    private func installedProtoc() throws -> URL {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let candidates =
            path.split(separator: ":").map { "\($0)/protoc" } + ["/usr/local/bin/protoc", "/usr/bin/protoc"]
        guard let found = candidates.first(where: FileManager.default.isExecutableFile) else {
            throw PluginError("protoc is not installed. Install it (Debian: apt-get install protobuf-compiler).")
        }
        return URL(filePath: found)
    }

    private func exists(_ url: URL) -> Bool { FileManager.default.fileExists(atPath: url.path) }

    private func run(_ tool: URL, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = tool
        process.arguments = arguments
        // The Swift Package Manager closes the plugin's own standard input, and anything may then get its number. A
        // protoc that starts without one gets descriptor 0 for a pipe, and closes it in its plugin.
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        if process.terminationReason != .exit || process.terminationStatus != 0 {
            throw PluginError(
                "\(tool.path) failed; what it printed says why. Files with an edition need protoc 27 or later, and those "
                    + "of edition 2024 protoc 32; --protoc names another one."
            )
        }
    }
}

struct PluginError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension URL {
    /// The URL that a command's argument names: a path from this folder, or an absolute one.
    fileprivate func appending(argument path: String) -> URL {
        path.hasPrefix("/") ? URL(filePath: path) : appending(path: path).standardizedFileURL
    }

    /// A new folder below this one, without what was in it before.
    fileprivate func emptiedFolder(named name: String) throws -> URL {
        let folder = appending(path: name)
        if FileManager.default.fileExists(atPath: folder.path) { try FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }
}
