import SwiftProtobuf
import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

@Suite struct SchemaCheckTests {
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
