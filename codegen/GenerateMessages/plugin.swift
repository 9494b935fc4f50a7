import Foundation
import PackagePlugin

/// `swift package generate-messages`: runs protoc on all .proto files of a folder and writes into the package's targets.
@main
struct GenerateMessages: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) async throws {
        guard let options = try Options(arguments) else {
            print(Options.usage)
            return
        }
        let package = context.package
        let protoFolder = URL(filePath: options.protos, relativeTo: package.directoryURL)
        let targets = try Targets(options: options, package: package)
        let protos = try protoFiles(below: protoFolder)
        let parameter =
            (["SwiftTarget=\(targets.swift.name)", "CTarget=\(targets.c.name)", "Visibility=\(options.visibility)"]
            + options.moduleMappings.map { "ModuleMapping=\($0)" }).joined(separator: ",")
        let output = try context.pluginWorkDirectoryURL.emptiedFolder(named: "generated")

        try run(
            protoc(),
            ["--plugin=protoc-gen-lifeline=\(try context.tool(named: "protoc-gen-lifeline").url.path)"]
                + ["-I\(protoFolder.path)"] + options.importPaths.map { "-I\($0)" }
                + ["-I/usr/local/include", "-I/usr/include"].filter(isFolder)
                + ["--lifeline_out=\(output.path)", "--lifeline_opt=\(parameter)"] + protos
        )
        try targets.replaceGeneratedFiles(with: output)
    }

    /// The .proto files below a folder, as paths relative to it, in order.
    private func protoFiles(below folder: URL) throws -> [String] {
        let paths = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        let protos = paths.filter { $0.hasSuffix(".proto") }.sorted()
        if protos.isEmpty {
            throw PluginError(
                "There are no .proto files in \(folder.path). Put them there, or name their folder with --protos."
            )
        }
        return protos
    }

    private func protoc() throws -> URL {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let candidates =
            path.split(separator: ":").map { "\($0)/protoc" } + ["/usr/local/bin/protoc", "/usr/bin/protoc"]
        guard let found = candidates.first(where: FileManager.default.isExecutableFile) else {
            throw PluginError("protoc is not installed. Install it (Debian: apt-get install protobuf-compiler).")
        }
        return URL(filePath: found)
    }

    private func isFolder(_ flag: String) -> Bool { FileManager.default.fileExists(atPath: String(flag.dropFirst(2))) }

    private func run(_ tool: URL, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = tool
        process.arguments = arguments
        try process.run()
        process.waitUntilExit()
        if process.terminationReason != .exit || process.terminationStatus != 0 {
            throw PluginError("protoc failed; it says why above.")
        }
    }
}

struct PluginError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension URL {
    /// A new folder below this one, without what was in it before.
    fileprivate func emptiedFolder(named name: String) throws -> URL {
        let folder = appending(path: name)
        if FileManager.default.fileExists(atPath: folder.path) { try FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }
}
