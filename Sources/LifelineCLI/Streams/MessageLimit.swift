internal import ArgumentParser
internal import Lifeline

/// The option for the longest message.
struct MessageLimit: ParsableArguments {
    @Option(
        name: .customLong("limit"),
        help: ArgumentHelp(
            "The most bytes that an encoded message may have. Up to 2147483647. Default: 67108864 in files, 4194304 on "
                + "connections.",
            valueName: "bytes"
        )
    )
    var chosen: Int?

    func validate() throws {
        // protobuf's own limit for a message.
        if let chosen, !(0...Int(Int32.max)).contains(chosen) {
            throw ValidationError("--limit must be between 0 and 2147483647.")
        }
    }

    /// The limit of a message in a file or a pipe.
    var ofFiles: Int { chosen ?? 64 << 20 }

    /// The limit of a message on a connection, where a peer must not take up much memory.
    var ofConnections: Int { chosen ?? ConnectionConfiguration().maximumFrameLength }

    /// The limit of a session's frame, which has a message, numbers, and up to 64 KiB of metadata.
    var ofSessions: Int { ofConnections + (64 << 10) }
}
