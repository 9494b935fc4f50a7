import Foundation
import SwiftProtobufPluginLibrary
import Testing

@testable import LifelineCodegen

@Suite struct CNamesTests {
    @Test(arguments: [
        ("foo.Bar", "Foo__Bar", "foo__bar", "FOO__BAR"),
        ("foo.bar_baz.Message", "Foo__BarBaz__Message", "foo__bar_baz__message", "FOO__BAR_BAZ__MESSAGE"),
        ("foo.HTTPServer", "Foo__HTTPServer", "foo__httpserver", "FOO__HTTPSERVER"),
        ("foo.v1.aB1C", "Foo__V1__AB1C", "foo__v1__a_b1_c", "FOO__V1__A_B1_C"),
        ("x._Leading", "X__Leading", "x____leading", "X____LEADING"),
    ])
    func mangling(fullName: String, type: String, lower: String, upper: String) {
        #expect(ProtobufCMangling.type(fullName) == type)
        #expect(ProtobufCMangling.lower(fullName) == lower)
        #expect(ProtobufCMangling.upper(fullName) == upper)
    }

    /// Every name that the tables and the Swift use is one that protoc-gen-c wrote.
    @Test(arguments: [
        ("Protos", "test/names/clashes"), ("Protos", "test/names/unpackaged"), ("codegen/names", "keywords"),
        ("codegen/names", "types"), ("codegen/names", "spellings"), ("codegen/names", "digits"),
    ])
    func namesAreThoseThatProtocGenCWrites(folder: String, file: String) throws {
        let path = "\(file).proto"
        let request = try Request.compiling([path], in: repository.appending(path: folder))
        let response = generate(request)
        #expect(response.error == "")
        let header = try response.content("CSample/include/\(file).pb-c.h")
        let schema = Schema(DescriptorSet(protos: request.protoFile)) { _ in "Sample" }
        let descriptor = try #require(schema.descriptors.fileDescriptor(named: path))
        let structs = Self.structs(in: header)
        #expect(structs.count == descriptor.allMessages.count)
        for message in descriptor.allMessages {
            let members = try #require(structs[schema.names.type(message)], "\(message.fullName)")
            #expect(header.contains(" \(schema.names.prefix(message))__descriptor;"))
            for field in message.fields {
                #expect(members.contains(schema.names.member(field)), "\(field.fullName)")
                if let quantifier = field.presence(in: schema.names).quantifier {
                    #expect(members.contains(quantifier), "\(field.fullName)")
                }
            }
        }
    }

    @Test func namesOfFilesGeneratedOneByOneAreUniqueOverAll() throws {
        let folder = repository.appending(path: "codegen/names")
        let paths = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".proto") }.sorted()
        let all = try Self.symbols(ofFiles: paths, in: folder)
        for path in paths {
            for (fullName, symbols) in try Self.symbols(ofFiles: [path], in: folder) {
                #expect(all[fullName] == symbols, "\(fullName)")
            }
        }
        let owners = Dictionary(grouping: all.flatMap { name, symbols in symbols.map { (name, $0) } }, by: \.1)
        #expect(owners.filter { $0.value.count > 1 }.map(\.key) == [])
        #expect(all.count > 100)
    }

    /// All names of each message in headers, by its full name.
    private static func symbols(ofFiles paths: [String], in folder: URL) throws -> [String: Set<String>] {
        let request = try Request.compiling(paths, in: folder)
        let schema = Schema(DescriptorSet(protos: request.protoFile)) { _ in "Sample" }
        var symbols: [String: Set<String>] = [:]
        for message in schema.descriptors.files.flatMap(\.allMessages) {
            let fullName = schema.names.rewrittenFullName(message)
            var all: Set = [
                schema.names.type(message), schema.names.prefix(message), "\(ProtobufCMangling.upper(fullName))__INIT",
            ]
            for oneof in message.oneofs {
                let fields = oneof.fields.map(schema.names.member)
                all.formUnion(ProtobufCMangling.symbols(ofOneof: schema.names.oneof(oneof), with: fields, in: fullName))
            }
            symbols[message.fullName] = all
        }
        return symbols
    }

    @Test(arguments: [
        ("a.b_c", "FooBar", "A__BC__FooBar"), ("", "Foo", "Pb__Foo"), ("a", "FooB2", "A__FooB2"),
        ("a", "FOO", "A__FOOXff46eff6"),
    ])
    func names(package: String, message: String, type: String) throws {
        #expect(try Self.type(of: message, in: package) == type)
    }

    /// Each could be the C form of another name.
    @Test(arguments: [
        ("a", "FOo"), ("a", "foo"), ("a", "Foo_Bar"), ("a", "_Foo"), ("a", "FooCase"), ("a", "FooX00000000"),
        ("A", "Foo"), ("a_1", "Foo"), ("a__b", "Foo"), ("_a", "Foo"), ("aB", "Foo"), ("pb", "Foo"), ("_3d", "Foo"),
    ])
    func namesWithASuffix(package: String, message: String) throws {
        #expect(try Self.type(of: message, in: package).contains(/^[A-Z]\w*X[0-9a-f]{8}$/))
    }

    private static func type(of message: String, in package: String) throws -> String {
        let set = try DescriptorSet(
            protos: Request.compiling(
                "syntax = \"proto3\"; \(package.isEmpty ? "" : "package \(package);") message \(message) {}"
            ).protoFile
        )
        return CNames(files: set.files).type(try #require(set.files.last?.messages.first))
    }

    /// The members of each struct that `header` defines.
    private static func structs(in header: String) -> [String: Set<String>] {
        var structs: [String: Set<String>] = [:]
        var current = ""
        for line in header.split(separator: "\n") {
            let words = line.split(whereSeparator: { " ;*".contains($0) })
            if words.first == "struct", words.count == 2, !line.hasSuffix(";") {
                current = String(words[1])
                structs[current] = []
            } else if line.hasPrefix(" "), line.hasSuffix(";"), let member = words.last, !current.isEmpty {
                structs[current]?.insert(String(member))
            } else if line == "};" {
                current = ""
            }
        }
        return structs
    }
}
