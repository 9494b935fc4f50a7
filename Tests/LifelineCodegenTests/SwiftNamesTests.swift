import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

/// Types of several files that would have the same name in Swift.
@Suite struct SwiftNamesTests {
    private func names(inModules modules: [String: String] = [:]) throws -> [String: String] {
        let folder = try TemporaryFolder()
        try folder.write(
            "syntax = \"proto3\"; package a; message B_Foo {} enum B_Bar { Z = 0; } message B_FooMessage {}",
            to: "shallow.proto"
        )
        try folder.write(
            "syntax = \"proto3\"; package a.b; message Foo {} message Bar {} message Baz {}",
            to: "deep.proto"
        )
        try folder.write("syntax = \"proto3\"; message A_B_Foo {} enum A_B_Baz { Z = 0; }", to: "none.proto")
        let paths = ["shallow.proto", "deep.proto", "none.proto"]
        var names: [[String: String]] = []
        for paths in [paths, paths.reversed()] {
            let set = try DescriptorSet(protos: Request.compiling(paths, in: folder.url).protoFile)
            let swift = SwiftNames(files: set.files, extensions: [:]) { modules[$0.name] ?? "Sample" }
            let messages = set.files.flatMap(\.messages).map { ($0.fullName, swift.relativeName($0)) }
            let enums = set.files.flatMap(\.enums).map { ($0.fullName, swift.relativeName($0)) }
            names.append(Dictionary(uniqueKeysWithValues: messages + enums))
        }
        #expect(names[0] == names[1], "names depend on the order of files")
        return names[0]
    }

    @Test func theDeepestPackageKeepsTheName() throws {
        #expect(
            try names() == [
                "a.b.Foo": "A_B_Foo", "a.b.Bar": "A_B_Bar", "a.b.Baz": "A_B_Baz",
                "a.B_Foo": "A_B_FooMessageMessage", "a.B_FooMessage": "A_B_FooMessage", "a.B_Bar": "A_B_BarEnum",
                "A_B_Foo": "A_B_FooMessageMessageMessage", "A_B_Baz": "A_B_BazEnum",
            ]
        )
    }

    @Test func otherModulesHaveNamesOfTheirOwn() throws {
        let names = try names(inModules: ["deep.proto": "Deep", "none.proto": "None"])
        #expect(names["a.b.Foo"] == "A_B_Foo" && names["a.B_Foo"] == "A_B_Foo" && names["A_B_Foo"] == "A_B_Foo")
        #expect(names["a.B_Bar"] == "A_B_Bar" && names["A_B_Baz"] == "A_B_Baz")
    }
}
