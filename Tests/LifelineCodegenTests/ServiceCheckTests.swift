import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

@Suite struct ServiceCheckTests {
    private func text(_ method: String) -> String {
        """
        syntax = "proto3";
        package a;
        import "google/protobuf/empty.proto";
        message Question {}
        message Answer {}
        service First {}
        service Second {
          rpc Fine(Question) returns (Answer);
          \(method)
        }
        """
    }

    @Test func streamsBothWaysAreRefusedWithTheirPlaceAndARemedy() throws {
        for output in ["Answer", "google.protobuf.Empty"] {
            let text = text("rpc Talk(stream Question) returns (stream \(output));")
            let error = generate(try .compiling(text)).error
            #expect(error.hasPrefix("test.proto:9: method Talk of service Second has streams both ways"))
            #expect(error.contains("rpc Talk(stream a.Question) returns (google.protobuf.Empty);"))
            #expect(error.contains("rpc TalkPushes(google.protobuf.Empty) returns (stream "))
            #expect(error.contains("--lifeline_opt=Services=false"))
        }
    }

    @Test func anAnswerToAStreamIsRefusedWithItsPlaceAndARemedy() throws {
        let error = generate(try .compiling(text("rpc Report(stream Question) returns (Answer);"))).error
        #expect(
            error.hasPrefix("test.proto:9: method Report of service Second has a stream of requests with one response")
        )
        #expect(error.contains("rpc Report(stream a.Question) returns (google.protobuf.Empty);"))
        #expect(error.contains("rpc Report(a.Question) returns (a.Answer);"))
        #expect(error.contains("--lifeline_opt=Services=false"))
    }

    @Test func whatIsNotGeneratedIsNotRefused() throws {
        let text = text("rpc Talk(stream Question) returns (stream Answer);")
        #expect(generate(try .compiling(text, parameter: "\(targets),Services=false")).error == "")

        let folder = try TemporaryFolder()
        try folder.write(text, to: "other.proto")
        try folder.write("syntax = \"proto3\"; import \"other.proto\"; message M { a.Answer a = 1; }", to: "m.proto")
        #expect(generate(try .compiling(["m.proto"], in: folder.url)).error == "")
    }

    @Test func anEmptyOfAnotherPackageIsAnOrdinaryMessage() throws {
        let text = "syntax = \"proto3\"; message Empty {} service S { rpc X(stream Empty) returns (Empty); }"
        #expect(generate(try .compiling(text)).error.contains("has a stream of requests with one response"))
    }

    @Test func servicesAloneNeedToKnowWhereMessagesAre() throws {
        let text = text("rpc News(google.protobuf.Empty) returns (stream Answer);")
        let error = generate(try .compiling(text, parameter: "SwiftTarget=S,Services=only")).error
        #expect(
            error == "test.proto: Services is only, and nothing says which module has a.Question of test.proto. Add "
                + "--lifeline_opt=ModuleMapping=test.proto:SWIFT_MODULE:C_MODULE."
        )
    }

    @Test func servicesAloneHaveToBeThere() throws {
        let text = "syntax = \"proto3\"; message M {}"
        let error = generate(try .compiling(text, parameter: "SwiftTarget=S,Services=only")).error
        #expect(
            error == "--lifeline_opt: Services is only, and there are no services in test.proto. Leave Services away."
        )
    }
}
