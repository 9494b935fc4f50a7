internal import ArgumentParser
internal import Lifeline

/// Options for the server of a session, and the way to it.
struct SessionArguments: ParsableArguments {
    @Option(help: "What this side calls itself.")
    var name = ""

    /// A minute, enough to restart a server by hand.
    @Option(
        help: ArgumentHelp(
            "Give up when there was no connection to the server for so long; 0: with the first attempt that fails.",
            valueName: "seconds"
        )
    )
    var giveUpAfter = 60.0

    @OptionGroup var proxy: ProxyOptions

    @OptionGroup(title: "TLS")
    var tls: ClientTLSArguments

    @Flag(help: "Do not tell of connections and sessions that are lost and made again, and how it went.")
    var quiet = false

    func validate() throws { _ = try connectionTimeout }

    /// The longest time without a connection.
    var connectionTimeout: Duration { get throws { try parseSeconds(giveUpAfter, of: "--give-up-after") } }

    var configuration: SessionClientConfiguration {
        get throws {
            var configuration = SessionClientConfiguration()
            configuration.name = name
            // `SessionWatcher` gives up.
            configuration.client.backoff.maximumAttempts = nil
            configuration.client.backoff.initialDelay = .milliseconds(250)
            configuration.client.backoff.cap = .seconds(5)
            // Nothing is expected from a peer that does not end its side.
            configuration.client.connection.closeTimeout = .seconds(1)
            configuration.client.connection.proxy = try proxy.configuration
            configuration.client.connection.tls = tls.configuration
            return configuration
        }
    }
}
