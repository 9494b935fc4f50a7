import Foundation
import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

@Suite struct CodeGeneratorTests {
    /// The committed code of every file below Protos/test that TestProtos compiles: all files without services, except
    /// those that use editions and descriptors of editions, which Debian's protoc does not read. `codegen/generate
    /// --check` compares these, and the output of protoc-gen-c, which differs between its versions.
    @Test func makesWhatIsCommitted() throws {
        let protos = repository.appending(path: "Protos")
        let paths = try #require(FileManager.default.subpaths(atPath: protos.appending(path: "test").path))
            .filter { $0.hasSuffix(".proto") && $0 != "imports/descriptors.proto" }
            .filter { !$0.contains(/^(editions|services|realistic)\//) }
            .map { "test/\($0)" }.sorted()
        #expect(paths.count > 20)
        let parameter = "SwiftTarget=TestProtos,CTarget=CTestProtos,Visibility=Public,Services=false"
        let response = generate(try .compiling(paths, in: protos, parameter: parameter))
        #expect(response.error == "")
        for file in response.file where !file.name.contains(".pb-c.") {
            let committed = repository.appending(path: "Tests").appending(path: file.name)
            #expect(try file.content == String(contentsOf: committed, encoding: .utf8), "\(file.name)")
        }
    }

    @Test func isDeterministic() throws {
        let protos = repository.appending(path: "Protos")
        let request = try Request.compiling(["test/names/types.proto", "test/imports/user.proto"], in: protos)
        let first = generate(request)
        for _ in 0..<5 { #expect(generate(request) == first) }
    }

    @Test func aFileIsTheSameWhateverElseIsGenerated() throws {
        let protos = repository.appending(path: "Protos")
        let path = "test/names/clashes.proto"
        let alone = generate(try .compiling([path], in: protos))
        let together = generate(try .compiling(["test/imports/recursion.proto", path], in: protos))
        for file in alone.file { #expect(try together.content(file.name) == file.content) }
    }

    @Test func twoFilesOfOnePathAreRefused() throws {
        let folder = try TemporaryFolder()
        try folder.write("syntax = \"proto3\";", to: "a/b_c.proto")
        try folder.write("syntax = \"proto3\";", to: "a_b/c.proto")
        let response = generate(try .compiling(["a/b_c.proto", "a_b/c.proto"], in: folder.url))
        #expect(response.error.contains("a/b_c.proto and a_b/c.proto would both be written to Sample/a_b_c.pb.swift"))
    }

    @Test func headersOfDifferentPathsHaveDifferentGuards() throws {
        let folder = try TemporaryFolder()
        let message = "syntax = \"proto3\"; message M { int32 n = 1; }"
        var guards: Set<String> = []
        for path in ["a/b_c", "a_b/c", "a-b/c", "a.b/c"] {
            try folder.write(message, to: "\(path).proto")
            let response = generate(try .compiling(["\(path).proto"], in: folder.url))
            let header = try response.content("CSample/include/\(path).lifeline.h")
            guards.insert(String(try #require(header.split(separator: "\n").first { $0.hasPrefix("#ifndef") })))
        }
        #expect(guards.count == 4)
    }

    @Test(arguments: [("Public", "public "), ("Package", "package "), ("Internal", "")])
    func visibility(name: String, modifier: String) throws {
        let text = "syntax = \"proto3\"; message M { E e = 1; } enum E { ZERO = 0; }"
        let swift = try generate(.compiling(text, parameter: "\(targets),Visibility=\(name)"))
            .content("Sample/test.pb.swift")
        #expect(swift.contains("\n\(name.lowercased()) import LifelineMessages\n"))
        #expect(swift.contains("\(modifier)struct M: "))
        #expect(swift.contains("\(modifier)enum E: "))
        #expect(swift.contains("@inlinable") == (name == "Public"))
        if name != "Public" { #expect(!swift.contains("public ")) }
    }

    @Test func typesOfSwiftProtobuf() throws {
        let text = """
            syntax = "proto2";
            message M {
              repeated string names = 1; map<string, bytes> blobs = 2; optional bytes data = 3 [default = "a"];
              oneof choice { bytes raw = 4; } optional int32 names_field = 5; message Inner {}
              extensions 10 to 20;
            }
            message Data {}
            enum E { ZERO = 0; }
            extend M { repeated int32 more = 10; }
            """
        let parameter = "\(targets),Compatibility=SwiftProtobuf"
        let swift = try generate(.compiling(text, parameter: parameter)).content("Sample/test.pb.swift")
        let expected = [
            "\nimport FoundationEssentials\n", "\nimport LifelineSwiftProtobufCompatibility\n",
            "struct DataMessage: ", "struct M: LifelineSwiftProtobufCompatibility.SwiftProtobufMessage {",
            "struct Inner: LifelineSwiftProtobufCompatibility.SwiftProtobufMessage {",
            "enum E: LifelineSwiftProtobufCompatibility.SwiftProtobufEnum {",
            "var names: [String] {\n        get { _content[array: 0, of: Self._table] }",
            "var namesField: LifelineMessages.RepeatedField<String> {",
            "var blobs: [String: Data] {\n        get { _content[dictionary: 1, of: Self._table] }",
            "var blobsField: LifelineMessages.MapField<String, Data> {",
            "? _content.message.untyped.data(_content.message.pointee.data) : Data([97]) }",
            "case raw(Data)",
            // The accessor of `names` has the first name.
            "var namesField_5: Int32 {",
            "var more: [Int32] {\n        get { self[Extensions_more.self] }",
        ]
        for part in expected { #expect(swift.contains(part), "\(part)") }
    }

    @Test func importsTheModulesThatFieldsNeed() throws {
        let folder = try TemporaryFolder()
        try folder.write("syntax = \"proto3\"; message Other {}", to: "other/o.proto")
        try folder.write("syntax = \"proto3\"; enum Kind { ZERO = 0; }", to: "kinds/k.proto")
        try folder.write("syntax = \"proto3\"; message Unused {}", to: "unused/u.proto")
        try folder.write(
            """
            syntax = "proto3";
            import "other/o.proto"; import "kinds/k.proto"; import "unused/u.proto"; import "google/protobuf/any.proto";
            message M { map<string, Other> others = 1; Kind kind = 2; google.protobuf.Any any = 3; }
            """,
            to: "m.proto"
        )
        let parameter =
            "\(targets),ModuleMapping=other:OtherProtos:COther,ModuleMapping=kinds:Kinds:CKinds,"
            + "ModuleMapping=unused:Unused:CUnused"
        let response = generate(try .compiling(["m.proto"], in: folder.url, parameter: parameter))
        let imports = try response.content("Sample/m.pb.swift").split(separator: "\n").filter {
            $0.contains(" import ")
        }
        let modules = ["CSample", "Kinds", "LifelineMessages", "LifelineWellKnownTypes", "OtherProtos"]
        #expect(imports.map(String.init) == modules.map { "internal import \($0)" })
    }

    @Test func commentsStayComments() throws {
        let protos = repository.appending(path: "Protos")
        let swift = try generate(.compiling(["test/comments/comments.proto"], in: protos))
            .content("Sample/test_comments_comments.pb.swift")
        // Swift ends a comment at a carriage return too.
        for line in swift.split(whereSeparator: \.isNewline) where line.contains("fatalError") || line.contains("*/") {
            #expect(line.drop { $0 == " " }.hasPrefix("///"), "\(line)")
        }
        #expect(swift.contains("/// Third line, after an empty one."))
        #expect(!swift.contains("\r"))
    }
}
