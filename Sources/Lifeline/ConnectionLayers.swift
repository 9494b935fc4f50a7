internal import Glibc
internal import LifelineCore
internal import LifelineTransport

extension ConnectionConfiguration {
    /// What lies between the socket and the frames of connections to `endpoint`, from the socket on. To be made once for
    /// all connections to it.
    ///
    /// - Throws: `ConnectionError`: what is configured cannot be.
    func layers(to endpoint: Endpoint) throws(ConnectionError) -> [any ChannelLayer] {
        var layers: [any ChannelLayer] = []
        if let proxy = try proxyServer(for: endpoint) {
            layers.append(try ProxyLayer(route: ProxyRoute(proxy: proxy, endpoint: endpoint)))
        }
        return layers
    }

    /// Where the socket is connected to, for a connection to `endpoint`.
    func proxyServer(for endpoint: Endpoint) throws(ConnectionError) -> ProxyServer? {
        guard let proxy else { return nil }
        var environment: [String: String] = [:]
        for name in ProxyConfiguration.environmentVariables {
            environment[name] = getenv(name).map { String(cString: $0) }
        }
        return try proxy.server(for: endpoint, environment: environment)
    }
}

extension ConnectionOptions {
    /// Adds what the configuration puts between the socket and the frames of connections to `endpoint`.
    mutating func addLayers(
        of configuration: ConnectionConfiguration,
        to endpoint: Endpoint
    ) throws(ConnectionError) {
        layers = try configuration.layers(to: endpoint)
        proxyAddress = try configuration.proxyServer(for: endpoint)?.address
    }
}
