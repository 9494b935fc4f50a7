import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

/// Failures of protoc-gen-c, each with a script in its place.
@Suite struct ProtobufCGeneratorTests {
    private func error(of script: String, request: Request? = nil) throws -> String {
        let folder = try TemporaryFolder()
        let generator = CodeGenerator(protobufC: ProtobufCGenerator(executable: try folder.writeScript(script)))
        let response = generator.response(
            to: try request ?? .compiling("syntax = \"proto3\"; message M { int32 n = 1; }")
        )
        #expect(response.file.isEmpty)
        return response.error
    }

    @Test func missing() throws {
        let request = try Request.compiling("syntax = \"proto3\";")
        let nowhere = ProtobufCGenerator.installed(environment: ["PATH": "/nowhere"])
        let response = CodeGenerator(protobufC: nowhere).response(to: request)
        #expect(response.error.contains("not installed"))
        #expect(response.error.contains("apt-get install protobuf-c-compiler"))

        let named = ProtobufCGenerator.installed(environment: ["LIFELINE_PROTOC_GEN_C": "/nowhere/protoc-gen-c"])
        #expect(CodeGenerator(protobufC: named).response(to: request).error.contains("/nowhere/protoc-gen-c"))

        let empty = ProtobufCGenerator.installed(environment: ["LIFELINE_PROTOC_GEN_C": "", "PATH": "/nowhere"])
        #expect(CodeGenerator(protobufC: empty).response(to: request).error.contains("not installed"))
    }

    @Test func foundOnThePath() throws {
        let folder = try TemporaryFolder()
        _ = try folder.writeScript("echo from the path >&2; exit 1")
        let found = ProtobufCGenerator.installed(environment: ["PATH": "/nowhere:\(folder.url.path)"])
        let response = CodeGenerator(protobufC: found).response(to: try .compiling("syntax = \"proto3\";"))
        #expect(response.error.contains("from the path"))
    }

    @Test func failing() throws {
        let complaint = try error(of: "cat > /dev/null; echo something is wrong >&2; exit 3")
        #expect(complaint.contains("failed with status 3. It said: something is wrong"))
        #expect(try error(of: "exit 4").contains("failed with status 4. It said nothing."))
    }

    @Test func crashing() throws {
        #expect(try error(of: "kill -SEGV $$").contains("crashed with signal 11"))
    }

    @Test func printingGarbage() throws {
        #expect(try error(of: "cat > /dev/null; echo this is no response").contains("something else than code"))
    }

    @Test func printingNothing() throws {
        #expect(try error(of: "cat > /dev/null").contains("did not generate test.pb-c.h"))
    }

    @Test func refusing() throws {
        // CodeGeneratorResponse.error = "no"
        #expect(try error(of: #"cat > /dev/null; printf '\012\002no'"#).contains("refused the schema: no"))
    }

    @Test func neverReadingALongRequest() throws {
        let request = try Self.large(messages: 3000)
        #expect(try error(of: "exit 0", request: request).contains("did not generate large.pb-c.h"))
        #expect(try error(of: "exec 0<&-; exit 5", request: request).contains("status 5"))
    }

    @Test func complainingAtLength() throws {
        // More than a pipe holds, on both outputs, before any of the input is read.
        let complaint = try error(
            of: "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; cat > /dev/null; exit 6",
            request: try Self.large(messages: 3000)
        )
        #expect(complaint.contains("failed with status 6"))
    }

    @Test func tooOld() throws {
        let header = "#if 1\\n#elif 1003003 < PROTOBUF_C_MIN_COMPILER_VERSION\\n#endif\\n"
        let content = header.replacingOccurrences(of: "\\n", with: "\n")
        let response = Response.with {
            $0.file = [
                .with {
                    $0.name = "test.pb-c.h"
                    $0.content = content
                },
                .with { $0.name = "test.pb-c.c" },
            ]
        }
        let folder = try TemporaryFolder()
        let answer = folder.url.appending(path: "answer")
        try (response.serializedBytes() as Data).write(to: answer)
        let complaint = try error(of: "cat > /dev/null; cat '\(answer.path)'")
        #expect(complaint.contains("too old"))
        #expect(complaint.contains("is version 1.3.3, and 1.4.0 is needed"))
        #expect(complaint.contains("LIFELINE_PROTOC_GEN_C"))
    }

    @Test func aLargeSchemaPassesThroughThePipes() throws {
        let response = generate(try Self.large(messages: 3000))
        #expect(response.error == "")
        let swift = try response.content("Sample/large.pb.swift")
        #expect(swift.contains("struct Message2999:"))
    }

    private static func large(messages count: Int) throws -> Request {
        var text = "syntax = \"proto3\";\n"
        for index in 0..<count {
            text += "message Message\(index) { int32 number = 1; Message\((index + 1) % count) next = 2; }\n"
        }
        let folder = try TemporaryFolder()
        try folder.write(text, to: "large.proto")
        return try .compiling(["large.proto"], in: folder.url)
    }
}
