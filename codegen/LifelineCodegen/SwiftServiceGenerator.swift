internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Writes a service: the client, the protocol for handlers, and the struct for the server's pushes.
struct SwiftServiceGenerator {
    let service: ServiceDescriptor
    let context: SwiftContext
    let names: ServiceNames.Types
    let methods: [ServiceMethod]

    init(service: ServiceDescriptor, names: ServiceNames, context: SwiftContext) {
        self.service = service
        self.context = context
        self.names = names.types(service)
        methods = names.methods(service)
    }

    func print(to printer: inout SourcePrinter) {
        printClient(to: &printer)
        // A service that has only the server's pushes needs no handler, and one without such pushes needs no struct for
        // them.
        if methods.contains(where: { $0.shape != .serverPush }) { printHandler(to: &printer) }
        if methods.contains(where: { $0.shape == .serverPush }) { printPushes(to: &printer) }
    }

    // MARK: Tools of all parts

    /// Prints the .proto file's comments, then `lines`.
    func printComments(_ comments: String, _ lines: String..., to printer: inout SourcePrinter) {
        printer.printComments(comments)
        if !comments.isEmpty { printer.print("///") }
        for line in lines { printer.print(line.isEmpty ? "///" : "/// \(line)") }
    }

    /// For the methods that make calls. Handlers do not have it: they are needed for as long as there are clients.
    func printDeprecation(of method: ServiceMethod, to printer: inout SourcePrinter) {
        if method.isDeprecated { printer.print("@available(*, deprecated)") }
    }

    func printDeprecation(to printer: inout SourcePrinter) {
        if service.options.deprecated || service.file.options.deprecated { printer.print("@available(*, deprecated)") }
    }

    func input(_ method: ServiceMethod) -> String { context.messageType(method.descriptor.inputType) }
    func output(_ method: ServiceMethod) -> String { context.messageType(method.descriptor.outputType) }

    var comments: String { service.protoSourceCommentsWithDeprecation() }
    func comments(_ method: ServiceMethod) -> String { method.descriptor.protoSourceCommentsWithDeprecation() }

    /// A type of the sessions' module, qualified because a message may have its name.
    func session(_ name: String) -> String { "\(SwiftContext.sessions).\(name)" }

    /// The type with which one end of a stream sends messages.
    func writer(_ message: String) -> String { "\(session("SessionStreamWriter"))<\(message)>" }

    /// The type of the messages that one end of a stream receives.
    func messages(_ message: String) -> String { "\(session("SessionMessages"))<\(message)>" }

    /// A parameter's declaration, which the client and the server's pushes share.
    var metadataParameter: String { "metadata: \(session("SessionMetadata")) = [:]" }
    var deliveryParameter: String { "delivery: \(session("SessionDelivery"))? = nil" }
    var stageParameter: String { "until stage: \(session("SessionPushStage")) = .accepted" }

    /// Qualified, because any imported module may have a message with its name.
    static let duration = "Swift.Duration"

    static let metadataComment = "  - metadata: sent with the message. Default: none."
    static let deliveryComment =
        "  - delivery: the guarantees for the message. Default: as in the session's configuration."
    static let stageComment =
        "  - stage: whether to wait until the message is accepted or processed. Default: accepted."
}
