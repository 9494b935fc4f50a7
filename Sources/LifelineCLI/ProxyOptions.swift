internal import ArgumentParser
internal import Lifeline

/// Options for the proxy of a command that connects.
struct ProxyOptions: ParsableArguments {
    // Read in `validate()`, because the parser's errors repeat a wrong value, which may contain the password.
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
        )
    )
    var proxy: String?

    @Flag(help: "Connect without a proxy, whatever the environment says.")
    var noProxy = false

    func validate() throws {
        if noProxy, proxy != nil { throw ValidationError("--proxy and --no-proxy exclude each other.") }
        _ = try configuration
    }

    var configuration: ProxyConfiguration? {
        get throws {
            if noProxy { return nil }
            guard let proxy else { return .environment }
            do throws(ConnectionError) {
                return try ProxyConfiguration(proxy)
            } catch {
                throw ValidationError(error.message)
            }
        }
    }
}
