public import LifelineMessages
internal import LifelineTransport

/// How the client of a session behaves.
public struct SessionClientConfiguration: Sendable {
    /// The settings of the client's connections. The session's own pings watch the peer. `sendQueue` is ignored,
    /// because the session has its own queue.
    public var client = ClientConfiguration()

    /// The name by which the server finds the session (`SessionServer.session(named:)`); empty for none. Name and
    /// `metadata` together may have at most 16 KiB in encoded form. Default: empty.
    public var name = ""

    /// The metadata that the server receives with each connection, to decide whether to let the client in: credentials,
    /// for example. Default: empty.
    public var metadata: SessionMetadata = [:]

    /// Called before each connection for metadata that replaces `metadata`: a fresh token, for example. Its time counts
    /// for the attempt. An error fails the attempt, which is repeated like any other. Nil keeps `metadata`. Default:
    /// nil.
    public var renewMetadata: (@Sendable () async throws -> SessionMetadata)?

    /// Keeps durable messages, and the numbers of the server's processed ones, over a restart of this process. Only one
    /// client may use it at a time. Nil keeps nothing. Default: nil.
    public var store: (any SessionStore)?

    /// The most bytes of durable messages that are kept; further pushes wait. Default: 1 GiB.
    public var maximumStoredByteCount = 1 << 30

    /// The delivery of pushes and unary calls that name none: `reliable`, or `durable`, which needs a `store`. Streams
    /// are reliable in any case. Default: `reliable`.
    public var defaultDelivery = SessionDelivery.reliable

    /// The limits of what is kept for the server, and accepted from it.
    public var limits = SessionLimits()

    /// How long `close()` waits until the server has processed everything. Default: 10 s, as a server waits for its
    /// handlers when it shuts down.
    public var closeTimeout = Duration.seconds(10)

    /// The longest pause before the next connection that a departing server may ask for. Default: 5 min, the time of
    /// several restarts of a server. Values below 0 count as 0. `SessionClient.reconnect()` and the network's return
    /// end a pause early.
    public var maximumPause = Duration.seconds(300)

    /// The limits for messages in replies and pushes.
    public var decodingOptions: DecodingOptions {
        get { client.connection.decodingOptions }
        set { client.connection.decodingOptions = newValue }
    }

    /// Makes a configuration with the default values.
    public init() {}
}

extension SessionDelivery {
    /// - Throws: `invalidConfiguration` when it cannot be the default of all pushes and calls.
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
    /// Renews the metadata, and checks that a server accepts it.
    var checkedRenewal: (@Sendable () async throws -> SessionMetadata)? {
        guard let renewMetadata else { return nil }
        return { [self] in
            let metadata = try await renewMetadata()
            try checkOpening(metadata)
            return metadata
        }
    }

    /// - Throws: `invalidConfiguration` when no server accepts a hello with the metadata.
    func checkOpening(_ metadata: SessionMetadata) throws(ConnectionError) {
        guard metadata.count <= ClientOpening.maximumMetadataCount else {
            throw ConnectionError(
                code: .invalidConfiguration,
                message:
                    "The metadata of a session has \(metadata.count) entries, of "
                    + "\(ClientOpening.maximumMetadataCount) at most. Send the rest with a call."
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
                + "\(ClientOpening.maximumNameAndMetadataByteCount) at most. Send larger values with a call."
        )
    }
}
