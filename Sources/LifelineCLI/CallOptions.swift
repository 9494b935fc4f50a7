internal import ArgumentParser
internal import Lifeline

/// Which server a call goes to, and how.
struct CallOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where to connect: tcp:// or tls://HOST:PORT, ws:// or wss://HOST:PORT/PATH, or unix:///PATH.",
            valueName: "url"
        )
    )
    var to = defaultRoomEndpoint

    /// A minute, in which a server is restarted by hand.
    @Option(
        help: ArgumentHelp(
            "Give up when there was no connection to the room for so long; 0: with the first attempt that fails.",
            valueName: "seconds"
        )
    )
    var giveUpAfter = 60.0

    @OptionGroup var proxy: ProxyOptions

    @OptionGroup(title: "TLS")
    var tls: ClientTLSArguments

    @Flag(help: "Do not tell of connections and sessions that are lost and made again, and how it went.")
    var quiet = false

    func validate() throws {
        _ = try connectionTimeout
        try tls.validate(for: endpoint)
    }

    var endpoint: Endpoint { get throws { try parseEndpoint(to) } }

    /// How long there may be no connection.
    var connectionTimeout: Duration { get throws { try parseSeconds(giveUpAfter, of: "--give-up-after") } }

    /// - Parameter name: of the session.
    func configuration(name: String) throws -> SessionClientConfiguration {
        var configuration = SessionClientConfiguration()
        configuration.name = name
        // `CallWatcher` gives up.
        configuration.client.backoff.maximumAttempts = nil
        configuration.client.backoff.initialDelay = .milliseconds(250)
        configuration.client.backoff.cap = .seconds(5)
        // A peer that does not end its side has nothing that is waited for.
        configuration.client.connection.closeTimeout = .seconds(1)
        configuration.client.connection.proxy = try proxy.configuration
        configuration.client.connection.tls = tls.configuration
        return configuration
    }
}

/// What a call of `lifeline call` may take.
struct TimeoutOption: ParsableArguments {
    @Option(
        name: .customLong("timeout"),
        help: ArgumentHelp(
            "How long an answer may take, with the wait for a connection. Without it: as long as it takes.",
            valueName: "seconds"
        )
    )
    var seconds: Double?

    func validate() throws { _ = try duration }

    var duration: Duration? { get throws { try seconds.map { try parseSeconds($0, of: "--timeout") } } }
}
