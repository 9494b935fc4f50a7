internal import ArgumentParser
internal import Lifeline
internal import LifelineReflection

struct DescribeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "describe",
        abstract: "Prints how a service, a method, a message or an enum is declared.",
        discussion: """
            Of a method, its request and its reply are printed as well. A server describes its methods if it has a \
            SessionReflection, as that of `lifeline serve` does. Comments come from .proto files only.

            Examples:
              lifeline describe Room/Echo tcp://127.0.0.1:7000
              lifeline describe sample.room.v1.Room tcp://127.0.0.1:7000
              lifeline describe NewsItem --proto room.proto

            Exit codes: as those of `lifeline call`.
            """
    )

    @Argument(help: "The full name of a declaration, or the end of it if only one has that.")
    var name: String

    @Argument(help: ArgumentHelp("The server.", valueName: "url"))
    var url: String?

    @OptionGroup(title: "Schema") var schema: SchemaOptions

    @OptionGroup(title: "Connection") var session: SessionArguments

    func validate() throws { try session.validate(forServer: url, unless: schema) }

    func run() async throws {
        try await exitingOnFailure {
            let schema = try await session.schema(from: schema, orServer: url)
            try await OutputFile.standardOutput.write(Array(try schema.declaration(of: name).utf8))
        }
    }
}

extension Schema {
    /// A declaration as a .proto file has it.
    ///
    /// - Throws: `CommandFailure`, which names other declarations.
    fileprivate func declaration(of name: String) throws(CommandFailure) -> String {
        let all = pool.files.flatMap(\.declarations)
        let declaration = try find("declaration", named: name, among: all, by: \.fullName)
        var printer = DeclarationPrinter()
        switch declaration {
        case .service(let service): printer.print(service)
        case .message(let message): printer.print(message)
        case .enumeration(let enumeration): printer.print(enumeration)
        case .method(let method):
            printer.print(method)
            if let request = method.inputType { printer.print(request) }
            if let reply = method.outputType, reply != method.inputType { printer.print(reply) }
        }
        return printer.text
    }
}

private enum Declaration {
    case service(ServiceDescriptor)
    case method(MethodDescriptor)
    case message(MessageDescriptor)
    case enumeration(EnumDescriptor)

    var fullName: String {
        switch self {
        case .service(let service): service.fullName
        case .method(let method): "\(method.service.fullName).\(method.name)"
        case .message(let message): message.fullName
        case .enumeration(let enumeration): enumeration.fullName
        }
    }
}

extension FileDescriptor {
    fileprivate var declarations: [Declaration] {
        let types = messages.flatMap(\.withNested)
        let enums = enums + types.flatMap(\.enums)
        return services.map(Declaration.service) + services.flatMap(\.methods).map(Declaration.method)
            + types.map(Declaration.message) + enums.map(Declaration.enumeration)
    }
}
