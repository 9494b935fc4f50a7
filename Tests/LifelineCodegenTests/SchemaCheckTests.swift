import SwiftProtobuf
import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

@Suite struct SchemaCheckTests {
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
        let set = "message M { option message_set_wire_format = true; extensions 4 to max; }"
        var request = try Request.compiling("syntax = \"proto2\"; \(set)")
        request.protoFile[0].clearSourceCodeInfo()
        #expect(generate(request).error.hasPrefix("test.proto: message M has the option message_set_wire_format"))
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
}
