internal import ArgumentParser
internal import LifelineMessages
internal import LifelineReflection

struct DecodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode",
        abstract: "Prints the messages of a delimited file or pipe as JSON lines or text.",
        discussion: """
            A delimited stream has each message behind its length, a varint: what writeDelimitedTo of Java, \
            serialize_delimited of Python and DelimitedMessageWriter of Lifeline write.

            The types come from --proto or --descriptor-set, and --type names the type of the messages. Without them, \
            fields are shown by their numbers, as protoc --decode_raw does for one message.

            The first message that cannot be decoded ends the command, after the messages before it were printed. \
            --skip-bad leaves such messages out, and tells of each on standard error. An invalid length \
            always ends the command, since nobody can tell where the next message begins.

            Examples:
              lifeline decode --proto sensors.proto --type Sample samples.binpb
              lifeline decode --proto acme/sensors.proto -I protos --type acme.Sample samples.binpb | jq .temperature
              lifeline decode --descriptor-set sensors.binpb --type Sample --format text < samples.binpb
              lifeline decode --count 3 samples.binpb                  # by field numbers
              zcat samples.binpb.gz | lifeline decode --proto sensors.proto --type Sample --skip-bad

            Exit codes: 0 done, 64 wrong usage, 65 bad data or a schema that cannot be used, 69 protoc cannot be run, \
            74 input or output failed.
            """
    )

    @Argument(help: "The delimited stream. Default: standard input.", completion: .file())
    var file: String?

    @Option(help: ArgumentHelp("The type of the messages.", valueName: "name"))
    var type: String?

    @OptionGroup(title: "Schema") var schema: SchemaOptions

    @Option(help: "json prints an object a line; text prints text format, and --- after each message.")
    var format: TextForm?

    @OptionGroup var json: JSONFlags

    @Option(help: "Stop after this many messages.")
    var count: Int?

    @Flag(help: "Leave out messages that cannot be decoded.")
    var skipBad = false

    @OptionGroup var limit: MessageLimit

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
        if type == nil, format == .json {
            throw ValidationError(
                """
                JSON needs the type of the messages:
                  lifeline decode --proto FILE --type NAME …
                """
            )
        }
    }

    func run() throws {
        try exitingOnFailure {
            let input = try file.map(InputFile.init(path:)) ?? .standardInput()
            var decoder = StreamDecoder(
                input: input,
                form: PrintedForm(
                    format.map(MessageFormat.text),
                    of: try schema.load().messageType(named: type),
                    json: json,
                    limit: limit.ofFiles
                ),
                maximumCount: count ?? .max,
                skipsBadMessages: skipBad,
                limit: limit.ofFiles
            )
            try decoder.run()
        }
    }
}
