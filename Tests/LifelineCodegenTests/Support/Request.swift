import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

typealias Request = Google_Protobuf_Compiler_CodeGeneratorRequest
typealias Response = Google_Protobuf_Compiler_CodeGeneratorResponse

/// The folder that Package.swift is in.
let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

/// Arbitrary target names.
let targets = "SwiftTarget=Sample,CTarget=CSample"

/// The real protoc-gen-c.
let installed = ProtobufCGenerator.installed(environment: ProcessInfo.processInfo.environment)

/// A folder that exists during a test.
struct TemporaryFolder: ~Copyable {
    let url = FileManager.default.temporaryDirectory.appending(path: "lifeline-codegen-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// Writes a file, and the folders that it is in.
    @discardableResult func write(_ text: String, to path: String) throws -> URL {
        let file = url.appending(path: path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try text.write(to: file, atomically: true, encoding: .utf8)
        return file
    }

    /// Writes an executable shell script, and returns its path.
    func writeScript(_ body: String) throws -> String {
        let file = try write("#!/bin/sh\n\(body)\n", to: "protoc-gen-c")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.path)
        return file.path
    }
}

extension Request {
    /// The request of protoc for `files`, which are below `folder`.
    static func compiling(_ files: [String], in folder: URL, parameter: String = targets) throws -> Request {
        let output = FileManager.default.temporaryDirectory.appending(path: "lifeline-\(UUID().uuidString).binpb")
        defer { try? FileManager.default.removeItem(at: output) }
        let options = "lifeline/options.proto"
        let fileOfOptions = repository.appending(path: "Protos/\(options)")
        let protoc = Process()
        protoc.executableURL = URL(filePath: "/usr/bin/protoc")
        protoc.arguments =
            [
                "-I\(folder.path)", "-I/usr/include", "-I\(options)=\(fileOfOptions.path)",
                "--include_imports", "--include_source_info", "--descriptor_set_out=\(output.path)",
            ] + files
        protoc.standardError = FileHandle.nullDevice
        try protoc.run()
        protoc.waitUntilExit()
        try #require(protoc.terminationStatus == 0)
        let set = try Google_Protobuf_FileDescriptorSet(serializedBytes: Data(contentsOf: output))
        return .with {
            $0.fileToGenerate = files
            $0.parameter = parameter
            $0.protoFile = set.file
        }
    }

    /// The same for one file, `test.proto`, with `text` in it.
    static func compiling(_ text: String, parameter: String = targets) throws -> Request {
        let folder = try TemporaryFolder()
        try folder.write(text, to: "test.proto")
        return try compiling(["test.proto"], in: folder.url, parameter: parameter)
    }
}

extension Response {
    /// The content of the file at `path`.
    func content(_ path: String) throws -> String {
        try #require(file.first { $0.name == path }, "no \(path) among \(file.map(\.name))").content
    }
}

/// The response of the generator with the real protoc-gen-c.
func generate(_ request: Request) -> Response { CodeGenerator(protobufC: installed).response(to: request) }
