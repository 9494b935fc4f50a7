import Foundation
import Lifeline
import LifelineCore
import LifelineMessages
import LifelineProtos
import LifelineSessionReflection
import LifelineTestSupport
import LifelineWellKnownTypes
import SampleServices
import TestProtos
import Testing

@testable import LifelineCLI

/// Text of a peer reaches the terminal only as printable characters, and its numbers crash nothing.
@Suite(.timeLimit(.minutes(2)), .serialized) struct HostileTextTests {
    private static let evil = "x\u{1b}[2J\u{9b}\u{202e}\u{2028}"
    private static let escaped = #"x\u{1b}[2J\u{9b}\u{202e}\u{2028}"#

    /// There are two tables, because messages do not depend on connections.
    @Test func textFormatEscapesWhatLinesDo() {
        for scalar in (0...0x10FFFF as ClosedRange<UInt32>).compactMap(Unicode.Scalar.init)
        where scalar != "\"" && scalar != "\\"
            && scalar.isUnsafeInLine == (String(scalar).textFormatLiteral == "\"\(scalar)\"")
        {
            Issue.record("\(scalar.value)")
        }
    }

    @Test func receivedTextIsEscaped() async throws {
        let output = try await receive(options: chatSchema, count: 1, format: "text") { endpoint in
            let input = try ChatMessage.with { $0.text = Self.evil }.withDelimitedBytes { Data($0) }
            let send = try Program.product("lifeline", ["send", "--to", endpoint, "--format", "delimited"])
            #expect(try await send.outcome(input: input).status == 0)
        }
        let text = String(decoding: output, as: UTF8.self)
        #expect(text.contains(#"text: "x\033[2J\302\233\342\200\256\342\200\250""#), "\(text)")
    }

    @Test func namesOfVisitorsAndMethodsAreEscaped() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let port = try #require(Int(endpoint.split(separator: ":").last ?? ""))
        let said = #"{"text": "x\u001b[2J\u009b\u202e\u2028"}"#
        let outcome = try await call(endpoint, "SayAll", "--name", Self.evil, input: said)
        #expect(outcome.status == 0)
        try await server.wait { $0.errorText.contains("\(Self.escaped): \(Self.escaped)\n") }
        let client = try await RawSocket.connect(toPort: port)
        let frames: [Lifeline_Session_V1_Frame] = [
            .with {
                ($0.hello.minimumVersion, $0.hello.maximumVersion, $0.hello.attempt) = (1, 1, 1)
                ($0.hello.terms.windowFrames, $0.hello.terms.windowBytes) = (100, 100_000)
                $0.hello.terms.credit = 100_000
            },
            .with { ($0.method.number, $0.method.name) = (1, Self.evil) },
            .with { $0.push.method = 1 },
        ]
        // Before its welcome, the server sends nothing to a client, and drops its frames.
        try await client.write(try frames[0].withDelimitedBytes { Array($0) })
        _ = try await client.readSome(1)
        for frame in frames[1...] { try await client.write(try frame.withDelimitedBytes { Array($0) }) }
        try await server.wait { $0.errorText.contains("There is no method for a push: method=\(Self.escaped)") }
        #expect(!server.errorText.contains("\u{1b}") && !server.errorText.contains("\u{9b}"))
        await server.killAndWait()
    }

    /// The text of a handler and a refusal come from the server.
    @Test func textsOfTheServerAreEscaped() async throws {
        var configuration = SessionServerConfiguration()
        configuration.authenticate = { candidate in
            if candidate.name == "out" { throw SessionStatus(.unauthenticated, Self.evil) }
            return nil
        }
        let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)
        let services: [any SessionService] = [HostileRoom(), SessionReflection(of: [HostileRoom()])]
        try await withSessionServer(listeningOn: anyPort, configuration: configuration, services: services) { server in
            let endpoint = try await "\(server.boundEndpoints[0])"
            for options in [[], ["--name", "out"]] {
                let arguments = ["call", endpoint, "Room/Echo"] + options
                let outcome = try await Program.product("lifeline", arguments).outcome()
                #expect(outcome.status != 0 && outcome.errorText.contains(Self.escaped), "\(outcome.errorText)")
                #expect(!outcome.errorText.contains("\u{1b}") && !outcome.errorText.contains("\u{202e}"))
            }
        }
    }

    /// Lines of the command contain method names.
    @Test func describedNamesAreNames() async throws {
        #expect(stepLine(Self.evil) == "lifeline: \(Self.escaped)")
        for name in ["p.Room/\(Self.evil)", "p..Room/Echo", "p.Room/Echo/Echo"] {
            let listener = try await RawSocket.listen()
            let endpoint = "tcp://127.0.0.1:\(listener.port)"
            async let outcome = Program.product("lifeline", ["list", endpoint]).outcome()
            let server = try await listener.accept()
            // Its hello, and then its request.
            _ = try await server.readSome(1000)
            try await server.write(welcome)
            var request: [UInt8] = []
            while !String(decoding: request, as: UTF8.self).contains("Describe") {
                let some = try await server.readSome(1000)
                try #require(!some.isEmpty, "the command has ended")
                request += some
            }
            try await server.write(description(of: name))
            #expect(try await outcome.status == 65)
            let words = "The server describes a method whose name is not of the form package.Service/Method: "
            #expect(try await outcome.errorText == "lifeline: \(words)\(name.escaped(limit: 100))\n")
        }
    }

    private var welcome: [UInt8] {
        get throws {
            let frame = Lifeline_Session_V1_Frame.with {
                ($0.welcome.version, $0.welcome.keptMilliseconds) = (1, 120_000)
                $0.welcome.sessionID = [UInt8](repeating: 1, count: 16)
                $0.welcome.token = [UInt8](repeating: 2, count: 16)
                ($0.welcome.terms.windowFrames, $0.welcome.terms.windowBytes) = (100, 100_000)
                ($0.welcome.terms.credit, $0.welcome.terms.maximumRequests) = (100_000, 10)
                $0.welcome.terms.maximumFrame = 100_000
            }
            return try frame.withDelimitedBytes { [UInt8]($0) }
        }
    }

    private func description(of method: String) throws -> [UInt8] {
        let description = Lifeline_Reflection_V1_Description.with {
            $0.methods = [.with { ($0.name, $0.kind) = (method, .unary) }]
        }
        let frame = try Lifeline_Session_V1_Frame.with {
            ($0.responsePart.serial, $0.responsePart.payload) = (1, try description.serializedBytes())
        }
        return try frame.withDelimitedBytes { [UInt8]($0) }
    }

    /// Times at the ends of their range and outside of it, which JSON cannot tell.
    @Test func timesOfTheServerEndNobody() async throws {
        let anyPort = Endpoint.tcp(host: "127.0.0.1", port: 0)
        let services: [any SessionService] = [HostileRoom(), SessionReflection(of: [HostileRoom()])]
        try await withSessionServer(listeningOn: anyPort, services: services) { server in
            let outcome = try await call("\(server.boundEndpoints[0])", "Watch")
            #expect(outcome.status == 65)
            #expect(outcome.errorText.contains("Cannot decode a reply of sample.room.v1.Room/Watch. "))
        }
    }

    /// A room that sends harmful text and arbitrary numbers.
    private struct HostileRoom: Sample_Room_V1_RoomHandler {
        func echo(
            _ request: Sample_Room_V1_EchoRequest,
            context: SessionContext
        ) async throws -> Sample_Room_V1_EchoReply {
            throw SessionStatus(.internal, HostileTextTests.evil)
        }

        func watch(
            _ request: Sample_Room_V1_WatchRequest,
            to stream: SessionStreamWriter<Sample_Room_V1_Tick>,
            context: SessionContext
        ) async throws {
            for (seconds, nanos) in [(Int64.min, Int32.min), (.max, .max), (0, -1), (-1, .max)] {
                try await stream.send(
                    .with {
                        $0.number = .max
                        ($0.time.seconds, $0.time.nanos) = (seconds, nanos)
                    }
                )
            }
        }

        func say(
            _ request: Sample_Room_V1_SayRequest,
            context: SessionContext
        ) async throws -> Sample_Room_V1_SayReply {
            .init()
        }

        func report(_ message: Sample_Room_V1_Status, context: SessionContext) async throws {}

        func sayAll(
            _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
            context: SessionContext
        ) async throws -> Sample_Room_V1_SayAllReply {
            .init()
        }

        func talk(
            _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
            to stream: SessionStreamWriter<Sample_Room_V1_NewsItem>,
            context: SessionContext
        ) async throws {}
    }
}
