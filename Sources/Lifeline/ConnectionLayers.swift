internal import LifelineCore
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

// What lies between the socket and the frames, from the socket on. Making layers may read files and builds what all
// connections share: once for each client and server, and not on an event loop.

extension ConnectionConfiguration {
    /// What lies between the socket and the frames of a connection to `endpoint`.
    ///
    /// - Throws: `tlsConfigurationInvalid`.
    func layers(to endpoint: Endpoint) throws(ConnectionError) -> [any ChannelLayer] {
        var layers: [any ChannelLayer] = []
        if endpoint.isEncrypted { layers.append(try TLSClientLayer(tls, host: endpoint.host)) }
        return layers
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

/// A client's layers: made at the first attempt to connect, and again at the next one while they cannot be made.
final class ClientLayers: Sendable {
    private let configuration: ConnectionConfiguration
    private let endpoint: Endpoint
    private let made = NIOLockedValueBox<[any ChannelLayer]?>(nil)

    init(_ configuration: ConnectionConfiguration, endpoint: Endpoint) {
        self.configuration = configuration
        self.endpoint = endpoint
    }

    /// `options` with the layers. For one task at a time.
    func added(to options: ConnectionOptions) throws(ConnectionError) -> ConnectionOptions {
        var options = options
        if let layers = made.withLockedValue({ $0 }) {
            options.layers = layers
        } else {
            options.layers = try configuration.layers(to: endpoint)
            made.withLockedValue { $0 = options.layers }
        }
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
