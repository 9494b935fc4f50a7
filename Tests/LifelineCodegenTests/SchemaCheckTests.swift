import SwiftProtobuf
import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

@Suite struct SchemaCheckTests {
    @Test func aGroupIsRefusedWithItsPlaceAndARemedy() throws {
        let response = generate(
            try .compiling(
                """
                syntax = "proto2";
                package test;
                message Outer {
                  message Inner {
                    optional int32 number = 1;
                    repeated group Result = 2 { optional string url = 1; }
                  }
                }
                """
            )
        )
        #expect(response.error.hasPrefix("test.proto:6: message Outer.Inner has the group result"))
        #expect(response.error.contains("Declare a nested message"))
        #expect(response.file.isEmpty)
    }

    @Test func aMessageSetIsRefused() throws {
        let response = generate(
            try .compiling(
                """
                syntax = "proto2";

                message Set {
                  option message_set_wire_format = true;
                  extensions 4 to max;
                }
                """
            )
        )
        #expect(response.error.hasPrefix("test.proto:3: message Set has the option message_set_wire_format"))
        #expect(response.error.contains("google.protobuf.Any"))
    }

    @Test func editionsAreRefused() {
        let response = generate(
            .with {
                $0.parameter = targets
                $0.fileToGenerate = ["new.proto"]
                $0.protoFile = [
                    .with {
                        $0.name = "new.proto"
                        $0.syntax = "editions"
                        $0.edition = .edition2023
                    }
                ]
            }
        )
        #expect(response.error.hasPrefix("new.proto: "))
        #expect(response.error.contains("editions are not supported"))
        #expect(response.error.contains("Declare syntax = \"proto3\""))
    }

    @Test func placesAreLeftOutWhereProtocSendsNone() throws {
        var request = try Request.compiling("syntax = \"proto2\"; message M { optional group G = 1 {} }")
        request.protoFile[0].clearSourceCodeInfo()
        #expect(generate(request).error.hasPrefix("test.proto: message M has the group g"))
    }

    @Test func aFileThatWasNotSentIsNamed() {
        let response = generate(
            .with {
                $0.parameter = targets
                $0.fileToGenerate = ["absent.proto"]
            }
        )
        #expect(response.error.contains("absent.proto"))
    }

    @Test func anImportedFileMayHaveAGroup() throws {
        let folder = try TemporaryFolder()
        try folder.write(
            "syntax = \"proto2\"; message Old { optional group G = 1 { optional int32 n = 1; } }",
            to: "old.proto"
        )
        try folder.write("syntax = \"proto3\"; import \"old.proto\"; message New { int32 n = 1; }", to: "new.proto")
        let response = generate(try .compiling(["new.proto"], in: folder.url))
        #expect(response.error == "")
        #expect(try response.content("Sample/new.pb.swift").contains("struct New"))
    }
}
