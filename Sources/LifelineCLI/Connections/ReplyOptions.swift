internal import ArgumentParser
internal import LifelineReflection

/// Options for printing the replies to a command that sends.
struct ReplyOptions: ParsableArguments {
    @Flag(help: "Print the messages that come back, also after all were sent.")
    var both = false

    @Option(help: ArgumentHelp("The type of the replies. Default: that of --type.", valueName: "name"))
    var replyType: String?

    @Option(help: "json, text or delimited. Default: json, and text by field numbers without a type.")
    var replyFormat: MessageFormat?

    @Option(name: .customLong("replies"), help: ArgumentHelp("Stop after this many replies.", valueName: "count"))
    var count: Int?

    @OptionGroup var printing: PrintingOptions

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--replies must be at least 1.") }
        if !both, replyType != nil || replyFormat != nil || count != nil || printing.isGiven {
            throw ValidationError("--reply-type, --reply-format, --replies and how to print go with --both.")
        }
    }

    /// The printer of the replies; nil if they are not wanted.
    ///
    /// - Parameter type: the type of the messages that are sent, if that is given.
    func printer(
        in pool: DescriptorPool?,
        of type: String?,
        limit: MessageLimit,
        isQuiet: Bool
    ) throws(CommandFailure) -> MessagePrinter? {
        guard both else { return nil }
        return try printing.printer(
            replyFormat,
            of: try pool.messageType(named: replyType ?? type),
            count: count,
            limit: limit,
            isQuiet: isQuiet
        )
    }

    var duration: Duration? { printing.duration }
}
