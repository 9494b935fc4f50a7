import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import TestProtos
import Testing

/// Messages in a `google.protobuf.Any`, whose types are found by their URLs.
@Suite struct AnyTests {
    private let types = MessageRegistry([Sample_Chat_V1_User.self, Google_Protobuf_Duration.self])

    @Test func messagesOfAnyTypeAreUnpackedWithARegistry() throws {
        let user = Sample_Chat_V1_User.with { $0.name = "Ada" }
        let packed = try Google_Protobuf_Any(message: user, typePrefix: "example.org/types")
        #expect(packed.typeURL == "example.org/types/sample.chat.v1.User")
        #expect(try packed.unpacked(with: types) as? Sample_Chat_V1_User == user)
        #expect(try Sample_Chat_V1_User(unpackingAny: packed) == user)
        let existential: any Message = user
        #expect(try Sample_Chat_V1_User(unpackingAny: Google_Protobuf_Any(message: existential)) == user)
    }

    @Test(arguments: [
        ("x/google.protobuf.Timestamp", MessageError.Code.unknownMessageType), ("", .unknownMessageType),
        ("sample.chat.v1.User/", .unknownMessageType), ("x/sample.chat.v1.User/y", .unknownMessageType),
        ("x/\u{301}sample.chat.v1.User", .unknownMessageType), ("a/b/sample.chat.v1.User", .truncated),
        ("sample.chat.v1.User", .truncated),
    ])
    func messagesThatARegistryCannotUnpack(url: String, code: MessageError.Code) {
        let any = Google_Protobuf_Any.with { ($0.typeURL, $0.value) = (url, [0x0a]) }
        #expect(throws: MessageError.self) { try any.unpacked(with: MessageRegistry()) }
        do {
            _ = try any.unpacked(with: types)
            Issue.record("\(url) was unpacked")
        } catch {
            #expect(error.code == code, "\(error)")
        }
        #expect(any.isA(Sample_Chat_V1_User.self) == (code == .truncated))
    }

    private typealias MapKeys = Test_Scalars_Proto3_MapKeys

    @Test func namesAreComparedByTheirBytes() {
        // A KELVIN SIGN is equal to a K, as a Character.
        let any = Google_Protobuf_Any.with { $0.typeURL = "x/test.scalars.proto3.Map\u{212A}eys" }
        #expect(any.typeURL == "x/\(MapKeys.protoMessageName)" && !any.isA(MapKeys.self))
        #expect(throws: MessageError.self) { try any.unpacked(with: MessageRegistry([MapKeys.self])) }
    }
}
