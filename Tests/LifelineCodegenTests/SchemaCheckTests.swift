import SwiftProtobuf
import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

@Suite struct SchemaCheckTests {
    private func response(of edition: Google_Protobuf_Edition, syntax: String = "editions") -> Response {
        generate(
            .with {
                $0.parameter = targets
                $0.fileToGenerate = ["new.proto"]
                $0.protoFile = [
                    .with {
                        $0.name = "new.proto"
                        $0.syntax = syntax
                        if syntax == "editions" { $0.edition = edition }
                        $0.messageType = [.with { $0.name = "M" }]
                    }
                ]
            }
        )
    }

    @Test(arguments: [Google_Protobuf_Edition.edition2023, .edition2024])
    func editionsAreGenerated(edition: Google_Protobuf_Edition) {
        let response = response(of: edition)
        #expect(response.error == "" && response.file.count == 5)
        #expect(response.supportedFeatures & 2 == 2)
        #expect(response.minimumEdition <= 1000 && response.maximumEdition == 1001)
    }

    @Test(arguments: [Google_Protobuf_Edition.edition2026, .unstable, .proto2, .edition1TestOnly])
    func otherEditionsAreRefused(edition: Google_Protobuf_Edition) {
        let error = response(of: edition).error
        #expect(error.hasPrefix("new.proto: the file uses "))
        #expect(error.contains("\(edition)") && error.contains("Declare edition = \"2024\""))
    }

    @Test func anUnknownSyntaxIsRefused() {
        #expect(response(of: .unknown, syntax: "proto4").error.contains("syntax proto4, which is not supported"))
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
