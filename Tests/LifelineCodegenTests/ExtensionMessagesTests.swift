import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

/// The code of extensions: a message for each, and a property in the message that it extends.
@Suite struct ExtensionMessagesTests {
    private func swift(_ schema: String) throws -> String {
        let response = generate(try .compiling(schema))
        #expect(response.error == "")
        return try response.content("Sample/test.pb.swift")
    }

    private func tables(_ schema: String) throws -> String {
        try generate(try .compiling(schema)).content("CSample/test.lifeline.c")
    }

    @Test func anExtensionHasATypeAPropertyAndAPlaceInTheRegistry() throws {
        let content = try swift(
            """
            syntax = "proto2";
            package a.b;
            message M { extensions 100 to 200; }
            extend M {
              // Weighs.
              optional int32 net_weight = 100;
              repeated M others = 101;
            }
            """
        )
        #expect(content.contains("struct A_B_Extensions_net_weight: LifelineMessages.MessageExtension {"))
        #expect(content.contains("typealias _Extended = A_B_M"))
        #expect(content.contains("extension A_B_M {\n    /// Weighs.\n    var A_B_netWeight: Int32 {"))
        #expect(content.contains("var hasA_B_netWeight: Bool { hasExtension(A_B_Extensions_net_weight.self) }"))
        #expect(content.contains("func clearA_B_netWeight() { clearExtension(A_B_Extensions_net_weight.self) }"))
        #expect(content.contains("var A_B_others: LifelineMessages.RepeatedField<A_B_M> {"))
        #expect(!content.contains("hasA_B_others"))
        let registry =
            "let A_B_Test_Extensions = LifelineMessages.MessageRegistry([\n    A_B_Extensions_net_weight.self,\n"
        #expect(content.contains(registry + "    A_B_Extensions_others.self,\n])"))
    }

    @Test func theExtensionsOfAMessageStandInIt() throws {
        let content = try swift(
            """
            syntax = "proto2";
            message M { extensions 100 to 200; }
            message Outer {
              message Inner { extend M { optional Inner at = 100; } }
              message Extensions {}
              extend M { optional Outer self = 101; }
            }
            """
        )
        #expect(content.contains("get { self[Outer.Inner.Extensions.at.self] }"))
        #expect(content.contains("var Outer_Inner_at: Outer.Inner {"))
        #expect(content.contains("struct ExtensionsMessage: LifelineMessages.Message {"))
        #expect(content.contains("Outer.Extensions.self_.self,"))
    }

    @Test func aPropertyDoesNotHideAField() throws {
        let content = try swift(
            """
            syntax = "proto2";
            message M { optional int32 weight = 1; extensions 100 to 200; }
            extend M { optional int32 weight = 100; }
            """
        )
        #expect(content.contains("var weight_100: Int32 {") && content.contains("var hasWeight_100: "))
    }

    @Test func propertiesOfOneMessageAreToldApart() throws {
        let content = try swift(
            """
            syntax = "proto2";
            message M { oneof kind { int32 a = 1; } extensions 100 to 200; }
            extend M { optional int32 foo_bar = 100; optional int32 fooBar = 101; optional int32 kind = 102; }
            """
        )
        #expect(content.contains("var fooBar: Int32 {") && content.contains("var fooBar_101: Int32 {"))
        #expect(content.contains("var kind_102: Int32 {"))
    }

    /// In an extension of a message, its nested types are found first.
    @Test func typesThatAMessageHidesAreNamedWithTheirModule() throws {
        let content = try swift(
            """
            syntax = "proto2";
            message Outer { message Scope {} extensions 100 to 200; }
            message Scope { extend Outer { optional Scope x = 100; } }
            message Extensions {}
            message Foo { optional Extensions e = 1; extend Outer { optional int32 y = 101; } }
            """
        )
        #expect(content.contains("get { self[Sample.Scope.Extensions.x.self] }"))
        #expect(content.contains("var Scope_x: Sample.Scope {"))
        // No message gets this name in Swift.
        #expect(content.contains("var e: ExtensionsMessage {"))
    }

    @Test func registriesOfOneModuleAreToldApart() throws {
        let folder = try TemporaryFolder()
        for version in ["v1", "v2"] {
            let note = "extend M { optional int32 note_\(version) = \(version == "v1" ? 100 : 101); }"
            let message = version == "v1" ? "message M { extensions 100 to 200; }" : "import \"v1/options.proto\";"
            try folder.write("syntax = \"proto2\"; package acme; \(message) \(note)", to: "\(version)/options.proto")
        }
        let response = generate(try .compiling(["v1/options.proto", "v2/options.proto"], in: folder.url))
        #expect(response.error == "")
        #expect(try response.content("Sample/v1_options.pb.swift").contains("let Acme_Options_Extensions = "))
        #expect(try response.content("Sample/v2_options.pb.swift").contains("let Acme_Options_Extensions_ = "))
    }

    @Test func largeNumbersOfMessageSetsAreRefused() throws {
        let set = "message S { option message_set_wire_format = true; extensions 4 to max; }"
        let response = generate(
            try .compiling("syntax = \"proto2\"; \(set) extend S { optional S s = 600000000; }")
        )
        #expect(response.error.contains("the extension s has the number 600000000"))
    }

    @Test func tablesNameTheExtendedMessageAndTheExtension() throws {
        let content = try tables(
            """
            syntax = "proto2";
            package a;
            message M { extensions 100 to 200; }
            message Set { option message_set_wire_format = true; extensions 4 to max; }
            message Scope { extend M { repeated int32 numbers = 100 [packed = true]; } }
            extend Set { optional Scope scope = 4; }
            """
        )
        #expect(content.contains(".full_name = \"a.Scope.numbers\""))
        #expect(content.contains("\"[a.Scope.numbers]\"") && content.contains("\"[a.scope]\""))
        #expect(content.contains(".extended = &a__m__table,") && content.contains(".extended = &a__set__table,"))
        #expect(content.contains(".flags = LIFELINE_MESSAGE_SET,"))
        #expect(content.contains(".flags = LIFELINE_FIELD_PACKED"))
    }

    /// Custom options of proto3 files.
    @Test func anExtensionOfAProto3FileTellsWhetherItIsSet() throws {
        let schema = """
            syntax = "proto3";
            package a;
            import "google/protobuf/descriptor.proto";
            extend google.protobuf.MessageOptions { int32 level = 50000; string note = 50001; }
            """
        let content = try tables(schema)
        #expect(content.contains("LIFELINE_PRESENCE_ONEOF") && !content.contains("LIFELINE_PRESENCE_IMPLICIT"))
        #expect(content.contains("LIFELINE_FIELD_VALIDATE_UTF8"))
        #expect(try swift(schema).contains("extension Google_Protobuf_MessageOptions {"))
    }

    @Test func aMessageNamedLikeAnExtensionKeepsItsNameInC() throws {
        let content = try tables(
            """
            syntax = "proto2";
            message Note { extensions 100 to 200; }
            extend Note { optional Note note = 100; }
            """
        )
        #expect(
            content.contains(".full_name = \"Note\"") && content.contains("const LifelineMessageTable pb__note__table")
        )
    }
}
