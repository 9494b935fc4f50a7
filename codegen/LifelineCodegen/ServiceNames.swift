internal import SwiftProtobufPluginLibrary

/// The Swift names of a file's services and their methods.
///
/// They depend only on that file. If two would be equal, the later one changes. So new methods at the end of a service,
/// and new services at the end of a file, rename nothing.
struct ServiceNames {
    /// The types that are generated for a service.
    struct Types {
        let client: String
        let handler: String
        let pushes: String
        /// The list of the methods: a property of every handler, named after the whole type, so that one type can
        /// handle two versions of a service.
        let table: String

        fileprivate init(base: String) {
            client = "\(base)Client"
            handler = "\(base)Handler"
            pushes = "\(base)Pushes"
            table = "\(NamingUtils.toLowerCamelCase(base))Methods"
        }

        var all: [String] { [client, handler, pushes] }
    }

    /// Other members of the types, and names that no member can have, even in backticks.
    private static let reservedMethods: Set<String> = ["init", "methods", "self", "session"]

    private static let keywords = swiftKeywordsUsedInDeclarations.union(swiftKeywordsUsedInStatements)
        .union(swiftKeywordsUsedInExpressionsAndTypes)

    // By full names in the .proto file.
    private var types: [String: Types] = [:]
    private var methods: [String: String] = [:]

    init(file: FileDescriptor, swiftNames: SwiftNames) {
        let prefix = SwiftProtobufNamer().typePrefix(forFile: file)
        var taken = Set(file.messages.map(swiftNames.relativeName) + file.enums.map(swiftNames.relativeName))
        for service in file.services {
            var base = prefix + service.name
            while !taken.isDisjoint(with: Types(base: base).all) { base += "Service" }
            let names = Types(base: base)
            taken.formUnion(names.all)
            types[service.fullName] = names
            addMethods(of: service, besides: names.table)
        }
    }

    private mutating func addMethods(of service: ServiceDescriptor, besides table: String) {
        var taken = Self.reservedMethods.union([table])
        for method in service.methods {
            var name = NamingUtils.toLowerCamelCase(method.name)
            while taken.contains(name) || name.allSatisfy({ $0 == "_" }) { name += "Method" }
            taken.insert(name)
            methods[method.fullName] = Self.keywords.contains(name) ? "`\(name)`" : name
        }
    }
}

// MARK: - Looking names up

extension ServiceNames {
    func types(_ service: ServiceDescriptor) -> Types {
        types[service.fullName] ?? Types(base: service.name)
    }

    /// The service's methods, in the order of the file.
    func methods(_ service: ServiceDescriptor) -> [ServiceMethod] {
        service.methods.map { ServiceMethod($0, name: methods[$0.fullName] ?? $0.name) }
    }
}
