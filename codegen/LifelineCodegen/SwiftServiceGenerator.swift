internal import SwiftProtobuf
internal import SwiftProtobufPluginLibrary

/// Writes a service: the client, the protocol that handlers conform to, and what the server pushes with.
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
        // What only pushes needs no handler, and what never does nothing to push with.
        if methods.contains(where: { $0.shape != .serverPush }) { printHandler(to: &printer) }
        if methods.contains(where: { $0.shape == .serverPush }) { printPushes(to: &printer) }
    }

    // MARK: What all parts have

    /// Comments of the .proto file's with what all such declarations say behind them.
    func printComments(_ comments: String, _ lines: String..., to printer: inout SourcePrinter) {
        printer.printComments(comments)
        if !comments.isEmpty { printer.print("///") }
        for line in lines { printer.print(line.isEmpty ? "///" : "/// \(line)") }
    }

    /// For what calls a method. Handlers implement it nonetheless, for as long as there are clients.
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

    /// What the type of a message's metadata, and all the others of sessions, are called here.
    func session(_ name: String) -> String { "\(SwiftContext.sessions).\(name)" }

    /// A parameter's declaration, which the client and the server's pushes have alike.
    var metadataParameter: String { "metadata: \(session("SessionMetadata")) = [:]" }
    var deliveryParameter: String { "delivery: \(session("SessionDelivery")) = .reliable" }
    var stageParameter: String { "until stage: \(session("SessionPushStage")) = .accepted" }

    /// Qualified, for any module that is imported may have a message with its name.
    static let duration = "Swift.Duration"

    static let metadataComment = "  - metadata: what travels beside the message. Default: nothing."
    static let deliveryComment =
        "  - delivery: what is promised of the message. Default: processed exactly once, in order."
    static let stageComment =
        "  - stage: what to wait for: that the message is accepted, or that it is processed. Default: accepted."
}
