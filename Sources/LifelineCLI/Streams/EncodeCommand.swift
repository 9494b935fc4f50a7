internal import ArgumentParser
internal import Glibc
internal import LifelineReflection

struct EncodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "encode",
        abstract: "Writes JSON lines or text as a delimited stream of messages.",
        discussion: """
            Reads what `lifeline decode` prints: JSON objects, each in a line, in several lines or one behind the other; \
            or text format with a line --- after each message. Writes each message behind its length, a varint, to \
            standard output.

            The first message that is not of the type ends the command, after the messages before it were written.

            Examples:
              echo '{"id": 1}' | lifeline encode --proto sensors.proto --type Sample > samples.binpb
              lifeline encode --proto acme/sensors.proto -I protos --type acme.Sample samples.json > samples.binpb
              lifeline encode --descriptor-set sensors.binpb --type Sample --format text samples.txtpb > samples.binpb

            Exit codes: 0 done, 64 wrong usage, 65 bad data or a schema that cannot be used, 69 protoc cannot be run, \
            74 input or output failed.
            """
    )

    @Argument(help: "The messages as text. Default: standard input.", completion: .file())
    var file: String?

    @Option(help: ArgumentHelp("The type of the messages.", valueName: "name"))
    var type: String

    @OptionGroup(title: "Schema") var schema: SchemaOptions

    @Option(help: "What the input is: json or text.")
    var format: TextForm = .json

    @Flag(help: "Pass over fields that the type does not have, and names of enum values that it does not know.")
    var ignoreUnknown = false

    @OptionGroup var limit: MessageLimit

    func run() throws {
        try exitingOnFailure {
            if isatty(STDOUT_FILENO) == 1 {
                throw CommandFailure(
                    status: .usage,
                    message:
                        "Messages are binary, and no terminal shows them. Send them to a file or a program, as in: "
                        + "lifeline encode --proto sensors.proto --type Sample > samples.binpb"
                )
            }
            guard let pool = try schema.load() else { throw SchemaOptions.missing() }
            let input = try file.map(InputFile.init(path:)) ?? .standardInput()
            let decoder = MessageTextDecoder(
                try pool.messageType(named: type),
                in: pool,
                from: format,
                ignoresUnknown: ignoreUnknown,
                limit: limit.ofFiles
            )
            var encoder = StreamEncoder(input: input, decoder: decoder, limit: limit.ofFiles)
            try encoder.run()
        }
    }
}
