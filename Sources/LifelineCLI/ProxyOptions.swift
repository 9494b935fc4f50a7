internal import ArgumentParser
internal import Lifeline

/// Which proxy a command that connects goes through.
struct ProxyOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Connect through this proxy: http://[USER:PASSWORD@]HOST:PORT or socks5://[USER:PASSWORD@]HOST:PORT.",
            discussion: """
                Without this option the environment decides, as it does for curl: tls:// and wss:// go through the proxy in \
                https_proxy, ws:// through that in http_proxy, and all, tcp:// too, through that in all_proxy, except to \
                the hosts in no_proxy. A password in an argument can be seen by other users of this machine; in the \
                environment, it cannot.
                """,
            valueName: "url"
        ),
        transform: parseProxy
    )
    var proxy: ProxyConfiguration?

    @Flag(help: "Connect without a proxy, whatever the environment says.")
    var noProxy = false

    func validate() throws {
        if noProxy, proxy != nil { throw ValidationError("--proxy and --no-proxy exclude each other.") }
    }

    var configuration: ProxyConfiguration? { noProxy ? nil : proxy ?? .environment }
}

/// Reads the proxy that an option names, with an error that says what is wrong with it, and not what its password is.
@Sendable private func parseProxy(_ text: String) throws -> ProxyConfiguration {
    do throws(ConnectionError) {
        return try ProxyConfiguration(text)
    } catch {
        throw ValidationError(error.message)
    }
}
