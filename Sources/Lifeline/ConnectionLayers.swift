internal import Glibc
internal import LifelineCore
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

// What lies between the socket and the frames, from the socket on. Making layers may read files and builds what all
// connections share: once for each client and server, and not on an event loop.

extension ConnectionConfiguration {
    /// `options` with what lies between the socket and the frames of a connection to `endpoint`.
    ///
    /// - Throws: `ConnectionError`: what is configured cannot be.
    func addingLayers(
        to options: ConnectionOptions,
        for endpoint: Endpoint
    ) throws(ConnectionError) -> ConnectionOptions {
        var options = options
        options.layers = []
        if let proxy = try proxyServer(for: endpoint) {
            options.proxyAddress = proxy.address
            options.layers.append(try ProxyLayer(route: ProxyRoute(proxy: proxy, endpoint: endpoint)))
        }
        if endpoint.isEncrypted { options.layers.append(try TLSClientLayer(tls, host: endpoint.host)) }
        return options
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

extension ServerConfiguration {
    /// What lies between the socket and the frames of connections accepted on `endpoint`.
    ///
    /// - Throws: `tlsConfigurationInvalid`.
    func layers(on endpoint: Endpoint, logger: Logger) throws(ConnectionError) -> [any ChannelLayer] {
        var layers: [any ChannelLayer] = []
        if endpoint.isEncrypted {
            guard let tls else {
                throw ConnectionError(
                    code: .tlsConfigurationInvalid,
                    message: "\(endpoint) needs a certificate. Set ServerConfiguration.tls."
                )
            }
            layers.append(try TLSServerLayer(tls, logger: logger))
        }
        return layers
    }
}

/// A client's options with its layers: made at the first attempt to connect, and again at the next one while they cannot
/// be made.
final class ClientLayers: Sendable {
    private let configuration: ConnectionConfiguration
    private let endpoint: Endpoint
    private let made = NIOLockedValueBox<ConnectionOptions?>(nil)

    init(_ configuration: ConnectionConfiguration, endpoint: Endpoint) {
        self.configuration = configuration
        self.endpoint = endpoint
    }

    /// `options`, always the same ones, with the layers. For one task at a time.
    func added(to options: ConnectionOptions) throws(ConnectionError) -> ConnectionOptions {
        if let made = made.withLockedValue({ $0 }) { return made }
        let options = try configuration.addingLayers(to: options, for: endpoint)
        made.withLockedValue { $0 = options }
        return options
    }
}

extension Endpoint {
    fileprivate var host: String {
        switch address {
        case .tcp(let host, _): host
        case .unix(let path): path
        }
    }
}
