internal import ArgumentParser
internal import Lifeline
internal import LifelineDescriptorTypes
internal import LifelineMessages
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
              lifeline describe NewsItem --proto room.proto --json | jq -r '.declaration.field[].name'

            Exit codes: as those of `lifeline call`.
            """
    )

    @Argument(help: "The full name of a declaration, or the end of it if only one has that.")
    var name: String

    @Argument(help: ArgumentHelp("The server.", valueName: "url"))
    var url: String?

    @Flag(help: "Print a JSON object a line: kind, name, and the declaration as descriptor.proto has it.")
    var json = false

    @OptionGroup(title: "Schema") var schema: SchemaOptions

    @OptionGroup(title: "Connection") var session: SessionArguments

    func validate() throws { try session.validate(forServer: url, unless: schema) }

    func run() async throws {
        try await exitingOnFailure {
            let schema = try await session.schema(from: schema, orServer: url)
            let text = json ? try schema.declarationJSON(of: name) : try schema.declaration(of: name)
            try await OutputFile.standardOutput.write(Array(text.utf8))
        }
    }
}

extension Schema {
    /// Returns a declaration in the form of a .proto file.
    ///
    /// - Throws: `CommandFailure`, which names other declarations.
    fileprivate func declaration(of name: String) throws(CommandFailure) -> String {
        var printer = DeclarationPrinter()
        switch try declaration(named: name) {
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

extension Schema {
    private func declaration(named name: String) throws(CommandFailure) -> Declaration {
        try find("declaration", named: name, among: pool.files.flatMap(\.declarations), by: \.fullName)
    }

    /// Returns a declaration for programs as a line; for a method, also a line each for its request and its reply.
    ///
    /// - Throws: `CommandFailure`, which names other declarations.
    fileprivate func declarationJSON(of name: String) throws -> String {
        let declaration = try declaration(named: name)
        var all = [declaration]
        if case .method(let method) = declaration {
            if let request = method.inputType { all.append(.message(request)) }
            if let reply = method.outputType, reply != method.inputType { all.append(.message(reply)) }
        }
        return try all.map { "\(try $0.json)\n" }.joined()
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

extension Declaration {
    fileprivate var json: String {
        get throws {
            let (kind, content) =
                switch self {
                case .service(let service): ("service", try service.proto?.jsonString())
                case .method(let method): ("method", try method.proto?.jsonString())
                case .message(let message): ("message", try message.proto.jsonString())
                case .enumeration(let enumeration): ("enum", try enumeration.proto.jsonString())
                }
            let head = String(decoding: try jsonLine(["kind": kind, "name": fullName]), as: UTF8.self)
            // The declaration is already JSON. Names come from a server, and may contain anything.
            let line = "\(head.dropLast()),\"declaration\":\(content ?? "{}")}"
            return String(decoding: Array(line.utf8).escapedControls, as: UTF8.self)
        }
    }
}

extension ServiceDescriptor {
    fileprivate var proto: Google_Protobuf_ServiceDescriptorProto? { file.proto.service.first { $0.name == name } }
}

extension MethodDescriptor {
    fileprivate var proto: Google_Protobuf_MethodDescriptorProto? {
        service.proto?.method.first { $0.name == name }
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
