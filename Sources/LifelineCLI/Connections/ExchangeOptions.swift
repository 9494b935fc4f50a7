internal import ArgumentParser
internal import Lifeline
internal import LifelineMessages
internal import LifelineReflection
internal import Logging

/// The options that `send` and `receive` share: the type of the messages, and the settings of the connection.
struct ExchangeOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The type of the messages.", valueName: "name"))
    var type: String?

    @OptionGroup(title: "Schema") var schema: SchemaOptions

    @OptionGroup var limit: MessageLimit

    @OptionGroup(title: "Heartbeat, of a client") var heartbeat: HeartbeatOptions

    @OptionGroup(title: "Framing") var framing: FramingOptions

    @OptionGroup var proxy: ProxyOptions

    @OptionGroup var steps: StepOptions

    @Flag(help: "At the end, tell how many messages there were, as JSON objects on standard error.")
    var json = false

    /// - Parameters:
    ///   - attempts: the number of attempts to connect in a row.
    ///   - tls: the trusted roots, and this side's certificate.
    func clientConfiguration(attempts: Int, tls: TLSClientConfiguration) throws -> ClientConfiguration {
        var configuration = ClientConfiguration()
        configuration.backoff.maximumAttempts = attempts
        configuration.connection.maximumFrameLength = limit.ofConnections
        configuration.connection.proxy = try proxy.configuration
        configuration.connection.tls = tls
        heartbeat.apply(to: &configuration.connection.heartbeat)
        return configuration
    }

    /// Makes a client. Its steps are followed, and reported to the user, elsewhere.
    ///
    /// - Parameter pool: the types of `schema`.
    func client<Received, Sent>(
        to endpoint: Endpoint,
        _ configuration: ClientConfiguration,
        _ carrier: Carrier<Received, Sent>,
        in pool: DescriptorPool?
    ) throws(CommandFailure) -> Client<Received, Sent> {
        Client(
            to: endpoint,
            configuration: configuration,
            receiving: Received.self,
            sending: Sent.self,
            heartbeat: carrier.heartbeat(of: try heartbeat.message(in: pool, type: type)),
            logger: Logger(label: "lifeline") { _ in SwiftLogNoOpLogHandler() }
        )
    }
}
