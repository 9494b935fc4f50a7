import Foundation
import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

@Suite struct SwiftServiceGeneratorTests {
    @Test func makesWhatIsCommittedBesideMessages() throws {
        let test = repository.appending(path: "Protos/test")
        let paths = try ["realistic", "services"].flatMap { folder in
            try FileManager.default.contentsOfDirectory(atPath: test.appending(path: folder).path)
                .map { "test/\(folder)/\($0)" }
        }
        #expect(paths.count == 12)
        let parameter =
            "SwiftTarget=TestServices,CTarget=CTestServices,Visibility=Public,"
            + "ModuleMapping=test/names:TestProtos:CTestProtos"
        try expectCommitted(paths, parameter: parameter, in: "Tests")
    }

    @Test func makesWhatIsCommittedApartFromMessages() throws {
        let parameter =
            "SwiftTarget=SampleServices,Visibility=Public,Services=only,"
            + "ModuleMapping=sample:LifelineProtos:CLifelineProtos"
        try expectCommitted(["sample/room/v1/room.proto"], parameter: parameter, in: "Sources")
    }

    private func expectCommitted(_ paths: [String], parameter: String, in folder: String) throws {
        let protos = repository.appending(path: "Protos")
        let response = generate(try .compiling(paths, in: protos, parameter: parameter))
        #expect(response.error == "")
        #expect(response.file.count >= paths.count)
        // The text of protoc-gen-c depends on its version. `codegen/generate --check` compares it.
        for file in response.file where !file.name.contains(".pb-c.") {
            let committed = repository.appending(path: folder).appending(path: file.name)
            #expect(try file.content == String(contentsOf: committed, encoding: .utf8), "\(file.name)")
        }
    }

    // MARK: Omitted parts

    private let room = """
        syntax = "proto3";
        package a.b;
        import "google/protobuf/empty.proto";
        message M {}
        // A room.
        service Room {
          // Says it.
          rpc Say(M) returns (M);
          rpc News(google.protobuf.Empty) returns (stream M);
        }
        """

    @Test func servicesCanBeLeftOut() throws {
        let swift = try swift(room, parameter: "\(targets),Services=false")
        #expect(swift.contains("struct A_B_M"))
        #expect(!swift.contains("Room") && !swift.contains("import Lifeline\n"))
    }

    @Test func messagesCanBeLeftOut() throws {
        let parameter = "SwiftTarget=S,Services=only,ModuleMapping=test.proto:Messages:CMessages"
        let response = generate(try .compiling(room, parameter: parameter))
        #expect(response.file.map(\.name) == ["S/test.pb.swift"])
        let swift = try response.content("S/test.pb.swift")
        #expect(imports(of: swift) == ["internal import Lifeline", "internal import Messages"])
        #expect(!swift.contains("struct A_B_M:"))
        #expect(swift.contains("func say(_ request: A_B_M, context"))
    }

    @Test func aFileWithoutServicesImportsNoSessions() throws {
        let swift = try swift("syntax = \"proto3\"; message M {}")
        #expect(imports(of: swift) == ["internal import CSample", "internal import LifelineMessages"])
    }

    @Test func anEmptyThatMarksAPushIsNotImported() throws {
        let swift = try swift(room)
        let modules = ["CSample", "Lifeline", "LifelineMessages"]
        #expect(imports(of: swift) == modules.map { "internal import \($0)" })
    }

    @Test func aHandlerAndPushesAreThereForWhatHasThem() throws {
        let pushes = try self.swift(room.replacing("rpc Say(M) returns (M);", with: ""))
        #expect(pushes.contains("struct A_B_RoomPushes") && !pushes.contains("A_B_RoomHandler"))
        let calls = try self.swift(
            room.replacing("rpc News(google.protobuf.Empty) returns (stream M);", with: "")
        )
        #expect(calls.contains("protocol A_B_RoomHandler") && !calls.contains("A_B_RoomPushes"))
    }

    // MARK: Shapes

    @Test func aStreamOfRequestsHasOneReply() throws {
        let swift = try swift(room.replacing("Say(M)", with: "Say(stream M)"))
        for part in [
            """
                nonisolated(nonsending) func say(
                    timeout: Swift.Duration? = nil,
                    metadata: Lifeline.SessionMetadata = [:],
                    _ send: @Sendable @escaping (Lifeline.SessionStreamWriter<A_B_M>) async throws -> Swift.Void
                ) async throws -> A_B_M {
                    try await session.clientStream(
                        "a.b.Room/Say",
                        of: A_B_M.self,
                        returning: A_B_M.self,
                        timeout: timeout,
                        metadata: metadata,
                        send
                    )
                }

            """,
            """
                func say(_ requests: Lifeline.SessionMessages<A_B_M>, context: Lifeline.SessionContext) async throws -> A_B_M

            """,
            "        .clientStream(\"a.b.Room/Say\") { try await self.say($0, context: $1) },\n",
        ] {
            #expect(swift.contains(part), "\(part)")
        }
    }

    @Test func aStreamOfRequestsHasAStreamOfReplies() throws {
        let swift = try swift(room.replacing("Say(M) returns (M)", with: "Say(stream M) returns (stream M)"))
        for part in [
            """
                nonisolated(nonsending) func say<Result: Swift.Sendable>(
                    timeout: Swift.Duration? = nil,
                    metadata: Lifeline.SessionMetadata = [:],
                    _ send: @Sendable @escaping (Lifeline.SessionStreamWriter<A_B_M>) async throws -> Swift.Void,
                    receive: nonisolated(nonsending) (Lifeline.SessionMessages<A_B_M>) async throws -> Result
                ) async throws -> Result {
                    try await session.bothWays(
                        "a.b.Room/Say",
                        sending: A_B_M.self,
                        receiving: A_B_M.self,
                        timeout: timeout,
                        metadata: metadata,
                        send,
                        receive: receive
                    )
                }

            """,
            "    func say(_ requests: Lifeline.SessionMessages<A_B_M>, to stream: Lifeline.SessionStreamWriter<A_B_M>, "
                + "context: Lifeline.SessionContext) async throws\n",
            "        .bothWays(\"a.b.Room/Say\") { try await self.say($0, to: $1, context: $2) },\n",
        ] {
            #expect(swift.contains(part), "\(part)")
        }
    }

    /// Of each method, the kind of its registration; nil: the server pushes.
    @Test(arguments: [
        ("M", "M", "unary", "unary"),
        ("M", "stream M", "stream", "stream"),
        ("stream M", "M", "clientStream", "clientStream"),
        ("stream M", "stream M", "bothWays", "bothWays"),
        ("google.protobuf.Empty", "google.protobuf.Empty", "unary", "unary"),
        ("google.protobuf.Empty", "stream M", nil, "stream"),
        ("stream M", "google.protobuf.Empty", "push", "clientStream"),
        ("stream google.protobuf.Empty", "stream google.protobuf.Empty", "bothWays", "bothWays"),
        ("stream google.protobuf.Empty", "M", "clientStream", "clientStream"),
        ("M", "stream google.protobuf.Empty", "stream", "stream"),
    ])
    func anOptionMakesACallOfAPush(input: String, output: String, kind: String?, kindOfCall: String) throws {
        for (option, kind) in [
            ("", kind), ("option (lifeline.call) = false;", kind), ("option (lifeline.call) = true;", kindOfCall),
        ] {
            let swift = try swift(
                """
                syntax = "proto3";
                import "google/protobuf/empty.proto";
                import "lifeline/options.proto";
                message M {}
                service S { rpc X(\(input)) returns (\(output)) { \(option) option deprecated = true; } }
                """
            )
            if let kind {
                #expect(swift.contains("            .\(kind)(\"S/X\") { try await self.x("), "\(option)")
            } else {
                #expect(swift.contains("struct SPushes: ") && !swift.contains("protocol SHandler: "))
            }
        }
    }

    @Test(arguments: ["", "option (lifeline.call) = true;", "option (lifeline.call) = false;"])
    func aUnaryMethodCanHaveASynchronousHandler(otherOption: String) throws {
        let swift = try swiftOfMethod("X(M) returns (M)", "option (lifeline.synchronous) = true; \(otherOption)")
        for part in [
            """
            protocol SHandler: Lifeline.SessionService {
                /// Says it.
                ///
                /// A synchronous handler: runs where frames are read, so it must not block or compute for long. With
                /// interceptors, or with `HandlerExecutor.globalPool`, it runs as other handlers do.
                func x(_ request: M, context: Lifeline.SessionContext) throws -> M
            }

            """,
            "            .unary(\"S/X\") { try self.x($0, context: $1) },\n",
            "    nonisolated(nonsending) func x(\n",
        ] {
            #expect(swift.contains(part), "\(part)")
        }
    }

    @Test func aPushToTheServerCanHaveASynchronousHandler() throws {
        let method = "X(stream M) returns (google.protobuf.Empty)"
        let swift = try swiftOfMethod(method, "option (lifeline.synchronous) = true;")
        #expect(swift.contains("    func x(_ message: M, context: Lifeline.SessionContext) throws\n"))
        #expect(swift.contains("            .push(\"S/X\") { try self.x($0, context: $1) },\n"))
    }

    /// With false, the option changes nothing, so any method can have it.
    @Test(arguments: [
        "X(M) returns (M)", "X(M) returns (stream M)", "X(stream M) returns (M)", "X(stream M) returns (stream M)",
        "X(stream M) returns (google.protobuf.Empty)", "X(google.protobuf.Empty) returns (stream M)",
    ])
    func handlersAreSynchronousOnlyByTheOption(method: String) throws {
        let swift = try swiftOfMethod(method, "option (lifeline.synchronous) = false;")
        #expect(try swift == swiftOfMethod(method, ""))
    }

    /// The code for a service S with one method.
    private func swiftOfMethod(_ method: String, _ options: String) throws -> String {
        try swift(
            """
            syntax = "proto3";
            import "google/protobuf/empty.proto";
            import "lifeline/options.proto";
            message M {}
            service S {
              // Says it.
              rpc \(method) { \(options) }
            }
            """
        )
    }

    /// Another option may have the same number, and another type.
    @Test func optionsOfOthersAreLeftAlone() throws {
        let swift = try swift(
            """
            syntax = "proto3";
            import "google/protobuf/descriptor.proto";
            import "google/protobuf/empty.proto";
            message M {}
            extend google.protobuf.MethodOptions { M message = 50001; string a = 51270; string b = 51271; }
            service S {
              rpc X(stream M) returns (google.protobuf.Empty) {
                option (message) = {};
                option (a) = "x";
                option (b) = "x";
              }
            }
            """
        )
        #expect(swift.contains(".push(\"S/X\") { try await self.x("))
    }

    @Test func theOptionsNeedNoSwift() throws {
        let text = """
            syntax = "proto3";
            import "google/protobuf/empty.proto";
            import "lifeline/options.proto";
            message M {}
            service S { rpc X(stream M) returns (google.protobuf.Empty) { option (lifeline.call) = true; } }
            """
        let response = generate(try .compiling(text))
        #expect(response.file.allSatisfy { !$0.name.contains("options") })
        // The description of the file names what the file imports, which need not be linked.
        let others = response.file.filter { !$0.name.hasSuffix(".lifeline.c") }
        #expect(others.allSatisfy { !$0.content.contains("options.") })
        let description = try response.content("CSample/test.lifeline.c")
        #expect(description.contains("lifeline_file_lifeline_2foptions LIFELINE_WEAK;"))
        let swift = try response.content("Sample/test.pb.swift")
        let modules = ["CSample", "Lifeline", "LifelineMessages", "LifelineWellKnownTypes"]
        #expect(imports(of: swift) == modules.map { "internal import \($0)" })

        let parameter = "SwiftTarget=S,Services=only,ModuleMapping=test.proto:Messages:CMessages"
        #expect(generate(try .compiling(text, parameter: parameter)).error == "")
    }

    // MARK: Modifiers and comments

    @Test(arguments: [("Public", "public "), ("Package", "package "), ("Internal", "")])
    func visibility(name: String, modifier: String) throws {
        let swift = try swift(room, parameter: "\(targets),Visibility=\(name)")
        #expect(swift.contains("\n\(name.lowercased()) import Lifeline\n"))
        for line in [
            "\(modifier)struct A_B_RoomClient: Sendable {",
            "    \(modifier)let news: Lifeline.SessionPushes<A_B_M>",
            "    \(modifier)init(_ session: Lifeline.SessionClient) {",
            "    \(modifier)nonisolated(nonsending) func say(",
            "\(modifier)protocol A_B_RoomHandler: Lifeline.SessionService {",
            "    func say(_ request: A_B_M, context: Lifeline.SessionContext) async throws -> A_B_M",
            "    \(modifier)var aBRoomMethods: [Lifeline.SessionMethod] {",
            "    \(modifier)var methods: [Lifeline.SessionMethod] { aBRoomMethods }",
            "\(modifier)struct A_B_RoomPushes: Sendable {",
            "    \(modifier)init(_ session: Lifeline.SessionServerEnd) {",
            "    \(modifier)nonisolated(nonsending) func news(",
        ] {
            #expect(swift.contains("\n\(line)\n"), "\(line)")
        }
        if name != "Public" { #expect(!swift.contains("public ")) }
    }

    @Test func commentsAreCarriedOver() throws {
        let swift = try swift(room)
        #expect(swift.contains("/// A room.\n///\n/// A client of `a.b.Room`.\nstruct A_B_RoomClient"))
        #expect(swift.contains("/// A room.\n///\n/// The methods that a server of `a.b.Room` implements.\nprotocol"))
        #expect(swift.contains("    /// Says it.\n    ///\n    /// - Parameters:\n"))
        #expect(swift.contains("    /// Says it.\n    func say("))
    }

    @Test func deprecationIsForCallers() throws {
        let swift = try swift(
            """
            syntax = "proto3";
            import "google/protobuf/empty.proto";
            message M {}
            service S {
              rpc A(M) returns (M) { option deprecated = true; }
              rpc B(google.protobuf.Empty) returns (stream M) { option deprecated = true; }
              rpc C(M) returns (M);
              rpc D(stream M) returns (M) { option deprecated = true; }
              rpc E(stream M) returns (stream M) { option deprecated = true; }
            }
            """
        )
        let attribute = "    @available(*, deprecated)\n"
        #expect(swift.contains("\(attribute)    nonisolated(nonsending) func a("))
        #expect(swift.contains("\(attribute)    nonisolated(nonsending) func b("))
        #expect(swift.contains("\(attribute)    var b: "))
        #expect(swift.contains("\(attribute)    nonisolated(nonsending) func d("))
        #expect(swift.contains("\(attribute)    nonisolated(nonsending) func e<"))
        #expect(swift.contains("\(attribute)    static let b = "))
        #expect(swift.count(of: "@available") == 6)
        #expect(swift.contains("NOTE: This method was marked as deprecated in the .proto file\n    func a("))

        for text in [
            room.replacing("service Room {", with: "service Room { option deprecated = true;"),
            room.replacing("package", with: "option deprecated = true; package"),
        ] {
            let swift = try self.swift(text)
            #expect(swift.contains("@available(*, deprecated)\nstruct A_B_RoomClient"))
            #expect(swift.contains("@available(*, deprecated)\nstruct A_B_RoomPushes"))
            #expect(swift.count(of: "@available") == 2)
        }
    }

    // MARK: Names

    @Test func typesGiveWayToMessages() throws {
        for taken in ["message RoomClient", "message RoomHandler", "enum RoomPushes"] {
            let swift = try swift(room + "\n\(taken) { \(taken.hasPrefix("enum") ? "ZERO = 0;" : "") }")
            for type in ["Client", "Handler", "Pushes"] { #expect(swift.contains(" A_B_RoomService\(type): ")) }
            #expect(swift.contains("\"a.b.Room/Say\""))
        }
    }

    @Test func laterServicesGiveWayToEarlierOnes() throws {
        let swift = try swift(
            "syntax = \"proto3\"; message M {} message AClient {} "
                + "service A { rpc X(M) returns (M); } service AService { rpc X(M) returns (M); }"
        )
        #expect(swift.contains("struct AServiceClient: ") && swift.contains("struct AServiceServiceClient: "))
    }

    @Test func membersGiveWayToWhatAServiceHas() throws {
        let names = [
            "Session", "SessionMethod", "Init", "Self", "Methods", "GetURL", "GetUrl", "_", "Default", "sMethods",
        ]
        let methods = names.map { "rpc \($0)(M) returns (M);" }.joined()
        let swift = try swift("syntax = \"proto3\"; message M {} service S { \(methods) }")
        let swiftNames = [
            "sessionMethod", "sessionMethodMethod", "initMethod", "selfMethod", "methodsMethod", "getURL",
            "getURLMethod", "_Method", "`default`", "sMethodsMethod",
        ]
        for (name, swiftName) in zip(names, swiftNames) {
            #expect(swift.contains("func \(swiftName)(\n"), "\(name)")
            let registration = ".unary(\"S/\(name)\") { try await self.\(swiftName)($0, context: $1) },"
            #expect(swift.contains(registration), "\(name)")
        }
    }

    @Test func namesOfFilesThatKnowNothingOfEachOtherAreRefused() throws {
        let folder = try TemporaryFolder()
        let service = "syntax = \"proto3\"; package p; message M {} service Room { rpc Say(M) returns (M); }"
        try folder.write(service, to: "a.proto")
        try folder.write("syntax = \"proto3\"; package p; message RoomHandler {}", to: "b.proto")
        let response = generate(try .compiling(["a.proto", "b.proto"], in: folder.url))
        #expect(
            response.error
                == "a.proto: service Room becomes P_RoomHandler in Swift, and so does message RoomHandler of "
                + "b.proto. Rename one of them, or generate the files into different targets."
        )
        let parameter = "\(targets),Services=false"
        #expect(generate(try .compiling(["a.proto", "b.proto"], in: folder.url, parameter: parameter)).error == "")
    }

    @Test func messagesInNoPackageOfOtherModulesAreNamedWithThem() throws {
        let folder = try TemporaryFolder()
        try folder.write("syntax = \"proto3\"; message Client {}", to: "client.proto")
        try folder.write(
            "syntax = \"proto3\"; import \"client.proto\"; service S { rpc X(Client) returns (Client); }",
            to: "s.proto"
        )
        let parameter = "\(targets),ModuleMapping=client.proto:Other:COther"
        let response = generate(try .compiling(["s.proto"], in: folder.url, parameter: parameter))
        #expect(try response.content("Sample/s.pb.swift").contains("_ request: Other.Client,"))
    }

    @Test func aResultHasAnotherNameThanMessages() throws {
        let swift = try swift(
            """
            syntax = "proto3";
            message Result { message Part {} }
            message Result_ {}
            service S {
              rpc A(stream Result) returns (stream Result_);
              rpc B(stream Result_) returns (stream Result.Part);
              rpc C(stream Result_) returns (stream Result_);
            }
            """
        )
        #expect(swift.contains("func a<Result__: Swift.Sendable>(") && swift.contains(") async throws -> Result__ {"))
        #expect(swift.contains("func b<Result__: Swift.Sendable>("))
        #expect(swift.contains("func c<Result: Swift.Sendable>("))
    }

    private func swift(_ text: String, parameter: String = targets) throws -> String {
        let response = generate(try .compiling(text, parameter: parameter))
        #expect(response.error == "")
        return try response.content("Sample/test.pb.swift")
    }

    private func imports(of swift: String) -> [String] {
        swift.split(separator: "\n").filter { $0.contains(" import ") }.map(String.init)
    }
}

extension String {
    fileprivate func count(of part: String) -> Int { components(separatedBy: part).count - 1 }
}
