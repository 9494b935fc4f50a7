public import LifelineMessages
internal import LifelineTransport

/// How the client of a session behaves.
public struct SessionClientConfiguration: Sendable {
    /// How its connections behave, and how it connects again. Pings of the session's own watch the peer. The queue of
    /// sends plays no part, as the session has its own.
    public var client = ClientConfiguration()

    /// How the session is to be found at the server (`SessionServer.session(named:)`); empty: not by a name. With
    /// `metadata` 16 KiB at most, as they are encoded. Default: empty.
    public var name = ""

    /// What the server is told with each connection, for its own decision whether to let the client in: credentials,
    /// for example. Default: nothing.
    public var metadata: SessionMetadata = [:]

    /// Asked before each connection is made for what takes the place of `metadata`: a token that is valid then, for
    /// example. While it works the attempt does; what it throws fails the attempt, which is repeated as any other is.
    /// Nil: nothing does. Default: nil.
    public var renewMetadata: (@Sendable () async throws -> SessionMetadata)?

    /// Keeps durable messages, and which of the server's were processed, over a restart of this process. Only one
    /// client uses it at a time. Nil: nothing is kept. Default: nil.
    public var store: (any SessionStore)?

    /// How many bytes of durable messages are kept; pushes wait above that. Default: 1 GiB.
    public var maximumStoredByteCount = 1 << 30

    /// The delivery of pushes and calls with one reply that name none: `reliable`, or `durable`, which needs a `store`.
    /// Streams are reliable in any case. Default: `reliable`.
    public var defaultDelivery = SessionDelivery.reliable

    /// What is kept for the server, and taken from it.
    public var limits = SessionLimits()

    /// How long `close()` waits until the server has processed everything. Default: 10 s, as a server waits for its
    /// handlers when it shuts down.
    public var closeTimeout = Duration.seconds(10)

    /// The longest pause that a server which goes away may ask for before the next connection. Default: 5 min, which
    /// several restarts of a server take. Values below 0 count as 0. `SessionClient.reconnect()` and the network's
    /// return cut a pause short.
    public var maximumPause = Duration.seconds(300)

    /// What messages are accepted in replies and pushes.
    public var decodingOptions: DecodingOptions {
        get { client.connection.decodingOptions }
        set { client.connection.decodingOptions = newValue }
    }

    /// Makes a configuration with the default values.
    public init() {}
}

extension SessionDelivery {
    /// - Throws: `invalidConfiguration` when it cannot be that of all pushes and calls.
    func checkAsDefault(hasStore: Bool) throws(ConnectionError) {
        guard self == .reliable || self == .durable else {
            throw ConnectionError(
                code: .invalidConfiguration,
                message:
                    "The default delivery of a session is reliable or durable. Name other deliveries with each push."
            )
        }
        guard isDurable, !hasStore else { return }
        throw ConnectionError(
            code: .invalidConfiguration,
            message: "A durable default delivery needs a store. Set the configuration's store."
        )
    }
}

extension SessionClientConfiguration {
    /// Renews the metadata, and sees that a server takes it.
    var checkedRenewal: (@Sendable () async throws -> SessionMetadata)? {
        guard let renewMetadata else { return nil }
        return { [self] in
            let metadata = try await renewMetadata()
            try checkOpening(metadata)
            return metadata
        }
    }

    /// - Throws: `invalidConfiguration` when no server takes a hello with the metadata.
    func checkOpening(_ metadata: SessionMetadata) throws(ConnectionError) {
        guard metadata.count <= ClientOpening.maximumMetadataCount else {
            throw ConnectionError(
                code: .invalidConfiguration,
                message:
                    "The metadata of a session has \(metadata.count) entries, of "
                    + "\(ClientOpening.maximumMetadataCount) at most. Send what is more with a call."
            )
        }
        var fields: [UInt8] = []
        FieldWriter.metadataFields(metadata, field: 1, into: &fields)
        let length = name.utf8.count + fields.count
        guard length > ClientOpening.maximumNameAndMetadataByteCount else { return }
        throw ConnectionError(
            code: .invalidConfiguration,
            message:
                "The name and the metadata of a session take \(length) bytes, of "
                + "\(ClientOpening.maximumNameAndMetadataByteCount) at most. Send what is larger with a call."
        )
    }
}
