import Lifeline
import LifelineDescriptorTypes
import LifelineMessages
import LifelineReflection
import LifelineSessionReflection
import LifelineWellKnownTypes
import TestProtos
import TestServices
import Testing

/// A server's description of its methods.
@Suite(.timeLimit(.minutes(1))) struct SessionReflectionTests {
    private typealias Described = (methods: [Lifeline_Reflection_V1_Method], files: [[UInt8]], partCount: Int)

    /// Queries a server with these methods over a session.
    private func describe(_ methods: [Lifeline.SessionMethod]) async throws -> Described {
        let services: [any SessionService] = [Methods(methods: methods)]
        let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)
        let all = services + [SessionReflection(of: services)]
        return try await withSessionServer(listeningOn: anyPort, services: all) { server in
            try await withSessionClient(to: server.boundEndpoints[0]) { client in
                var described: Described = ([], [], 0)
                for try await part in Lifeline_Reflection_V1_ReflectionClient(client).describe(.init()) {
                    described.methods += part.methods
                    described.files += part.files
                    described.partCount += 1
                }
                return described
            }
        }
    }

    private struct Methods: SessionService { let methods: [Lifeline.SessionMethod] }

    /// A pool with only the files, like a client's.
    private func pool(_ described: Described) throws -> DescriptorPool {
        var pool = DescriptorPool()
        // One file after the other: a file follows those that it imports.
        for bytes in described.files {
            try pool.add(.with { $0.file = [try Google_Protobuf_FileDescriptorProto(serializedBytes: bytes)] })
        }
        return pool
    }

    private typealias Question = Test_Services_Question
    private typealias Answer = Test_Services_Answer

    @Test func methodsHaveKindsAndTypes() async throws {
        let described = try await describe([
            .unary("a.B/Unary") { (_: Question, _) in Answer() },
            .stream("a.B/Stream") { (_: Question, _: SessionStreamWriter<Answer.Part>, _) in },
            .clientStream("a.B/ClientStream") { (_: SessionMessages<Question>, _) in Answer() },
            .bothWays("a.B/BothWays") { (_: SessionMessages<Question>, _: SessionStreamWriter<Answer>, _) in },
            .push("a.B/Push") { (_: Question, _) in },
            .unary("a.B/Raw") { (request: RawMessage, _) in request },
        ])
        let question = "test.services.Question"
        let expected: [(String, Lifeline_Reflection_V1_Kind, String, String)] = [
            ("a.B/Unary", .unary, question, "test.services.Answer"),
            ("a.B/Stream", .serverStream, question, "test.services.Answer.Part"),
            ("a.B/ClientStream", .clientStream, question, "test.services.Answer"),
            ("a.B/BothWays", .bothWays, question, "test.services.Answer"),
            ("a.B/Push", .push, question, ""),
            ("a.B/Raw", .unary, "", ""),
            (
                "lifeline.reflection.v1.Reflection/Describe", .serverStream, "lifeline.reflection.v1.DescribeRequest",
                "lifeline.reflection.v1.Description"
            ),
        ]
        try #require(described.methods.count == expected.count)
        for (method, expected) in zip(described.methods, expected) {
            #expect((method.name, method.kind) == (expected.0, expected.1))
            #expect((method.requestType, method.replyType) == (expected.2, expected.3), "\(method.name)")
        }
    }

    /// `lifeline/options.proto`, which the file imports for options, is not linked.
    @Test func filesAreCompleteWithoutImportsThatAreNotLinked() async throws {
        let pool = try pool(try await describe([.unary("a.B/Unary") { (_: Question, _) in Answer() }]))
        #expect(pool.message(named: "test.services.Answer.Part")?.field(named: "number")?.type == .uint32)
        let service = try #require(pool.service(named: "test.services.Shapes"))
        #expect(service.method(named: "Stream")?.isServerStreaming == true)
        #expect(service.file.proto.dependency == ["google/protobuf/empty.proto"])
    }

    /// Extensions of options go with the file that declares the options; others stay.
    @Test func extensionsOfMessagesThatAreNotLinkedAreLeftOut() async throws {
        let pool = try pool(
            try await describe([.unary("a.B/Unary") { (request: Test_Proto2_Extendable, _) in request }])
        )
        let linked = DescriptorPool([Test_Proto2_Extendable.self])
        let isLinked = linked.message(named: "google.protobuf.FieldOptions") != nil
        #expect((pool.extension(named: "test.proto2.marker") != nil) == isLinked)
        let extendable = try #require(pool.message(named: "test.proto2.Extendable"))
        #expect(!pool.extensions(of: extendable).isEmpty)
    }

    @Test func theDescriptionDecodesMessages() async throws {
        let pool = try pool(try await describe([.unary("a.B/Unary") { (_: Test_Imports_User, _) in Answer() }]))
        let user = Test_Imports_User()
        let type = try #require(pool.message(named: Test_Imports_User.protoMessageName))
        #expect(try DynamicMessage(type, serializedBytes: user.serializedBytes()).serializedBytes() == [])
        #expect(pool.message(named: "google.protobuf.Timestamp") != nil)
    }
}
