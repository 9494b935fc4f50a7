internal import SwiftProtobufPluginLibrary

extension SwiftServiceGenerator {
    /// Writes the protocol with a requirement for each method that clients call, and the table of these methods.
    func printHandler(to printer: inout SourcePrinter) {
        let handled = methods.filter { $0.shape != .serverPush }
        printComments(comments, "The methods that a server of `\(service.fullName)` implements.", to: &printer)
        printer.print("\(context.modifier)protocol \(names.handler): \(session("SessionService")) {")
        printer.withIndentation { printer in
            for (index, method) in handled.enumerated() {
                if index > 0 { printer.print("") }
                printRequirement(method, to: &printer)
            }
        }
        printer.print("}", "", "extension \(names.handler) {")
        printer.withIndentation { printer in
            printer.print(
                "/// The methods of `\(service.fullName)` that clients call, by their names on the wire.",
                "\(context.modifier)var \(names.table): [\(session("SessionMethod"))] {",
                "    ["
            )
            for method in handled {
                printer.print("        \(registration(method)),")
            }
            printer.print(
                "    ]",
                "}",
                "",
                "/// `\(names.table)`.",
                "///",
                "/// A type that handles other services, too, declares `methods` itself, as the sum of all their methods.",
                "\(context.modifier)var methods: [\(session("SessionMethod"))] { \(names.table) }"
            )
        }
        printer.print("}", "")
    }

    private func printRequirement(_ method: ServiceMethod, to printer: inout SourcePrinter) {
        if method.isSynchronous {
            printComments(
                comments(method),
                "A synchronous handler: runs where frames are read, so it must not block or compute for long. With",
                "interceptors, or with `HandlerExecutor.globalPool`, it runs as other handlers do.",
                to: &printer
            )
        } else {
            printer.printComments(comments(method))
        }
        printer.print(requirement(method))
    }

    private func requirement(_ method: ServiceMethod) -> String {
        let context = "context: \(session("SessionContext"))"
        let parameters =
            switch method.shape {
            case .unary: "_ request: \(input(method)), \(context)"
            case .stream: "_ request: \(input(method)), to stream: \(writer(output(method))), \(context)"
            case .clientStream: "_ requests: \(messages(input(method))), \(context)"
            case .bothWays:
                "_ requests: \(messages(input(method))), to stream: \(writer(output(method))), \(context)"
            case .clientPush, .serverPush: "_ message: \(input(method)), \(context)"
            }
        let result =
            switch method.shape {
            case .unary, .clientStream: " -> \(output(method))"
            case .stream, .bothWays, .clientPush, .serverPush: ""
            }
        let effects = method.isSynchronous ? "throws" : "async throws"
        return "func \(method.name)(\(parameters)) \(effects)\(result)"
    }

    /// Closures, because references to methods are `@Sendable` only since Swift 6.
    private func registration(_ method: ServiceMethod) -> String {
        let path = method.pathLiteral
        let call = "\(method.isSynchronous ? "try" : "try await") self.\(method.name)"
        return switch method.shape {
        case .unary: ".unary(\(path)) { \(call)($0, context: $1) }"
        case .stream: ".stream(\(path)) { \(call)($0, to: $1, context: $2) }"
        case .clientStream: ".clientStream(\(path)) { \(call)($0, context: $1) }"
        case .bothWays: ".bothWays(\(path)) { \(call)($0, to: $1, context: $2) }"
        case .clientPush, .serverPush: ".push(\(path)) { \(call)($0, context: $1) }"
        }
    }

    /// Writes the struct that pushes to one session.
    func printPushes(to printer: inout SourcePrinter) {
        printComments(comments, "Pushes from a server of `\(service.fullName)`.", to: &printer)
        printDeprecation(to: &printer)
        printer.print("\(context.modifier)struct \(names.pushes): Sendable {")
        printer.withIndentation { printer in
            printer.print(
                "/// The session of the client that receives the pushes.",
                "\(context.modifier)let session: \(session("SessionServerEnd"))",
                "",
                "/// Pushes to the client of `session`.",
                "\(context.modifier)init(_ session: \(session("SessionServerEnd"))) {",
                "    self.session = session",
                "}"
            )
            for method in methods where method.shape == .serverPush { printPush(method, to: &printer) }
        }
        printer.print("}", "")
    }

    private func printPush(_ method: ServiceMethod, to printer: inout SourcePrinter) {
        printer.print("")
        printComments(comments(method), "The method by itself, for pushes to a group.", to: &printer)
        printDeprecation(of: method, to: &printer)
        let type = "\(session("SessionPushMethod"))<\(output(method))>"
        printer.print("\(context.modifier)static let \(method.name) = \(type)(\(method.pathLiteral))", "")
        printComments(
            comments(method),
            "Returns when the session has accepted the message.",
            "",
            "- Parameters:",
            Self.deliveryComment,
            Self.stageComment,
            Self.metadataComment,
            "- Throws: `SessionError`.",
            to: &printer
        )
        printDeprecation(of: method, to: &printer)
        printer.print(
            "\(context.modifier)nonisolated(nonsending) func \(method.name)(",
            "    _ message: \(output(method)),",
            "    \(deliveryParameter),",
            "    \(stageParameter),",
            "    \(metadataParameter)",
            ") async throws(\(session("SessionError"))) {",
            "    try await session.push(",
            "        \(method.pathLiteral),",
            "        message,",
            "        delivery: delivery,",
            "        until: stage,",
            "        metadata: metadata",
            "    )",
            "}"
        )
    }
}
