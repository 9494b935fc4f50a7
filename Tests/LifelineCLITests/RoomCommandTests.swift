import Foundation
import LifelineTestSupport
import RegexBuilder
import Testing

/// `lifeline serve`, `lifeline call`, `lifeline list` and `lifeline describe`: methods of each kind.
@Suite(.timeLimit(.minutes(2)), .serialized) struct RoomCommandTests {
    private func text(_ outcome: Program.Outcome) -> String { String(decoding: outcome.output, as: UTF8.self) }

    private func lines(_ outcome: Program.Outcome) -> [String] { text(outcome).split(separator: "\n").map(String.init) }

    private func says(_ text: String) -> String { "{\"text\": \"\(text)\"}" }

    /// The names and texts in lines of NewsItem messages.
    private func said(_ lines: [String]) throws -> [String] {
        try lines.map { line in
            let match = try #require(
                line.wholeMatch(of: /\{"number":"\d+","from":"(.*)","text":"(.*)","time":"[-0-9T:.]+Z"\}/),
                "\(line)"
            )
            return "\(match.output.1): \(match.output.2)"
        }
    }

    // MARK: A request and a reply

    @Test(arguments: ["tcp://127.0.0.1:0", "ws://127.0.0.1:0/room"])
    func aReplyIsPrinted(listening: String) async throws {
        let (server, endpoint) = try await RunningCommand.serve(on: listening)
        let one = try await call(endpoint, "Echo", "--data", says("Grüezi"))
        #expect(one.status == 0 && text(one) == "{\"text\":\"Grüezi\",\"count\":\"1\"}\n", "\(one.errorText)")
        #expect(one.errorText.isEmpty, "\(one.errorText)")
        let empty = try await call(endpoint, "Echo", "--all-fields")
        #expect(text(empty) == "{\"number\":\"0\",\"text\":\"\",\"count\":\"1\"}\n", "\(empty.errorText)")
        server.send(SIGINT)
        #expect(await server.finish() == 0)
    }

    @Test func manyRequestsAreManyCalls() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let requests = (1...500).map { "{\"number\": \($0)}" }
        let inTurn = try await call(endpoint, "Echo", "--data", "@-", input: requests.joined(separator: "\n"))
        let expected = (1...500).map { "{\"number\":\"\($0)\",\"count\":\"\($0)\"}" }
        #expect(inTurn.status == 0 && lines(inTurn) == expected, "\(inTurn.errorText)")
        try await withTemporaryPath("requests") { path in
            try Data(requests.joined().utf8).write(to: URL(filePath: path))
            let options = ["--data", "@\(path)", "--concurrency", "7"]
            let atOnce = try await call(endpoint, "Echo", options[0], options[1], options[2], options[3])
            let numbers = try lines(atOnce).map { line in
                try #require(line.firstMatch(of: /"number":"(\d+)"/)).output.1
            }
            #expect(Set(numbers).count == 500 && numbers.count == 500, "\(atOnce.errorText)")
        }
        await server.killAndWait()
    }

    @Test func callsAreMeasured() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let words = try await call(endpoint, "Echo", "--count", "500", "--concurrency", "7")
        let time = /[0-9]+\.[0-9]{2}/
        let summary = Regex {
            "500 calls in "
            time
            " s, "
            OneOrMore(.digit)
            " a second; half within "
            time
            " ms, 99 % within "
            time
            " ms, all within "
            time
            " ms\n"
        }
        #expect(words.status == 0 && text(words).wholeMatch(of: summary) != nil, "\(text(words))")
        #expect(words.errorText.isEmpty)
        let json = try await call(endpoint, "Echo", "--count", "2", "--json", "--data", says("a") + says("b"))
        let object = try #require(try JSONSerialization.jsonObject(with: json.output) as? [String: Double])
        #expect(object["calls"] == 2 && object["inDoubt"] == 0)
        #expect(try #require(object["p50"]) <= #require(object["max"]))
        await server.killAndWait()
    }

    @Test func echoesAreRecordedBeforeTheyAreAnswered() async throws {
        try await withTemporaryPath("record") { path in
            let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--record", path)
            let requests = (1...100).map { "{\"number\": \($0)}" }.joined()
            #expect(try await call(endpoint, "Echo", "--data", requests).status == 0)
            let first = try Record(path: path)
            #expect(first.counts.count == 100 && first.counts.values.allSatisfy { $0 == 1 })
            #expect(first.sessions.count == 1)
            #expect(try await call(endpoint, "Echo", "--data", "{\"number\": 2}").status == 0)
            let second = try Record(path: path)
            #expect(second.counts[1] == 1 && second.counts[2] == 2 && second.sessions.count == 2)
            await server.killAndWait()
        }
    }

    @Test func callsGoOverTLS() async throws {
        let root = try TestCertificate.authority()
        let certificate = try TestCertificate.localhost(issuedBy: root)
        try await withTemporaryPath("ca.pem") { ca in
            try await withTemporaryPath("cert.pem") { cert in
                try await withTemporaryPath("key.pem") { key in
                    try Data(root.pem).write(to: URL(filePath: ca))
                    try Data(certificate.pem).write(to: URL(filePath: cert))
                    try Data(certificate.keyPEM).write(to: URL(filePath: key))
                    let (server, endpoint) = try await RunningCommand.serve(
                        on: "tls://127.0.0.1:0",
                        "--certificate",
                        cert,
                        "--key",
                        key
                    )
                    let trusting = try await call(endpoint, "Echo", "--ca", ca)
                    #expect(trusting.status == 0, "\(trusting.errorText)")
                    let untrusting = try await call(endpoint, "Echo")
                    #expect(untrusting.status == 69)
                    #expect(untrusting.errorText.hasPrefix("lifeline: No connection to \(endpoint). "))
                    await server.killAndWait()
                }
            }
        }
    }

    // MARK: Streams

    @Test func aStreamOfRepliesIsPrinted() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let outcome = try await call(endpoint, "Watch", "--data", "{\"count\": 3, \"interval\": \"0.01s\"}")
        #expect(outcome.status == 0 && outcome.errorText.isEmpty)
        let ticks = lines(outcome).map { $0.firstMatch(of: /\{"number":(\d),"time":"[-0-9T:.]+Z"\}/)?.output.1 }
        #expect(ticks == ["1", "2", "3"])
        let limited = try await call(endpoint, "Watch", "--count", "3", "--data", "{\"interval\": \"0.01s\"}")
        #expect(limited.status == 0 && lines(limited).count == 3, "\(limited.errorText)")
        // Without a count, the stream continues until it is interrupted.
        let watch = try RunningCommand(["call", endpoint, "Room/Watch", "--data", "{\"interval\": \"0.01s\"}"])
        try await watch.wait { $0.lines.count > 3 }
        watch.send(SIGINT)
        #expect(await watch.finish() == 128 + SIGINT)
        #expect(watch.errorText.isEmpty)
        await server.killAndWait()
    }

    @Test func aStreamOfRequestsIsSent() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let input = ["one", "two", "three"].map(says).joined(separator: "\n")
        let outcome = try await call(endpoint, "SayAll", "--name", "Ada", input: input)
        #expect(outcome.status == 0 && outcome.errorText.isEmpty)
        #expect(text(outcome) == "{\"count\":3,\"lastNumber\":\"3\"}\n")
        let nothing = try await call(endpoint, "SayAll", input: "")
        #expect(nothing.status == 0 && text(nothing) == "{}\n")
        #expect(server.errorText.contains("\nAda: one\nAda: two\nAda: three\n"))
        await server.killAndWait()
    }

    /// Messages come back while standard input is still open.
    @Test func twoTalk() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let ada = try RunningCommand(["call", endpoint, "Room/Talk", "--name", "Ada"])
        try ada.type(says("Hello"))
        try await ada.wait { try said($0.lines) == ["Ada: Hello"] }
        let bob = try RunningCommand(["call", endpoint, "Room/Talk", "--name", "Bob"])
        try bob.type(says("Grüezi"))
        try await ada.wait { try said($0.lines) == ["Ada: Hello", "Bob: Grüezi"] }
        try await bob.wait { try said($0.lines) == ["Bob: Grüezi"] }
        try ada.endInput()
        #expect(await ada.finish() == 0)
        try bob.type(says("Alone"))
        try await bob.wait { try said($0.lines) == ["Bob: Grüezi", "Bob: Alone"] }
        try bob.endInput()
        #expect(await bob.finish() == 0)
        #expect(ada.errorText.isEmpty && bob.errorText.isEmpty)
        await server.killAndWait()
    }

    /// A line is sent when it is typed. A wrong line is reported, even an incomplete one, and the call continues.
    @Test func requestsAreTypedOnATerminal() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let terminal = try Terminal()
        let command = ["call", endpoint, "Room/Talk", "--name", "Ada"]
        let ada = try RunningCommand(command, after: "exec 0<>\(terminal.path)")
        try terminal.type(says("Hello") + "\n")
        try await ada.wait { try said($0.lines) == ["Ada: Hello"] }
        #expect(ada.errorText.isEmpty)
        try terminal.type("{\"text\": \"open\n\n{\"txt\": \"x\"}\n" + says("two") + says("three") + "\n")
        try await ada.wait { try said($0.lines) == ["Ada: Hello", "Ada: two", "Ada: three"] }
        let errors = ada.errorText.split(separator: "\n")
        let words = { (line: Int) in "lifeline: not sent: Cannot encode message 2 of standard input, at line \(line). "
        }
        #expect(errors.count == 2 && errors[0].hasPrefix(words(2)) && errors[1].hasPrefix(words(4)), "\(errors)")
        try terminal.type(says(String(repeating: "x", count: 4095)) + "\n")
        try await ada.wait { $0.errorText.contains(" A terminal takes the first 4,095 bytes of a line only; ") }
        // Ctrl-D.
        try terminal.type("\u{4}")
        #expect(await ada.finish() == 0, "\(ada.errorText)")
        await server.killAndWait()
    }

    /// The call ends, not only the command: the visitor has left the room.
    @Test(arguments: ["Talk", "SayAll"])
    func anInterruptEndsTheCall(method: String) async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let ada = try RunningCommand(["call", endpoint, "Room/\(method)", "--name", "Ada"])
        try ada.type(says("Hello"))
        try await server.wait { $0.errorText.contains("Ada: Hello") }
        ada.send(SIGINT)
        #expect(await ada.finish() == 128 + SIGINT, "\(ada.errorText)")
        #expect(ada.errorText.isEmpty)
        try await server.wait { $0.errorText.contains("Ada left") }
        await server.killAndWait()
    }

    @Test func sessionsAreToldAsJSON() async throws {
        let (server, endpoint) = try await RunningCommand.serve(on: "tcp://127.0.0.1:0", "--json")
        let outcome = try await call(endpoint, "Say", "--name", "A\u{9b}da", "--data", says("Hello"))
        #expect(outcome.status == 0, "\(outcome.errorText)")
        try await server.wait { $0.errorText.contains("ended") }
        let objects = try server.errorText.split(separator: "\n").dropFirst().map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String])
        }
        #expect(objects.map { $0["event"] } == ["began", "ended"])
        #expect(objects.allSatisfy { $0["name"] == "A\\u{9b}da" && $0["session"]?.isEmpty == false }, "\(objects)")
        #expect(objects.first?["session"] == objects.last?["session"])
        await server.killAndWait()
    }

    // MARK: Pushes

    @Test func aPushIsProcessed() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let status = says("at lunch\\u001b[2J")
        let outcome = try await call(endpoint, "Report", "--name", "Ada", "--data", status)
        #expect(outcome.status == 0 && outcome.output.isEmpty && outcome.errorText.isEmpty)
        // Control characters for another terminal are shown escaped.
        try await server.wait { $0.errorText.contains("Ada left; last status: at lunch\\u{1b}[2J\n") }
        #expect(server.errorText.contains("Ada joined\nAda reports: at lunch\\u{1b}[2J\n"))
        await server.killAndWait()
    }

    @Test func pushesOfTheServerArePrinted() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        // The full name, so that none is missed before the server has described itself.
        let news = try RunningCommand(["call", endpoint, "sample.room.v1.Room/News", "--name", "Eve", "--count", "2"])
        try await server.wait { $0.errorText.contains("Eve joined") }
        let outcome = try await call(endpoint, "SayAll", "--name", "Ada", input: says("one") + says("two"))
        #expect(outcome.status == 0)
        #expect(await news.finish() == 0, "\(news.errorText)")
        #expect(try said(news.lines) == ["Ada: one", "Ada: two"])
        await server.killAndWait()
    }

    // MARK: Long messages

    /// In both directions, for the limits of both sides.
    @Test func limitBoundsRequestsAndReplies() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let request = says(String(repeating: "x", count: 1000))
        let long = try await call(endpoint, "Echo", "--limit", "1000", "--data", "@-", input: says("one") + request)
        #expect(long.status == 65 && lines(long).count == 1)
        let words = "lifeline: Cannot encode message 2 of standard input, at line 1. It is longer than --limit allows."
        #expect(long.errorText.contains(words), "\(long.errorText)")
        let short = try await call(endpoint, "Echo", "--limit", "1003", "--data", "@-", input: request)
        #expect(short.status == 0, "\(short.errorText)")
        let huge = says(String(repeating: "x", count: 4 << 20))
        let usual = try await call(endpoint, "Echo", "--data", "@-", input: huge)
        #expect(usual.status == 65 && usual.errorText.contains("--limit"), "\(usual.errorText)")
        let refused = try await call(endpoint, "Echo", "--limit", "5000000", "--data", "@-", input: huge)
        #expect(refused.status == 65 && refused.errorText.contains("The peer takes no frame of the message's length."))
        await server.killAndWait()
    }

    // MARK: Schemas

    @Test func aServerListsItsMethods() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let words = try await Program.product("lifeline", ["list", endpoint]).outcome()
        #expect(words.status == 0)
        let room = "sample.room.v1"
        let kinds = [
            "Echo unary (\(room).EchoRequest) → \(room).EchoReply",
            "Watch server stream (\(room).WatchRequest) → \(room).Tick",
            "Say unary (\(room).SayRequest) → \(room).SayReply",
            "Report push (\(room).Status)",
            "SayAll client stream (\(room).SayRequest) → \(room).SayAllReply",
            "Talk both ways (\(room).SayRequest) → \(room).NewsItem",
        ]
        let reflection = "lifeline.reflection.v1"
        let expected =
            kinds.map { "\(room).Room/\($0)" } + [
                "\(reflection).Reflection/Describe server stream (\(reflection).DescribeRequest) → "
                    + "\(reflection).Description",
                "\(room).Room/News server push \(room).NewsItem",
            ]
        #expect(lines(words).map { $0.split(separator: " ").joined(separator: " ") } == expected)
        let json = try await Program.product("lifeline", ["list", endpoint, "--json"]).outcome()
        let first = "{\"kind\":\"unary\",\"name\":\"\(room).Room/Echo\",\"reply\":\"\(room).EchoReply\","
        #expect(lines(json).first == first + "\"request\":\"\(room).EchoRequest\"}")
        await server.killAndWait()
    }

    @Test func declarationsArePrinted() async throws {
        let (server, endpoint) = try await RunningCommand.serve()
        let method = try await Program.product("lifeline", ["describe", "Room/Watch", endpoint]).outcome()
        let expected = """
            rpc Watch(sample.room.v1.WatchRequest) returns (stream sample.room.v1.Tick);
            message WatchRequest {
              uint32 count = 1;
              google.protobuf.Duration interval = 2;
            }
            message Tick {
              uint32 number = 1;
              google.protobuf.Timestamp time = 2;
            }

            """
        #expect(method.status == 0 && text(method) == expected, "\(method.errorText)")
        let unknown = try await Program.product("lifeline", ["describe", "Rooms", endpoint]).outcome()
        #expect(unknown.status == 64)
        #expect(unknown.errorText.hasPrefix("lifeline: There is no declaration Rooms. There is "))
        await server.killAndWait()
    }

    /// Comments, and all other kinds of fields.
    @Test func aProtoFileIsDescribed() async throws {
        let schema = """
            syntax = "proto3";
            package acme;
            // Sells things.
            service Shop {
              // Buys one.
              rpc Buy(Order) returns (stream Order);
            }
            // What somebody wants.
            message Order {
              // Each once.
              repeated string names = 1;
              optional int32 price = 2;
              map<string, Size> sizes = 3;
              oneof payment { bytes coins = 4; Order loan = 5; }
              enum Size { SMALL = 0; LARGE = 1; }
            }

            """
        try await withTemporaryPath("shop.proto") { path in
            try Data(schema.utf8).write(to: URL(filePath: path))
            let outcome = try await Program.product("lifeline", ["describe", "Order", "--proto", path]).outcome()
            let expected = """
                // What somebody wants.
                message Order {
                  // Each once.
                  repeated string names = 1;
                  optional int32 price = 2;
                  map<string, acme.Order.Size> sizes = 3;
                  oneof payment {
                    bytes coins = 4;
                    acme.Order loan = 5;
                  }
                  enum Size {
                    SMALL = 0;
                    LARGE = 1;
                  }
                }

                """
            #expect(outcome.status == 0 && text(outcome) == expected, "\(text(outcome)) \(outcome.errorText)")
            let json = try await Program.product("lifeline", ["describe", "Buy", "--proto", path, "--json"]).outcome()
            let objects = try lines(json).map { line in
                try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            }
            #expect(objects.map { $0["kind"] as? String } == ["method", "message"], "\(json.errorText)")
            #expect(objects.map { $0["name"] as? String } == ["acme.Shop.Buy", "acme.Order"])
            #expect((objects[0]["declaration"] as? [String: Any])?["inputType"] as? String == ".acme.Order")
            let fields = (objects[1]["declaration"] as? [String: Any])?["field"] as? [[String: Any]]
            #expect(fields?.first?["name"] as? String == "names")
            let service = try await Program.product("lifeline", ["describe", "Shop", "--proto", path]).outcome()
            #expect(text(service).hasPrefix("// Sells things.\nservice Shop {\n  // Buys one.\n  rpc Buy(acme.Order) "))
            let list = try await Program.product("lifeline", ["list", "--proto", path]).outcome()
            #expect(text(list) == "acme.Shop/Buy  server stream  (acme.Order) → acme.Order\n")
        }
    }

    /// Information for readers beyond names and types.
    @Test func optionsAndCommentsBehindDeclarationsAreDescribed() async throws {
        let schema = """
            syntax = "proto2";
            message Order { // What somebody wants.
              reserved 2, 9 to 11, 40 to max;
              reserved "weight", "height";
              extensions 30 to 39;
              optional string text = 1 [default = "a \\"b\\""]; // Behind the field.
              // Before the field.
              repeated int32 numbers = 3 [packed = true];
              optional bytes data = 4 [default = "\\001x", json_name = "content"];
              optional Kind kind = 5 [default = LARGE, deprecated = true];
              // Behind it as well,
              // in two lines.

              optional int32 price_in_cents = 6;
              optional bool is_paid = 7 [json_name = "isPaid"];
            }
            enum Kind {
              option deprecated = true;
              option allow_alias = true;
              reserved 5, 7 to 9;
              reserved "HUGE";
              SMALL = 0; // Less than a metre.
              LARGE = 1 [deprecated = true];
              BIG = 1;
            }
            service Shop {
              rpc Buy(Order) returns (Order) { // No more.
                option deprecated = true;
              }
            }

            """
        let order = """
            message Order {  // What somebody wants.
              extensions 30 to 39;
              reserved 2, 9 to 11, 40 to max;
              reserved "weight", "height";
              optional string text = 1 [default = "a \\"b\\""];  // Behind the field.
              // Before the field.
              repeated int32 numbers = 3 [packed = true];
              optional bytes data = 4 [default = "\\001x", json_name = "content"];
              optional Kind kind = 5 [default = LARGE, deprecated = true];  // Behind it as well,
              // in two lines.

              optional int32 price_in_cents = 6;
              optional bool is_paid = 7;
            }

            """
        let kind = """
            enum Kind {
              option deprecated = true;
              option allow_alias = true;
              reserved 5, 7 to 9;
              reserved "HUGE";
              SMALL = 0;  // Less than a metre.
              LARGE = 1 [deprecated = true];
              BIG = 1;
            }

            """
        let shop = """
            service Shop {
              rpc Buy(Order) returns (Order) {  // No more.
                option deprecated = true;
              }
            }

            """
        try await withTemporaryPath("shop.proto") { path in
            try Data(schema.utf8).write(to: URL(filePath: path))
            for (name, expected) in [("Order", order), ("Kind", kind), ("Shop", shop)] {
                let outcome = try await Program.product("lifeline", ["describe", name, "--proto", path]).outcome()
                #expect(outcome.status == 0 && text(outcome) == expected, "\(text(outcome)) \(outcome.errorText)")
            }
        }
    }

    @Test(arguments: ["call", "decode", "describe", "encode", "list", "relay", "replay", "serve"])
    func helpTeaches(command: String) async throws {
        let outcome = try await Program.product("lifeline", [command, "--help"]).outcome()
        #expect(outcome.status == 0)
        #expect(text(outcome).contains("  lifeline \(command) "), "an example")
        for scheme in command == "serve" || command == "call" ? ["tcp", "tls", "ws", "wss", "unix"] : [] {
            #expect(text(outcome).contains(" \(scheme)://"), "\(scheme)")
        }
    }
}

/// The record of `lifeline serve --record`.
struct Record {
    private(set) var counts: [Int: Int] = [:]
    private(set) var sessions: Set<Substring> = []

    init(path: String) throws {
        let lines = try String(contentsOf: URL(filePath: path), encoding: .utf8).split(separator: "\n")
        for line in lines {
            let words = line.split(separator: " ")
            guard words.count == 2, words[0].count == 32, let number = Int(words[1]) else {
                throw RunningCommand.Ended(errorText: "a line of the record: \(line)")
            }
            sessions.insert(words[0])
            counts[number, default: 0] += 1
        }
    }
}

/// Counts the lines of a record while it grows.
struct GrowingRecord {
    private let path: String
    private var readByteCount: UInt64 = 0
    private var lineCount = 0

    init(path: String) { self.path = path }

    /// The number of lines so far. Reads only the bytes since the last call.
    mutating func count() throws -> Int {
        let file = try FileHandle(forReadingFrom: URL(filePath: path))
        defer { try? file.close() }
        try file.seek(toOffset: readByteCount)
        let news = try file.readToEnd() ?? Data()
        readByteCount += UInt64(news.count)
        for byte in news where byte == UInt8(ascii: "\n") { lineCount += 1 }
        return lineCount
    }
}
