internal import ArgumentParser

@main
struct LifelineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lifeline",
        abstract:
            "Sends, receives, decodes and encodes protobuf messages of any type; serves and calls a room over sessions.",
        discussion: """
            What `send` and `receive` exchange are messages behind their length as a varint, so any program that reads and \
            writes delimited protobuf can be the other end. Their type comes from a .proto file or a descriptor set.

            In one terminal:
              lifeline receive --on tcp://127.0.0.1:7000 --proto chat.proto --type ChatMessage
            In another:
              lifeline send --to tcp://127.0.0.1:7000 --proto chat.proto --type ChatMessage --data '{"text": "Hello"}'

            A session outlives its connections: calls, streams and pushes go on where they were. In one terminal:
              lifeline serve
            In others:
              lifeline list tcp://127.0.0.1:7000
              lifeline call tcp://127.0.0.1:7000 Room/Echo --data '{"text": "Hello"}'

            Exit codes: 0 done, 64 wrong usage, 65 bad data (or a certificate or key that cannot be used), 69 peer, \
            endpoint or protoc unavailable, or a certificate refused, 74 input or output failed, 130 and 143 ended by \
            SIGINT and SIGTERM (by the second one, where the first one ends it in order), 1 and 70 a fault of the \
            command itself. Those of sessions: `lifeline call --help`.
            """,
        version: "0.1.0",
        subcommands: [
            CallCommand.self, DecodeCommand.self, DescribeCommand.self, EncodeCommand.self, ListCommand.self,
            MonitorCommand.self, ReceiveCommand.self, RelayCommand.self, ReplayCommand.self, SendCommand.self,
            ServeCommand.self,
        ]
    )
}
