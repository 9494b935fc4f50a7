import Foundation
import LifelineTestSupport
import Testing

/// `lifeline decode` and `lifeline encode`, with a schema that is not compiled into the command.
@Suite(.timeLimit(.minutes(2)), .serialized) struct DecodeCommandTests {
    private static let schema = """
        syntax = "proto3";
        package acme;
        import "units/unit.proto";
        message Sample {
          uint64 sensor_id = 1;
          string label = 2;
          Unit unit = 3;
          repeated int32 values = 4;
          Origin origin = 5;
          message Origin { bytes raw = 1; }
        }
        message Other {}
        """
    private static let unit = """
        syntax = "proto3";
        package acme;
        enum Unit { UNIT_NONE = 0; UNIT_KELVIN = 1; }
        """

    private struct Files {
        let folder: String
        var schema: String { "\(folder)/acme.proto" }
        /// The options for the type.
        var sample: [String] { ["--proto", schema, "--type", "Sample"] }
    }

    private func withFiles(_ body: (Files) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "decode-\(UUID().uuidString)")
        let units = folder.appending(path: "units")
        try FileManager.default.createDirectory(at: units, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(Self.schema.utf8).write(to: folder.appending(path: "acme.proto"))
        try Data(Self.unit.utf8).write(to: units.appending(path: "unit.proto"))
        try await body(Files(folder: folder.path))
    }

    private func lifeline(_ arguments: [String], _ input: some Sequence<UInt8>) async throws -> Program.Outcome {
        try await Program.product("lifeline", arguments).outcome(input: Data(input))
    }

    private func lines(_ outcome: Program.Outcome) -> [String] {
        String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// id 7, label "Grüezi", kelvin, values 1 and 300; an empty message; id 8 and raw bytes.
    private static let stream: [UInt8] = {
        let label = Array("Grüezi".utf8)
        let first: [UInt8] = [0x08, 7, 0x12, UInt8(label.count)] + label + [0x18, 1, 0x22, 3, 1, 0xAC, 0x02]
        let last: [UInt8] = [0x08, 8, 0x2A, 3, 0x0A, 1, 0xFF]
        return [UInt8(first.count)] + first + [0, UInt8(last.count)] + last
    }()
    private static let json = [
        #"{"sensorId":"7","label":"Grüezi","unit":"UNIT_KELVIN","values":[1,300]}"#, "{}",
        #"{"sensorId":"8","origin":{"raw":"/w=="}}"#,
    ]
    private static let text = """
        sensor_id: 7
        label: "Grüezi"
        unit: UNIT_KELVIN
        values: 1
        values: 300
        ---
        ---
        sensor_id: 8
        origin {
          raw: "\\377"
        }
        ---

        """

    // MARK: Forms

    @Test func messagesBecomeJSONLines() async throws {
        try await withFiles { files in
            let outcome = try await lifeline(["decode"] + files.sample, Self.stream)
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(lines(outcome) == Self.json)
            #expect(outcome.errorText.isEmpty, "it is quiet when no terminal listens")
        }
    }

    @Test func messagesBecomeText() async throws {
        try await withFiles { files in
            let outcome = try await lifeline(["decode", "--format", "text"] + files.sample, Self.stream)
            #expect(String(decoding: outcome.output, as: UTF8.self) == Self.text)
        }
    }

    @Test func encodingIsTheInverse() async throws {
        try await withFiles { files in
            let json = try await lifeline(["encode"] + files.sample, Self.json.joined(separator: "\n").utf8)
            #expect(json.output == Data(Self.stream), "\(json.errorText)")
            let text = try await lifeline(["encode", "--format", "text"] + files.sample, Self.text.utf8)
            #expect(text.output == Data(Self.stream), "\(text.errorText)")
        }
    }

    @Test func withoutATypeFieldsHaveNumbers() async throws {
        let outcome = try await lifeline(["decode"], Self.stream)
        let text = """
            1: 7
            2: "Grüezi"
            3: 1
            4: "\\001\\254\\002"
            ---
            ---
            1: 8
            5 {
              1: "\\377"
            }
            ---

            """
        #expect(String(decoding: outcome.output, as: UTF8.self) == text)
    }

    @Test func optionsChangeTheJSON() async throws {
        try await withFiles { files in
            let names = try await lifeline(["decode", "--proto-names", "--count", "1"] + files.sample, Self.stream)
            #expect(lines(names).count == 1)
            #expect(lines(names).first?.hasPrefix(#"{"sensor_id":"7","#) == true)
            let all = try await lifeline(["decode", "--all-fields"] + files.sample, [0])
            #expect(lines(all) == [#"{"sensorId":"0","label":"","unit":"UNIT_NONE","values":[]}"#])
        }
    }

    @Test func aFileIsReadAsStandardInputIs() async throws {
        try await withFiles { files in
            let path = "\(files.folder)/samples.binpb"
            try Data(Self.stream).write(to: URL(filePath: path))
            let outcome = try await lifeline(["decode"] + files.sample + [path], [])
            #expect(lines(outcome) == Self.json)
            let missing = try await lifeline(["decode", "\(path)x"], [])
            #expect(missing.status == 74)
            #expect(missing.errorText == "lifeline: Cannot open \(path)x: No such file or directory.\n")
        }
    }

    // MARK: Schemas

    @Test func typesComeFromADescriptorSet() async throws {
        try await withFiles { files in
            let set = "\(files.folder)/set"
            let options = ["--include_imports", "--descriptor_set_out=\(set)", "-I\(files.folder)", files.schema]
            _ = try await Program(URL(filePath: "/usr/bin/protoc"), options).run()
            let type = ["--descriptor-set", set, "--type", "acme.Sample"]
            #expect(try await lines(lifeline(["decode"] + type, Self.stream)) == Self.json)
            try Data([0xFF]).write(to: URL(filePath: set))
            let damaged = try await lifeline(["decode"] + type, Self.stream)
            #expect(damaged.status == 65)
            #expect(damaged.errorText.contains("Is it a file that protoc --descriptor_set_out has written?"))
        }
    }

    @Test func aFolderOfImportsIsNamed() async throws {
        try await withFiles { files in
            let elsewhere = "\(files.folder)/elsewhere"
            try FileManager.default.createDirectory(atPath: elsewhere, withIntermediateDirectories: true)
            try FileManager.default.moveItem(atPath: files.schema, toPath: "\(elsewhere)/acme.proto")
            let type = ["decode", "--proto", "\(elsewhere)/acme.proto", "--type", "Sample"]
            let failed = try await lifeline(type, Self.stream)
            #expect(failed.status == 65)
            #expect(failed.errorText.hasSuffix("Name the folder of the imports with -I.\n"), "\(failed.errorText)")
            let outcome = try await lifeline(type + ["-I", files.folder, "-I", elsewhere], Self.stream)
            #expect(lines(outcome) == Self.json, "\(outcome.errorText)")
        }
    }

    @Test func aTypeThatIsMissingIsToldWithThoseThatAreThere() async throws {
        try await withFiles { files in
            let unknown = try await lifeline(["decode", "--proto", files.schema, "--type", "Origins"], [])
            #expect(unknown.status == 64)
            let types = "acme.Sample, acme.Sample.Origin and acme.Other"
            #expect(unknown.errorText == "lifeline: There is no message type Origins. There is \(types).\n")
            let similar = try await lifeline(["decode", "--proto", files.schema, "--type", "other"], [])
            #expect(similar.errorText == "lifeline: There is no message type other. There is acme.Other.\n")
            let none = try await lifeline(["decode", "--proto", files.schema], [])
            #expect(none.status == 64)
            #expect(none.errorText == "lifeline: --type is missing. There is \(types).\n")
            let noSchema = try await lifeline(["decode", "--type", "acme.Sample"], [])
            #expect(noSchema.status == 64)
            #expect(noSchema.errorText.contains("--proto FILE"))
            let json = try await lifeline(["decode", "--format", "json"], [])
            #expect(json.status == 64)
            #expect(json.errorText.contains("lifeline decode --proto FILE --type NAME"))
        }
    }

    @Test func protocTellsWhatIsWrong() async throws {
        try await withFiles { files in
            try Data("message {".utf8).write(to: URL(filePath: files.schema))
            let outcome = try await lifeline(["decode"] + files.sample, [])
            #expect(outcome.status == 65)
            #expect(
                outcome.errorText.contains("protoc: acme.proto:1:9: Expected message name."),
                "\(outcome.errorText)"
            )
        }
    }

    @Test func withoutProtocThePackageIsNamed() async throws {
        try await withFiles { files in
            let lifeline = try Program.product("lifeline", []).path
            let arguments = ["-c", "PATH=/nowhere exec \"$0\" \"$@\"", lifeline, "decode"] + files.sample
            let outcome = try await Program(URL(filePath: "/bin/sh"), arguments).outcome()
            #expect(outcome.status == 69)
            #expect(outcome.errorText.contains("protobuf-compiler"))
        }
    }

    // MARK: Bad data

    @Test func aBadMessageEndsTheCommandUnlessItIsSkipped() async throws {
        try await withFiles { files in
            let stream = Self.stream + [2, 0x12, 9] + Self.stream
            let stopped = try await lifeline(["decode"] + files.sample, stream)
            #expect(stopped.status == 65)
            #expect(lines(stopped) == Self.json)
            let place = "message 4 of standard input, at byte \(Self.stream.count)"
            #expect(stopped.errorText.hasPrefix("lifeline: Cannot decode \(place). "), "\(stopped.errorText)")
            let skipped = try await lifeline(["decode", "--skip-bad"] + files.sample, stream)
            #expect(skipped.status == 0)
            #expect(lines(skipped) == Self.json + Self.json)
            #expect(skipped.errorText.hasPrefix("lifeline: left out \(place): "), "\(skipped.errorText)")
            #expect(skipped.errorText.hasSuffix("left out 1 of 7 messages, which cannot be decoded\n"))
        }
    }

    @Test func aStreamThatIsNoneEndsTheCommandAlways() async throws {
        try await withFiles { files in
            let endings: [(String, [UInt8])] = [
                ("The stream ends inside a message.", [5, 0x08]),
                ("The bytes here are not the length of a message.", [0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
                ("It is longer than --limit allows.", [0x80, 0x80, 0x80, 0x80, 0x01]),
            ]
            for (words, ending) in endings {
                let outcome = try await lifeline(["decode", "--skip-bad"] + files.sample, Self.stream + ending)
                #expect(outcome.status == 65)
                #expect(lines(outcome) == Self.json)
                let place = "Cannot read message 4 of standard input, at byte \(Self.stream.count). "
                #expect(outcome.errorText.contains(place + words), "\(outcome.errorText)")
            }
        }
    }

    @Test func bytesBehindTheLastMessageAreNotRead() async throws {
        try await withFiles { files in
            let stream = Self.stream + [0xFF, 0xFF, 0xFF, 0xFF, 0xFF]
            let outcome = try await lifeline(["decode", "--count", "3"] + files.sample, stream)
            #expect(outcome.status == 0, "\(outcome.errorText)")
            #expect(lines(outcome) == Self.json)
        }
    }

    /// Only the advice for programs is left out, whatever names the schema has.
    @Test func namesWithOptionsAreTold() async throws {
        try await withFiles { files in
            let schema = "syntax = \"proto3\"; package acme; message PollOptions { uint32 id = 1; }"
            try Data(schema.utf8).write(to: URL(filePath: files.schema))
            let type = ["--proto", files.schema, "--type", "PollOptions"]
            let outcome = try await lifeline(["encode"] + type, "{\"id\": \"x\"}".utf8)
            #expect(outcome.errorText.contains("acme.PollOptions.id (number 1)"), "\(outcome.errorText)")
            let unknown = try await lifeline(["encode"] + type, "{\"other\": 1}".utf8)
            #expect(unknown.errorText.contains("in acme.PollOptions. --ignore-unknown "), "\(unknown.errorText)")
        }
    }

    @Test func badTextIsToldByItsLine() async throws {
        try await withFiles { files in
            let unknown = try await lifeline(["encode"] + files.sample, "{}\n\n{\"other\": 1}".utf8)
            #expect(unknown.status == 65)
            #expect(unknown.output == Data([0]), "what stands before it is written")
            #expect(unknown.errorText.hasPrefix("lifeline: Cannot encode message 2 of standard input, at line 3. "))
            #expect(unknown.errorText.hasSuffix("--ignore-unknown passes over such fields and values.\n"))
            let ignored = try await lifeline(["encode", "--ignore-unknown"] + files.sample, "{\"other\": 1}".utf8)
            #expect(ignored.output == Data([0]), "\(ignored.errorText)")
            let long = try await lifeline(["encode", "--limit", "3"] + files.sample, "{\"label\": \"ab\"}".utf8)
            #expect(long.status == 65)
            #expect(long.errorText.contains("It is longer than --limit allows."), "\(long.errorText)")
        }
    }

    /// The output may go to a terminal.
    @Test func aTerminalGetsNoControlCharacters() async throws {
        try await withFiles { files in
            let stream = "\(files.folder)/samples.binpb"
            let label = Array("\u{1b}[31m\u{9b}\u{202e}".utf8)
            try Data([UInt8(label.count + 2), 0x12, UInt8(label.count)] + label).write(to: URL(filePath: stream))
            let lifeline = try Program.product("lifeline", []).path
            let command = ([lifeline, "decode"] + files.sample + [stream]).joined(separator: " ")
            let output = try await Program(URL(filePath: "/usr/bin/script"), ["-qec", command, "/dev/null"]).run()
            let expected = #"{"label":"\u001b[31m\u009b\u202e"}"#
            #expect(String(decoding: output, as: UTF8.self) == expected + "\r\n")
        }
    }

    @Test func aTerminalGetsNoBinaryMessages() async throws {
        try await withFiles { files in
            let lifeline = try Program.product("lifeline", []).path
            let command = ([lifeline, "encode"] + files.sample).joined(separator: " ")
            let program = Program(URL(filePath: "/usr/bin/script"), ["-qec", command, "/dev/null"])
            let outcome = try await program.outcome(input: Data("{}".utf8))
            #expect(outcome.status == 64)
            #expect(String(decoding: outcome.output, as: UTF8.self).contains("Messages are binary"))
        }
    }
}
