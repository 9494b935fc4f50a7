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
        ("codegen/names", "types"),
    ])
    func namesAreThoseThatProtocGenCWrites(folder: String, file: String) throws {
        let path = "\(file).proto"
        let request = try Request.compiling([path], in: repository.appending(path: folder))
        let response = generate(request)
        #expect(response.error == "")
        let header = try response.content("CSample/include/\(file).pb-c.h")
        let schema = Schema(DescriptorSet(protos: request.protoFile))
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
