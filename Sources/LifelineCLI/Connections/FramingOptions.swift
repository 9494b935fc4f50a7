internal import ArgumentParser
internal import Lifeline
internal import LifelineMessages
internal import LifelineOlderFramings
internal import Synchronization

/// The framings of messages on a connection.
enum FramingName: String, CaseIterable, ExpressibleByArgument {
    /// Each message after its length as a varint.
    case delimited
    /// Each message after a header of numbers: a url, a serial and the length.
    case fixedHeader = "fixed-header"
    /// Each message after a line of JSON with a type and the length.
    case headLine = "head-line"
}

/// The framing of a command's connections, and the content of its heads.
struct FramingOptions: ParsableArguments {
    @Option(
        help: """
            How messages are marked off: delimited (behind their length, a varint), fixed-header (behind a url, a serial and \
            a length, as numbers of 32 bits) or head-line (behind a line of JSON with type and size).
            """
    )
    var framing = FramingName.delimited

    @Option(
        help: ArgumentHelp(
            "The url of the messages that are sent with fixed headers: 2 to 0x400 for notifications, above for requests, "
                + "which are numbered. Default: 2.",
            valueName: "number"
        ),
        transform: parseURLNumber
    )
    var frameURL: UInt32?

    @Option(
        help: ArgumentHelp("The type in the head lines of what is sent. Default: message.", valueName: "type")
    )
    var headType: String?

    func validate() throws {
        if frameURL != nil, framing != .fixedHeader {
            throw ValidationError("--frame-url goes with --framing fixed-header.")
        }
        if headType != nil, framing != .headLine {
            throw ValidationError("--head-type goes with --framing head-line.")
        }
    }

    func validate(with heartbeat: HeartbeatOptions) throws {
        if heartbeat.heartbeat != nil, framing == .fixedHeader {
            throw ValidationError("Fixed headers have a heartbeat of their own; --heartbeat is for other framings.")
        }
        if heartbeat.heartbeatInterval != nil, heartbeat.heartbeat == nil, framing != .fixedHeader {
            throw ValidationError("--heartbeat-interval goes with --heartbeat, which gives the message.")
        }
    }

    /// The carrier of a client with fixed headers.
    var fixedHeaderCarrier: Carrier<FixedHeaderResponse, FixedHeaderRequest> {
        let url = frameURL ?? 2
        let numbers = RequestNumbers(of: url)
        return Carrier(
            wrap: { FixedHeaderRequest(url: url, serial: numbers.next(), content: $0.bytes) },
            heartbeat: .fixedHeader
        )
    }

    var headLineCarrier: Carrier<HeadLineMessage, HeadLineMessage> {
        let type = headType ?? "message"
        return Carrier { HeadLineMessage(type: type, content: $0.bytes) }
    }
}

/// The serials of messages of one url. Notifications have their url as the serial; requests have ascending serials.
private final class RequestNumbers: Sendable {
    private let url: UInt32
    private let count = Atomic<UInt32>(0)

    init(of url: UInt32) {
        self.url = url
    }

    func next() -> UInt32 {
        if url <= 0x400 { return url }
        while true {
            // From 0x401 to 0xFFFFFFFE, and then again.
            let number = 0x401 + count.wrappingAdd(1, ordering: .relaxed).oldValue % (0xFFFF_FFFE - 0x400)
            if number != url { return number }
        }
    }
}

extension FixedHeaderRequest: CarriedContent {
    func withContent<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { content.withUnsafeBytes(body) }
}

extension FixedHeaderResponse: CarriedContent {
    func withContent<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { content.withUnsafeBytes(body) }
}

extension HeadLineMessage: CarriedContent {
    func withContent<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { content.withUnsafeBytes(body) }
}

@Sendable private func parseURLNumber(_ text: String) throws -> UInt32 {
    let number = text.hasPrefix("0x") ? UInt32(text.dropFirst(2), radix: 16) : UInt32(text)
    guard let number, number > 1, number < .max else {
        throw ValidationError("--frame-url must be a number from 2 to 0xFFFFFFFE.")
    }
    return number
}
