package import SwiftProtobufPluginLibrary

/// The names that C code gets, so that protoc-gen-c has nothing left to decide.
///
/// The schema is handed to protoc-gen-c with names that come through its mangling without clashing: with each other, with
/// what it adds (`n_x`, `has_x`, `x_case`), or with what C and Swift reserve. Most names stay as they are. What a file's
/// names are depends on that file alone, so that files generated apart fit together.
package struct CNames {
    /// The package that messages without one get, so that a message `FILE` is not C's.
    static let packageOfNone = "pb"

    private var messages: [String: String] = [:]
    private var fields: [String: String] = [:]
    private var oneofs: [String: String] = [:]

    package init(files: [FileDescriptor]) {
        for file in files {
            var symbols: Set<String> = []
            let package = file.package.isEmpty ? Self.packageOfNone : file.package
            for message in file.messages { add(message, in: package, symbols: &symbols) }
        }
    }

    /// `symbols` are the names that the file's header has at its top level.
    private mutating func add(_ message: Descriptor, in scope: String, symbols: inout Set<String>) {
        var fullName = "\(scope).\(message.name)"
        var suffix = 2
        while !symbols.isDisjoint(with: ProtobufCMangling.symbols(ofMessage: fullName)) {
            fullName = "\(scope).\(message.name)_N\(suffix)"
            suffix += 1
        }
        symbols.formUnion(ProtobufCMangling.symbols(ofMessage: fullName))
        messages[message.fullName] = fullName
        let members = addFields(of: message)
        addOneofs(of: message, named: fullName, members: members, symbols: &symbols)
        for nested in message.messages { add(nested, in: fullName, symbols: &symbols) }
    }

    /// Returns the struct's members.
    private mutating func addFields(of message: Descriptor) -> Set<String> {
        var members: Set<String> = ["base"]
        for field in message.fields {
            var name = field.name.lowercased()
            let isTaken = { (name: String) in
                Self.reserved.contains(name) || !members.isDisjoint(with: [name, "n_\(name)", "has_\(name)"])
            }
            if isTaken(name) { name = "\(name)_\(field.number)" }
            while isTaken(name) { name += "_" }
            members.formUnion([name, "n_\(name)", "has_\(name)"])
            fields[field.fullName] = name
        }
        return members
    }

    private mutating func addOneofs(
        of message: Descriptor,
        named fullName: String,
        members: Set<String>,
        symbols: inout Set<String>
    ) {
        var members = members
        for oneof in message.oneofs {
            let fieldNames = oneof.fields.compactMap { fields[$0.fullName] }
            // protoc names the oneof of a proto3 `optional` field `_field`.
            var name = oneof.isOfOptionalField ? "has_\(fieldNames.first ?? "")" : oneof.name.lowercased()
            let symbolsOf = { (name: String) in
                ProtobufCMangling.symbols(ofOneof: name, with: fieldNames, in: fullName)
            }
            while members.contains("\(name)_case") || !symbols.isDisjoint(with: symbolsOf(name)) { name += "_of" }
            members.insert("\(name)_case")
            symbols.formUnion(symbolsOf(name))
            oneofs[oneof.fullName] = name
        }
    }

    /// Names that a struct's member cannot have: C's and C++'s keywords, macros that compilers and the headers of
    /// protobuf-c define in lower case, and what Swift does not take behind a dot.
    // swift-format-ignore
    private static let reserved: Set<String> = [
        "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
        "char", "class", "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit", "continue",
        "co_await", "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else",
        "enum", "explicit", "export", "extern", "false", "final", "float", "for", "friend", "goto", "if", "import",
        "inline", "int", "long", "module", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
        "operator", "or", "or_eq", "override", "private", "protected", "public", "register", "reinterpret_cast",
        "requires", "restrict", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
        "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid",
        "typename", "typeof", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor",
        "xor_eq",
        "assert", "errno", "i386", "linux", "offsetof", "stderr", "stdin", "stdout", "unix",
        "init", "self", "type", "protocol",
    ]
}

// MARK: - Looking names up

extension CNames {
    /// The message's full name in the rewritten schema.
    package func rewrittenFullName(_ message: Descriptor) -> String { messages[message.fullName] ?? message.fullName }

    /// The message's full name in the rewritten schema, by its name in the original one.
    package func rewrittenFullName(ofMessageNamed name: String) -> String { messages[name] ?? name }

    /// The name of the struct's member.
    package func member(_ field: FieldDescriptor) -> String { fields[field.fullName] ?? field.name }

    /// The oneof's name in the rewritten schema.
    package func oneof(_ oneof: OneofDescriptor) -> String { oneofs[oneof.fullName] ?? oneof.name }

    /// The struct's member that says which field of the oneof is set.
    package func caseMember(_ oneof: OneofDescriptor) -> String { self.oneof(oneof) + "_case" }

    /// The message's struct.
    package func type(_ message: Descriptor) -> String { ProtobufCMangling.type(rewrittenFullName(message)) }

    /// What the names of the message's functions and constants begin with.
    package func prefix(_ message: Descriptor) -> String { ProtobufCMangling.lower(rewrittenFullName(message)) }

}

/// How protoc-gen-c turns full names into C's: parts are joined by two underscores.
enum ProtobufCMangling {
    /// `foo.bar_baz.Message` is the type `Foo__BarBaz__Message`.
    static func type(_ fullName: String) -> String {
        join(fullName) { part in
            part.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
        }
    }

    /// `foo.BarBaz` begins the names of functions with `foo__bar_baz`.
    static func lower(_ fullName: String) -> String { join(fullName) { words($0).lowercased() } }

    /// `foo.BarBaz` begins the names of macros with `FOO__BAR_BAZ`.
    static func upper(_ fullName: String) -> String { join(fullName) { words($0).uppercased() } }

    /// All that a header calls the message, and the macro that initialises it.
    static func symbols(ofMessage fullName: String) -> Set<String> {
        [type(fullName), lower(fullName), upper(fullName), upper(fullName) + "__INIT"]
    }

    /// The enum that says which field of a oneof is set, and its enumerators.
    static func symbols(ofOneof name: String, with fields: [String], in fullName: String) -> Set<String> {
        let prefix = "\(upper(fullName))__\(upper(name))"
        return Set(fields.map { "\(prefix)_\(upper($0))" })
            .union(["\(type(fullName))__\(type(name))Case", "\(prefix)__NOT_SET"])
    }

    private static func join(_ fullName: String, _ transform: (Substring) -> String) -> String {
        fullName.split(separator: ".").map(transform).joined(separator: "__")
    }

    /// An underscore before each capital that follows none.
    private static func words(_ part: Substring) -> String {
        var words = ""
        var followsCapital = true
        for character in part {
            let isCapital = character.isUppercase
            if isCapital, !followsCapital { words.append("_") }
            words.append(character)
            followsCapital = isCapital
        }
        return words
    }
}
