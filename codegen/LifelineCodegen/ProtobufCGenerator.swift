internal import Foundation
internal import Glibc
internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Runs protoc-gen-c, protobuf-c's plugin of protoc, on a rewritten schema.
package struct ProtobufCGenerator {
    /// protoc-gen-c 1.4.0 is the first version that accepts the rewritten proto3 schemas with oneofs.
    static let minimumVersion = 1_004_000

    private let executable: String?

    /// - Parameter executable: Its path; nil when it is not installed.
    package init(executable: String?) {
        self.executable = executable
    }

    /// Finds protoc-gen-c: at the path in `LIFELINE_PROTOC_GEN_C`, or else on the search path.
    package static func installed(environment: [String: String]) -> ProtobufCGenerator {
        if let path = environment["LIFELINE_PROTOC_GEN_C"], !path.isEmpty {
            return ProtobufCGenerator(executable: path)
        }
        let folders = (environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":")
        let candidates = folders.map { "\($0)/protoc-gen-c" }
        return ProtobufCGenerator(executable: candidates.first { FileManager.default.isExecutableFile(atPath: $0) })
    }

    func files(
        for request: Google_Protobuf_Compiler_CodeGeneratorRequest,
        rewrittenBy rewriter: SchemaRewriter
    ) throws -> [Google_Protobuf_Compiler_CodeGeneratorResponse.File] {
        var rewritten = Google_Protobuf_Compiler_CodeGeneratorRequest()
        rewritten.fileToGenerate = request.fileToGenerate
        rewritten.protoFile = request.protoFile.map(rewriter.rewrite)
        let output = try run(input: rewritten.serializedBytes())

        let response: Google_Protobuf_Compiler_CodeGeneratorResponse
        do {
            response = try Google_Protobuf_Compiler_CodeGeneratorResponse(serializedBytes: output)
        } catch {
            throw GeneratorError(
                "protoc-gen-c answered with something else than code (\(output.count) bytes). Is \(executable ?? "it") "
                    + "protobuf-c's plugin?"
            )
        }
        if response.hasError {
            throw GeneratorError("protoc-gen-c refused the schema: \(response.error)")
        }
        try checkVersion(of: response.file)
        try checkCompleteness(of: response.file, for: request)
        return response.file
    }

    /// The generated headers name the version that wrote them: `#elif 1004001 < PROTOBUF_C_MIN_COMPILER_VERSION`.
    private func checkVersion(of files: [Google_Protobuf_Compiler_CodeGeneratorResponse.File]) throws {
        for file in files where file.name.hasSuffix(".h") {
            guard let line = file.content.split(separator: "\n").first(where: { $0.hasPrefix("#elif ") }) else {
                continue
            }
            let version = Int(line.dropFirst(6).prefix { $0.isNumber }) ?? 0
            guard version < Self.minimumVersion else { continue }
            throw GeneratorError(
                "protoc-gen-c is too old: \(executable ?? "it") is version \(version / 1_000_000).\(version / 1000 % 1000)."
                    + "\(version % 1000), and 1.4.0 is needed. Install protobuf-c-compiler from Debian 12 or later, or set "
                    + "LIFELINE_PROTOC_GEN_C to a newer one."
            )
        }
    }

    private func checkCompleteness(
        of files: [Google_Protobuf_Compiler_CodeGeneratorResponse.File],
        for request: Google_Protobuf_Compiler_CodeGeneratorRequest
    ) throws {
        let generated = Set(files.map(\.name))
        let wanted = request.fileToGenerate.flatMap { file in
            [".pb-c.h", ".pb-c.c"].map { file.withoutProtoSuffix + $0 }
        }
        guard let missing = wanted.first(where: { !generated.contains($0) }) else { return }
        throw GeneratorError(
            "protoc-gen-c did not generate \(missing). Is \(executable ?? "it") protobuf-c's plugin?"
        )
    }
}

// MARK: - The process

extension ProtobufCGenerator {
    private func run(input: [UInt8]) throws -> [UInt8] {
        guard let executable else {
            throw GeneratorError(
                "protoc-gen-c is not installed; it generates the C structs. Install it (Debian: apt-get install "
                    + "protobuf-c-compiler), or set LIFELINE_PROTOC_GEN_C to its path."
            )
        }
        // It may stop reading early. A write to it must then not end this process.
        signal(SIGPIPE, SIG_IGN)
        let process = Process()
        let (standardInput, standardOutput, standardError) = (Pipe(), Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: executable)
        process.standardInput = standardInput
        process.standardOutput = standardOutput
        process.standardError = standardError
        do {
            try process.run()
        } catch {
            throw GeneratorError("protoc-gen-c cannot be run at \(executable): \(error.localizedDescription)")
        }
        // All three pipes at once: each holds only 64 KiB before the other end has to read.
        let group = DispatchGroup()
        let errorReader = PipeReader(standardError, in: group)
        DispatchQueue.global().async(group: group) {
            // If this fails, the exit status tells why.
            try? standardInput.fileHandleForWriting.write(contentsOf: input)
            try? standardInput.fileHandleForWriting.close()
        }
        let output = standardOutput.fileHandleForReading.readDataToEndOfFile()
        group.wait()
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            let complaint = errorReader.text.isEmpty ? "It said nothing." : "It said: \(errorReader.text)"
            let ending = process.terminationReason == .exit ? "failed with status" : "crashed with signal"
            throw GeneratorError("protoc-gen-c (\(executable)) \(ending) \(process.terminationStatus). \(complaint)")
        }
        return [UInt8](output)
    }
}

/// Reads a pipe to its end on another thread.
private final class PipeReader: @unchecked Sendable {
    // @unchecked Sendable: only one closure writes `data`, and it is read after the closure's group is done.
    private var data = Data()

    init(_ pipe: Pipe, in group: DispatchGroup) {
        DispatchQueue.global().async(group: group) { self.data = pipe.fileHandleForReading.readDataToEndOfFile() }
    }

    var text: String { String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines) }
}
