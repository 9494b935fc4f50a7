import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

@Suite struct ServiceCheckTests {
    @Test func servicesAloneNeedToKnowWhereMessagesAre() throws {
        let text = """
            syntax = "proto3";
            package a;
            import "google/protobuf/empty.proto";
            message Question {}
            message Answer {}
            service First {}
            service Second {
              rpc Fine(Question) returns (Answer);
              rpc News(google.protobuf.Empty) returns (stream Answer);
            }
            """
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

    @Test(arguments: [
        ("M", "stream M", "", "a call that is answered by a stream"),
        ("stream M", "M", "", "a call with a stream of requests"),
        ("stream M", "stream M", "", "a call with streams in both directions"),
        ("google.protobuf.Empty", "stream M", "", "a push to the client"),
        // Without the other option, this would be a push to the server.
        (
            "stream M", "google.protobuf.Empty", "option (lifeline.call) = true;",
            "a call with a stream of requests"
        ),
    ])
    func onlyCallsWithoutStreamsAndPushesToTheServerAreSynchronous(
        input: String,
        output: String,
        otherOption: String,
        kind: String
    ) throws {
        let text = """
            syntax = "proto3";
            package a;
            import "google/protobuf/empty.proto";
            import "lifeline/options.proto";
            message M {}
            service S {
              rpc Fine(M) returns (M) { option (lifeline.synchronous) = true; }
              rpc X(\(input)) returns (\(output)) { option (lifeline.synchronous) = true; \(otherOption) }
            }
            """
        let response = generate(try .compiling(text))
        #expect(
            response.error == "test.proto:8: method a.S/X has the option (lifeline.synchronous), and is \(kind). "
                + "Only calls without streams and pushes to the server can have it. Remove the option."
        )
        #expect(response.file.isEmpty)
        #expect(generate(try .compiling(text, parameter: "\(targets),Services=false")).error == "")
    }
}
