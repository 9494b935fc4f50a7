extension ProxyConfiguration {
    /// Returns the proxy for an endpoint; nil for none.
    ///
    /// - Parameter environment: the process's environment, with the variables in `environmentVariables`.
    /// - Throws: `ConnectionError` `invalidConfiguration`.
    package func server(
        for endpoint: Endpoint,
        environment: [String: String]
    ) throws(ConnectionError) -> ProxyServer? {
        guard case .tcp(let host, let port) = endpoint.address else { return nil }
        switch source {
        case .server(let server):
            try server.check()
            return server
        case .environment:
            let first = ProxyConfiguration.variables(for: endpoint).first { environment[$0]?.isEmpty == false }
            guard let variable = first, let url = environment[variable] else { return nil }
            let exceptions = ["no_proxy", "NO_PROXY"].compactMap { environment[$0] }.first { !$0.isEmpty }
            if ProxyExceptions(exceptions ?? "").contain(host: host, port: port) { return nil }
            do {
                guard case .server(let server) = try ProxyConfiguration(url).source else { return nil }
                return server
            } catch {
                throw ConnectionError(
                    code: .invalidConfiguration,
                    message: "The environment's \(variable) is wrong: \(error.message)"
                )
            }
        }
    }

    /// All variables that are read for some endpoint.
    package static let environmentVariables = [
        "tcp_proxy", "TCP_PROXY", "tls_proxy", "TLS_PROXY", "ws_proxy", "WS_PROXY", "wss_proxy", "WSS_PROXY",
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
    ]

    private static func variables(for endpoint: Endpoint) -> [String] {
        let own = "\(endpoint.scheme)_proxy"
        let usual: [String] =
            if endpoint.isEncrypted { ["https_proxy", "HTTPS_PROXY"] } else if endpoint.isWebSocket {
                ["http_proxy"]
            } else { [] }
        return [own, own.uppercased()] + usual + ["all_proxy", "ALL_PROXY"]
    }
}
