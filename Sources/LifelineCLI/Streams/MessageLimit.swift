internal import ArgumentParser

/// How long a message may be.
struct MessageLimit: ParsableArguments {
    @Option(
        name: .customLong("limit"),
        help: ArgumentHelp("The most bytes that an encoded message may have. Up to 2147483647.", valueName: "bytes")
    )
    var bytes = MessageLimit.default

    /// 64 MiB.
    static let `default` = 64 << 20

    func validate() throws {
        // protobuf's own limit of a message.
        guard (0...Int(Int32.max)).contains(bytes) else {
            throw ValidationError("--limit must be between 0 and 2147483647.")
        }
    }
}
