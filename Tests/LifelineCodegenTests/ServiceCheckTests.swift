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
}
