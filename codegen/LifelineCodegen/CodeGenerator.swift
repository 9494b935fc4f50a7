internal import SwiftProtobuf
package import SwiftProtobufPluginLibrary

/// Answers one request from protoc. For each .proto file, it generates C for protobuf-c, tables, and Swift that wraps
/// them.
package struct CodeGenerator {
    private typealias File = Google_Protobuf_Compiler_CodeGeneratorResponse.File

    private let protobufC: ProtobufCGenerator

    /// - Parameter protobufC: How to run protoc-gen-c.
    package init(protobufC: ProtobufCGenerator) {
        self.protobufC = protobufC
    }

    /// The answer to `request`. Its `error`, which protoc prints, describes a failure.
    package func response(
        to request: Google_Protobuf_Compiler_CodeGeneratorRequest
    ) -> Google_Protobuf_Compiler_CodeGeneratorResponse {
        var response = Google_Protobuf_Compiler_CodeGeneratorResponse()
        let features: [Google_Protobuf_Compiler_CodeGeneratorResponse.Feature] = [.proto3Optional, .supportsEditions]
        response.supportedFeatures = features.reduce(0) { $0 | UInt64($1.rawValue) }
        response.minimumEdition = Int32(Google_Protobuf_Edition.proto2.rawValue)
        response.maximumEdition = Int32(SchemaCheck.editions.upperBound.rawValue)
        do {
            response.file = try files(for: request)
        } catch {
            response.error = "\(error)"
        }
        return response
    }

    private func files(
        for original: Google_Protobuf_Compiler_CodeGeneratorRequest
    ) throws -> [File] {
        var request = original
        let options = try GeneratorOptions(parameter: request.parameter)
        try SchemaCheck.check(request.protoFile)
        try checkPaths(of: request.fileToGenerate, options: options)

        request.protoFile = request.protoFile.map(ExtensionMessages.declared)
        let generated = options.services == .only ? [] : Set(request.fileToGenerate)
        let descriptorSet = DescriptorSet(protos: request.protoFile)
        let schema = Schema(descriptorSet, compatibility: options.compatibility) { file in
            options.module(ofFile: file.name, isGeneratedHere: generated.contains(file.name)).swift
        }
        let descriptors = try request.fileToGenerate.map { name in
            guard let file = schema.descriptors.fileDescriptor(named: name) else {
                throw GeneratorError("\(name): protoc asks to generate this file but did not send it.")
            }
            return file
        }
        if options.services != .leftOut {
            try ServiceCheck(schema: schema, options: options).check(descriptors)
        }
        let swift = { (file: FileDescriptor) in
            let generator = SwiftFileGenerator(
                file: file,
                schema: schema,
                options: options,
                generating: request.fileToGenerate
            )
            return File(name: options.swiftPath(for: file.name), content: generator.content())
        }
        if options.services == .only { return descriptors.filter { !$0.services.isEmpty }.map(swift) }

        var files = try protobufC.files(for: request, rewrittenBy: SchemaRewriter(schema: schema))
        for index in files.indices {
            files[index].name = options.cPath(ofProtobufCFile: files[index].name)
        }
        let protos = Dictionary(original.protoFile.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        for file in descriptors {
            let tables = TableGenerator(file: file, schema: schema)
            if let header = tables.header() {
                files.append(File(name: options.cHeaderPath(for: file.name, suffix: ".lifeline.h"), content: header))
            }
            let source = try tables.source(describedBy: FileDescription(protos[file.name] ?? .init()))
            files.append(File(name: options.cSourcePath(for: file.name, suffix: ".lifeline.c"), content: source))
            files.append(swift(file))
        }
        return files
    }

    private func checkPaths(of protoPaths: [String], options: GeneratorOptions) throws {
        for (swiftPath, paths) in Dictionary(grouping: protoPaths, by: options.swiftPath) where paths.count > 1 {
            throw GeneratorError(
                "\(paths.joined(separator: " and ")) would both be written to \(swiftPath). Rename one of them, or generate "
                    + "them into different targets."
            )
        }
    }
}

extension Google_Protobuf_Compiler_CodeGeneratorResponse.File {
    fileprivate init(name: String, content: String) {
        self.init()
        self.name = name
        self.content = content
    }
}
