internal import SwiftProtobufPluginLibrary

extension SwiftServiceGenerator {
    /// Writes the struct with a method for each of the service's calls, and a property for each of its pushes.
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
                case .clientStream: printClientStream(method, to: &printer)
                case .bothWays: printBothWays(method, to: &printer)
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
                "/// Registers the pushes. Pushes that arrive before an iteration wait, and use the session's window.",
                "/// Call `stop()` for those you never receive. One client is enough: of several, one gets each push."
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

    /// The stored property. Setting a deprecated one would cause a warning, so there is another one for storage, with a
    /// name that no method can have.
    private func storage(of push: ServiceMethod) -> String {
        push.isDeprecated ? "_\(push.name.withoutBackticks)_pushes" : push.name
    }

    private func printProperty(_ push: ServiceMethod, to printer: inout SourcePrinter) {
        let type = "\(session("SessionPushes"))<\(output(push))>"
        printer.print("")
        printComments(
            comments(push),
            "The server's pushes, over all connections and sessions.",
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
            "  - timeout: how long the response may take, from now on; nil: no limit. Default: 30 s.",
            "  - delivery: `reliable`, or `durable`: the call and its response survive both processes. Default: as the",
            "    session's configuration says.",
            Self.metadataComment,
            "- Throws: `SessionError`; `SessionError.status` is the server's status in place of a response.",
            to: &printer
        )
        printDeprecation(of: method, to: &printer)
        printer.print(
            "\(context.modifier)nonisolated(nonsending) func \(method.name)(",
            "    _ request: \(input(method)),",
            "    timeout: \(Self.duration)? = .seconds(30),",
            "    \(deliveryParameter),",
            "    \(metadataParameter)",
            ") async throws(\(session("SessionError"))) -> \(output(method)) {",
            "    try await session.call(",
            "        \(method.pathLiteral),",
            "        request,",
            "        returning: \(output(method)).self,",
            "        timeout: timeout,",
            "        delivery: delivery,",
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
            "  - timeout: how long all of it may take, from the beginning of an iteration; nil: no limit.",
            "    Default: nil.",
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

    private func printClientStream(_ method: ServiceMethod, to printer: inout SourcePrinter) {
        printer.print("")
        printComments(
            comments(method),
            "Returns the response to all messages that `send` has sent.",
            "",
            "- Parameters:",
            Self.callTimeoutComment,
            Self.metadataComment,
            Self.sendComment,
            "- Throws: `SessionError`; `SessionError.status` is the server's status in place of a response. An error",
            "  that `send` throws is thrown as it is.",
            to: &printer
        )
        printDeprecation(of: method, to: &printer)
        printer.print(
            "\(context.modifier)nonisolated(nonsending) func \(method.name)(",
            "    timeout: \(Self.duration)? = nil,",
            "    \(metadataParameter),",
            "    \(sendParameter(method))",
            ") async throws -> \(output(method)) {",
            "    try await session.clientStream(",
            "        \(method.pathLiteral),",
            "        of: \(input(method)).self,",
            "        returning: \(output(method)).self,",
            "        timeout: timeout,",
            "        metadata: metadata,",
            "        send",
            "    )",
            "}"
        )
    }

    private func printBothWays(_ method: ServiceMethod, to printer: inout SourcePrinter) {
        let result = nameOfResult(of: method)
        printer.print("")
        printComments(
            comments(method),
            "Runs `send` and `receive` side by side, and returns the result of `receive`.",
            "",
            "- Parameters:",
            Self.callTimeoutComment,
            Self.metadataComment,
            Self.sendComment,
            "  - receive: takes the server's messages. They end when the handler has returned.",
            "- Throws: `SessionError`; `SessionError.status` is the handler's. An error that `send` or `receive` throws is",
            "  thrown as it is.",
            to: &printer
        )
        printDeprecation(of: method, to: &printer)
        printer.print(
            "\(context.modifier)nonisolated(nonsending) func \(method.name)<\(result): Swift.Sendable>(",
            "    timeout: \(Self.duration)? = nil,",
            "    \(metadataParameter),",
            "    \(sendParameter(method)),",
            "    receive: nonisolated(nonsending) (\(messages(output(method)))) async throws -> \(result)",
            ") async throws -> \(result) {",
            "    try await session.bothWays(",
            "        \(method.pathLiteral),",
            "        sending: \(input(method)).self,",
            "        receiving: \(output(method)).self,",
            "        timeout: timeout,",
            "        metadata: metadata,",
            "        send,",
            "        receive: receive",
            "    )",
            "}"
        )
    }

    private func sendParameter(_ method: ServiceMethod) -> String {
        "_ send: @Sendable @escaping (\(writer(input(method)))) async throws -> Swift.Void"
    }

    /// The generic parameter for the result of `receive`. It hides types with its name, so it avoids those of the
    /// method.
    private func nameOfResult(of method: ServiceMethod) -> String {
        let used = [input(method), output(method)].compactMap { $0.split(separator: ".").first }
        var name = "Result"
        while used.contains(name[...]) { name += "_" }
        return name
    }

    private static let callTimeoutComment =
        "  - timeout: how long the call may take, from now on; nil: no limit. Default: nil."
    private static let sendComment = "  - send: sends the messages. The server sees their end when it returns."

    private func printPush(_ method: ServiceMethod, to printer: inout SourcePrinter) {
        printer.print("")
        printComments(
            comments(method),
            "Returns when the session has accepted the message. The server does not answer it.",
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
