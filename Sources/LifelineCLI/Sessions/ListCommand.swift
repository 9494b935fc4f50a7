internal import ArgumentParser
internal import Lifeline
internal import LifelineCore
internal import LifelineReflection

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Prints the methods of a server of sessions, or of .proto files.",
        discussion: """
            Each line has a method's name, its kind, and the types of its requests and replies. A server tells its \
            methods if it has a SessionReflection, as that of `lifeline serve` does.

            Examples:
              lifeline list tcp://127.0.0.1:7000
              lifeline list tcp://127.0.0.1:7000 --json | jq -r .name
              lifeline list --proto room.proto

            Exit codes: as those of `lifeline call`.
            """
    )

    @Argument(help: ArgumentHelp("The server.", valueName: "url"))
    var url: String?

    @Flag(help: "Print a JSON object a line.")
    var json = false

    @OptionGroup(title: "Schema") var schema: SchemaOptions

    @OptionGroup(title: "Connection") var session: SessionArguments

    func validate() throws { try session.validate(forServer: url, unless: schema) }

    func run() async throws {
        try await exitingOnFailure {
            let methods = try await session.schema(from: schema, orServer: url).methods
            let width = methods.map(\.name.count).max() ?? 0
            for method in methods {
                let line = json ? try method.json : method.line(nameWidth: width)
                try await OutputFile.standardOutput.write(Array("\(line)\n".utf8))
            }
        }
    }
}

extension SessionArguments {
    /// Checks that there is either a schema or a server.
    func validate(forServer url: String?, unless schema: SchemaOptions) throws {
        if let url {
            if !schema.isEmpty { throw ValidationError("Give a server or a schema, not both.") }
            try tls.validate(for: parseEndpoint(url))
        } else if schema.isEmpty {
            throw ValidationError("Give a server, as in tcp://127.0.0.1:7000, or a schema, as in --proto room.proto.")
        }
    }

    /// Returns the schema of the options, or the server's description of itself.
    func schema(from options: SchemaOptions, orServer url: String?) async throws -> Schema {
        guard let url else { return Schema(try options.load() ?? .init()) }
        return try await withSession(to: try parseEndpoint(url)) { try await Schema(describedBy: $0) }.value
    }
}

extension Schema.Method {
    /// Returns a line for people.
    fileprivate func line(nameWidth: Int) -> String {
        let name = name + String(repeating: " ", count: max(0, nameWidth - name.count))
        let types =
            switch kind {
            case .push: "(\(request?.fullName ?? "?"))"
            case .serverPush: "\(reply?.fullName ?? "?")"
            default: "(\(request?.fullName ?? "?")) → \(reply?.fullName ?? "?")"
            }
        // Names come from a server, and may contain anything.
        return "\(name)  \(kind.rawValue)  \(types)".escaped(limit: .max)
    }

    fileprivate var json: String {
        get throws {
            let line = JSONLine(
                name: name,
                kind: kind.rawValue,
                request: request?.fullName,
                reply: reply?.fullName
            )
            // Names come from a server, and may contain anything.
            return String(decoding: try jsonLine(line).escapedControls, as: UTF8.self)
        }
    }
}

private struct JSONLine: Encodable {
    let name: String
    let kind: String
    let request: String?
    let reply: String?
}
