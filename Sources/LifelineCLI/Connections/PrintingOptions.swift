internal import ArgumentParser
internal import LifelineReflection

/// Options for printing the messages of a connection.
struct PrintingOptions: ParsableArguments {
    @OptionGroup var json: JSONFlags

    @Flag(help: "Leave out messages that cannot be decoded.")
    var skipBad = false

    @Option(
        help: "Write the messages to this file, which is emptied when the first one comes. Default: standard output.",
        completion: .file()
    )
    var output: String?

    @Option(name: .customLong("for"), help: ArgumentHelp("Stop after this time.", valueName: "seconds"))
    var seconds: Double?

    func validate() throws {
        if let seconds, !(seconds > 0 && seconds <= 1e7) {
            throw ValidationError("--for must be more than 0 and at most 10,000,000 seconds.")
        }
    }

    var isGiven: Bool { json.allFields || json.protoNames || skipBad || output != nil || seconds != nil }

    var duration: Duration? { seconds.map { .seconds($0) } }

    /// - Parameters:
    ///   - format: nil for JSON if the type is known, and otherwise for text with field numbers.
    ///   - count: the most messages; nil: no limit.
    func printer(
        _ format: MessageFormat?,
        of type: (type: MessageDescriptor, pool: DescriptorPool)?,
        count: Int?,
        limit: MessageLimit,
        isQuiet: Bool
    ) throws(CommandFailure) -> MessagePrinter {
        let output = try output.map(OutputFile.init(path:)) ?? .standardOutput
        if format == .delimited, output.isTerminal {
            throw CommandFailure(
                status: .usage,
                message: "Messages are binary, and no terminal shows them. Send them to a file or a program: "
                    + "--output messages.binpb"
            )
        }
        var form = PrintedForm(format, of: type, json: json, limit: limit.ofConnections)
        if case .text(var encoder) = form {
            encoder.escapesControls = output.isTerminal
            form = .text(encoder)
        }
        return MessagePrinter(form: form, output: output, limit: count, skipsBadMessages: skipBad, isQuiet: isQuiet)
    }
}

extension Result where Failure == any Error {
    /// Returns the result or error of an asynchronous function.
    static func of(_ body: () async throws -> Success) async -> Self {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}
