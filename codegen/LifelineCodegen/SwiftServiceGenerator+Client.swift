internal import SwiftProtobufPluginLibrary

extension SwiftServiceGenerator {
    /// Writes the struct with a method for each of the service's, and a property for each of its pushes.
    func printClient(to printer: inout SourcePrinter) {
        let pushes = methods.filter { $0.shape == .serverPush }
        printComments(comments, "A client of `\(service.fullName)`.", to: &printer)
        printDeprecation(to: &printer)
        printer.print("\(context.modifier)struct \(names.client): Sendable {")
        printer.withIndentation { printer in
            printer.print(
                "/// The session that the service is called over.",
                "\(context.modifier)let session: \(session("SessionClient"))"
            )
            for push in pushes { printProperty(push, to: &printer) }
            printInitializer(pushes: pushes, to: &printer)
            for method in methods {
                switch method.shape {
                case .unary: printUnary(method, to: &printer)
                case .stream: printStream(method, to: &printer)
                case .clientPush: printPush(method, to: &printer)
                case .serverPush: break
                }
            }
        }
        printer.print("}", "")
    }

    private func printInitializer(pushes: [ServiceMethod], to printer: inout SourcePrinter) {
        printer.print("")
        if pushes.isEmpty {
            printer.print("/// Makes a client that calls the service over `session`.")
        } else {
            printer.print(
                "/// Registers the pushes: those that come before anybody iterates wait, and take up the session's window.",
                "/// `stop()` those that nobody will take. One client is enough for a session: several share the pushes out."
            )
        }
        printer.print(
            "\(context.modifier)init(_ session: \(session("SessionClient"))) {"
        )
        printer.withIndentation { printer in
            printer.print("self.session = session")
            for push in pushes {
                printer.print(
                    "self.\(storage(of: push)) = session.pushes(\(push.pathLiteral), of: \(output(push)).self)"
                )
            }
        }
        printer.print("}")
    }

    /// The stored property. One that is deprecated could not be set without a warning, so another stands behind it, with a
    /// name that no method's can become.
    private func storage(of push: ServiceMethod) -> String {
        push.isDeprecated ? "_\(push.name.withoutBackticks)_pushes" : push.name
    }

    private func printProperty(_ push: ServiceMethod, to printer: inout SourcePrinter) {
        let type = "\(session("SessionPushes"))<\(output(push))>"
        printer.print("")
        printComments(
            comments(push),
            "What the server pushes, over all connections and sessions.",
            to: &printer
        )
        printDeprecation(of: push, to: &printer)
        if push.isDeprecated {
            printer.print(
                "\(context.modifier)var \(push.name): \(type) { \(storage(of: push)) }",
                "private let \(storage(of: push)): \(type)"
            )
        } else {
            printer.print("\(context.modifier)let \(push.name): \(type)")
        }
    }

    private func printUnary(_ method: ServiceMethod, to printer: inout SourcePrinter) {
        printer.print("")
        printComments(
            comments(method),
            "- Parameters:",
            "  - timeout: how long the response may take, from now on; nil: as long as it takes. Default: 30 s.",
            Self.metadataComment,
            "- Throws: `SessionError`; `SessionError.status` is what the server answered in place of a response.",
            to: &printer
        )
        printDeprecation(of: method, to: &printer)
        printer.print(
            "\(context.modifier)nonisolated(nonsending) func \(method.name)(",
            "    _ request: \(input(method)),",
            "    timeout: \(Self.duration)? = .seconds(30),",
            "    \(metadataParameter)",
            ") async throws(\(session("SessionError"))) -> \(output(method)) {",
            "    try await session.call(",
            "        \(method.pathLiteral),",
            "        request,",
            "        returning: \(output(method)).self,",
            "        timeout: timeout,",
            "        metadata: metadata",
            "    )",
            "}"
        )
    }

    private func printStream(_ method: ServiceMethod, to printer: inout SourcePrinter) {
        printer.print("")
        printComments(
            comments(method),
            "Ends when the handler has returned, and throws `SessionError`. Leaving the loop cancels it.",
            "",
            "- Parameters:",
            "  - timeout: how long all of it may take, from the beginning of an iteration; nil: as long as it takes. Default: nil.",
            Self.metadataComment,
            to: &printer
        )
        printDeprecation(of: method, to: &printer)
        printer.print(
            "\(context.modifier)func \(method.name)(",
            "    _ request: \(input(method)),",
            "    timeout: \(Self.duration)? = nil,",
            "    \(metadataParameter)",
            ") -> \(session("SessionStream"))<\(output(method))> {",
            "    session.stream(",
            "        \(method.pathLiteral),",
            "        request,",
            "        of: \(output(method)).self,",
            "        timeout: timeout,",
            "        metadata: metadata",
            "    )",
            "}"
        )
    }

    private func printPush(_ method: ServiceMethod, to printer: inout SourcePrinter) {
        printer.print("")
        printComments(
            comments(method),
            "Returns when the session has accepted the message. There is no answer to it.",
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
            "    _ message: \(input(method)),",
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
