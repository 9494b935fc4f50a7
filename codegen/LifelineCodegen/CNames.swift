package import SwiftProtobufPluginLibrary

/// The names for C code, chosen so that protoc-gen-c has nothing left to decide.
///
/// protoc-gen-c gets the schema with names that pass its mangling without a clash: with each other, with names that it
/// adds (`n_x`, `has_x`, `x_case`), or with reserved words of C and Swift. Most names do not change. A message's names
/// depend only on its own declaration, so that files fit together even if they were generated separately.
package struct CNames {
    /// The package for messages without one, so that a message `FILE` does not become C's.
    private static let packageOfNone = "pb"

    private var messages: [String: String] = [:]
    private var fields: [String: String] = [:]
    private var oneofs: [String: String] = [:]

    package init(files: [FileDescriptor]) {
        for file in files {
            for message in file.messages { add(message, in: Self.rewrittenPackage(of: file)) }
        }
    }

    private mutating func add(_ message: Descriptor, in scope: String) {
        let name = Self.isCanonical(message) ? message.name : "\(message.name)_x\(Self.hash(of: message.fullName))"
        let fullName = "\(scope).\(name)"
        messages[message.fullName] = fullName
        addOneofs(of: message, named: fullName, members: addFields(of: message))
        for nested in message.messages { add(nested, in: fullName) }
    }

    /// Whether each name that protoc-gen-c makes of the message leads back to its full name. Those of nested messages
    /// do not: `a.Foo.Bar` becomes the same as `Bar` of a package `a.foo`.
    private static func isCanonical(_ message: Descriptor) -> Bool {
        let package = message.file.package
        return message.containingType == nil
            && (package.isEmpty
                || rewrittenPackage(of: message.file) == package
                    && package.wholeMatch(of: /[a-z][a-z0-9]*([_.][a-z][a-z0-9]*)*/) != nil)
            && message.name.wholeMatch(of: /([A-Z][a-z0-9]+)*[A-Z][a-z0-9]*/) != nil
            // The enum of a oneof `foo` ends with `FooCase`, and a name that is not canonical with an X and its hash.
            && message.name.firstMatch(of: /(Case|X[0-9a-f]{8})$/) == nil
    }

    /// 32 bits in hexadecimal: FNV-1a.
    private static func hash(of fullName: String) -> String {
        let hash = fullName.utf8.reduce(0x811C_9DC5 as UInt32) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    /// Returns the struct's members.
    private mutating func addFields(of message: Descriptor) -> Set<String> {
        var members: Set<String> = ["base"]
        for field in message.fields {
            var name = Self.member(named: field.name)
            let isTaken = { (name: String) in
                Self.reserved.contains(name) || !members.isDisjoint(with: [name, "n_\(name)", "has_\(name)"])
            }
            while isTaken(name) { name += "_\(field.number)" }
            members.formUnion([name, "n_\(name)", "has_\(name)"])
            fields[field.fullName] = name
        }
        return members
    }

    private mutating func addOneofs(of message: Descriptor, named fullName: String, members: Set<String>) {
        var members = members
        var symbols: Set<String> = []
        for oneof in message.oneofs {
            let fieldNames = oneof.fields.compactMap { fields[$0.fullName] }
            // protoc names the oneof of a proto3 `optional` field `_field`.
            var name = oneof.isOfOptionalField ? "has_\(fieldNames.first ?? "")" : Self.member(named: oneof.name)
            let symbolsOf = { (name: String) in
                ProtobufCMangling.symbols(ofOneof: name, with: fieldNames, in: fullName)
            }
            let isTaken = { (name: String) in
                // For a field `set` of a oneof `not`, the name would be NOT_SET, which every oneof has.
                name == "not" || members.contains("\(name)_case") || !symbols.isDisjoint(with: symbolsOf(name))
            }
            while isTaken(name) { name += "_of" }
            members.insert("\(name)_case")
            symbols.formUnion(symbolsOf(name))
            oneofs[oneof.fullName] = name
        }
    }

    /// `name` in lower case, beginning with a letter, and with single underscores between words: protoc-gen-c joins the
    /// names of a message and of its members with two.
    private static func member(named name: String) -> String {
        let words = name.lowercased().split(separator: "_").joined(separator: "_")
        return words.first?.isLetter == true ? words : "f\(words)"
    }

    /// Names that a struct's member cannot have: the keywords of C and C++, lower-case macros of compilers and of
    /// protobuf-c's headers, and names that Swift does not allow after a dot.
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
    /// The file's package in the rewritten schema. The names of types begin with a letter.
    static func rewrittenPackage(of file: FileDescriptor) -> String {
        let package = file.package
        if package.isEmpty { return packageOfNone }
        let first = package.prefix { $0 != "." }
        let isPlain = first != packageOfNone && first.first { $0 != "_" }?.isLetter == true
        return isPlain ? package : "\(packageOfNone)_\(package)"
    }

    /// The message's full name in the rewritten schema.
    package func rewrittenFullName(_ message: Descriptor) -> String { messages[message.fullName] ?? message.fullName }

    /// The name of the struct's member.
    package func member(_ field: FieldDescriptor) -> String { fields[field.fullName] ?? field.name }

    /// The oneof's name in the rewritten schema.
    package func oneof(_ oneof: OneofDescriptor) -> String { oneofs[oneof.fullName] ?? oneof.name }

    /// The struct's member that tells which field of the oneof is set.
    package func caseMember(_ oneof: OneofDescriptor) -> String { self.oneof(oneof) + "_case" }

    /// The message's struct.
    package func type(_ message: Descriptor) -> String { ProtobufCMangling.type(rewrittenFullName(message)) }

    /// The prefix of the names of the message's functions and constants.
    package func prefix(_ message: Descriptor) -> String { ProtobufCMangling.lower(rewrittenFullName(message)) }

}

/// How protoc-gen-c turns full names into names in C: parts are joined by two underscores.
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

    /// The enum that tells which field of a oneof is set, and its enumerators.
    static func symbols(ofOneof name: String, with fields: [String], in fullName: String) -> Set<String> {
        let prefix = "\(upper(fullName))__\(upper(name))"
        return Set(fields.map { "\(prefix)_\(upper($0))" })
            .union(["\(type(fullName))__\(type(name))Case", "\(prefix)__NOT_SET"])
    }

    private static func join(_ fullName: String, _ transform: (Substring) -> String) -> String {
        fullName.split(separator: ".").map(transform).joined(separator: "__")
    }

    /// Puts an underscore before each capital that does not follow a capital.
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
