internal import ArgumentParser
internal import Lifeline
internal import LifelineMessages
internal import LifelineReflection

/// The heartbeat of a command that connects, by an example of its message.
struct HeartbeatOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The message that asks a silent peer for a sign of life, as JSON. Any byte that comes is one; a message "
                + "that equals the heartbeat is not printed.",
            valueName: "json"
        )
    )
    var heartbeat: String?

    @Option(help: ArgumentHelp("The type of the heartbeat. Default: that of --type.", valueName: "name"))
    var heartbeatType: String?

    @Option(
        help: ArgumentHelp(
            "How long a peer may be silent until it is asked. Default: 30. It counts as gone after three times this, but "
                + "30 s at most, without an answer.",
            valueName: "seconds"
        )
    )
    var heartbeatInterval: Double?

    func validate() throws {
        if heartbeat == nil, heartbeatType != nil { throw ValidationError("--heartbeat-type goes with --heartbeat.") }
        if let interval = heartbeatInterval, !(interval > 0 && interval <= 1e7) {
            throw ValidationError("--heartbeat-interval must be more than 0 and at most 10,000,000 seconds.")
        }
    }

    var isGiven: Bool { heartbeat != nil || heartbeatInterval != nil }

    func apply(to configuration: inout HeartbeatConfiguration) {
        guard let heartbeatInterval else { return }
        configuration.interval = .seconds(heartbeatInterval)
        configuration.timeout = min(configuration.timeout, configuration.interval)
    }

    /// The heartbeat's message; nil if there is none.
    ///
    /// - Parameter type: the type of `--type`, if that is given.
    func message(in pool: DescriptorPool?, type: String?) throws(CommandFailure) -> RawMessage? {
        guard let heartbeat else { return nil }
        guard let pool, let name = heartbeatType ?? type else { throw SchemaOptions.missing() }
        return try RawMessage(json: heartbeat, from: "--heartbeat", of: try pool.messageType(named: name), in: pool)
    }
}

extension RawMessage {
    /// Reads one message that an option gives as JSON.
    init(
        json: String,
        from option: String,
        of type: MessageDescriptor,
        in pool: DescriptorPool,
        ignoresUnknown: Bool = false,
        limit: Int = ConnectionConfiguration().maximumFrameLength
    ) throws(CommandFailure) {
        let decoder = MessageTextDecoder(type, in: pool, from: .json, ignoresUnknown: ignoresUnknown, limit: limit)
        do throws(MessageError) {
            self.init(bytes: try decoder.message(Array(json.utf8)).serializedBytes())
        } catch {
            let text = "\(option) is no \(type.fullName). \(error.words)"
            throw CommandFailure(status: .badData, message: text)
        }
    }
}

extension Carrier {
    /// Returns the heartbeat with a message, or else the framing's own.
    func heartbeat(of message: RawMessage?) -> HeartbeatMessages<Received, Sent>? {
        guard let message else { return heartbeat }
        return HeartbeatMessages(
            ping: { [wrap] _ in wrap(message) },
            answer: { _ in nil },
            isAnswer: { received in
                received.withContent { content in
                    message.withUnsafeBytes { $0.elementsEqual(content) }
                }
            }
        )
    }
}
