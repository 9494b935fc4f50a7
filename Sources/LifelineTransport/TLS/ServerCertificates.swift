package import LifelineCore
internal import LifelineRuntime
package import Logging
internal import NIOConcurrencyHelpers
internal import NIOPosix
internal import NIOSSL

/// The certificate that a server presents to its clients, and the roots for theirs. Both are replaced together when
/// their files have changed.
package final class ServerCertificates: Sendable {
    /// The certificates for a connection, which keeps them when others are loaded.
    struct Loaded: Sendable {
        let context: NIOSSLContext
        /// Nil when no client is asked for a certificate.
        let clientVerifier: CertificateVerifier?
    }

    private struct State {
        var loaded: Loaded
        /// The stamps of the files before they were last read, whether they could be used or not.
        var stamps: [FileStamp?]
        var lastCheck: MonotonicTime
        var isChecking = false
    }

    private static let checkInterval = Duration.seconds(1)

    private let configuration: TLSServerConfiguration
    private let logger: Logger
    private let now: @Sendable () -> MonotonicTime
    private let state: NIOLockedValueBox<State>
    /// Held while files are read: one reading at a time, because an older one could otherwise replace the result of a
    /// newer one. Only threads that may block take it.
    private let reading = NIOLock()

    /// - Throws: `invalidConfiguration`.
    package init(
        _ configuration: TLSServerConfiguration,
        logger: Logger,
        now: @escaping @Sendable () -> MonotonicTime = MonotonicTime.now
    ) throws(ConnectionError) {
        self.configuration = configuration
        self.logger = logger
        self.now = now
        // Before the files are read, so that changes meanwhile are noticed at the next check.
        let stamps = Self.stamps(of: configuration)
        state = NIOLockedValueBox(State(loaded: try Self.load(configuration), stamps: stamps, lastCheck: now()))
    }

    var loaded: Loaded { state.withLockedValue { $0.loaded } }

    /// Whether the files are being checked.
    var isChecking: Bool { state.withLockedValue { $0.isChecking } }

    /// Returns the certificates for an accepted connection. Now and then checks in the background whether the files
    /// have changed.
    func forNextConnection() -> Loaded {
        let (loaded, startsCheck) = state.withLockedValue { state in
            let startsCheck = !state.isChecking && now() >= state.lastCheck + Self.checkInterval
            if startsCheck { state.isChecking = true }
            return (state.loaded, startsCheck)
        }
        if startsCheck { NIOThreadPool.singleton.submit { _ in self.reloadIfChanged() } }
        return loaded
    }

    /// Loads the files again if they have changed. It blocks, so do not call it on an event loop.
    package func reloadIfChanged() {
        do throws(ConnectionError) {
            if try reloadNow(onlyWhenChanged: true) {
                logger.notice("The certificate has changed and was loaded again")
            }
        } catch {
            logger.warning(
                "The certificate has changed and cannot be used; the one before stays in use",
                metadata: ["error": "\(error)"]
            )
        }
        state.withLockedValue { state in
            state.isChecking = false
            state.lastCheck = now()
        }
    }

    /// Loads the files again. Connections accepted from then on use the new ones.
    ///
    /// - Throws: `invalidConfiguration`: then the earlier ones stay in use.
    package func reload() async throws(ConnectionError) {
        do {
            _ = try await NIOThreadPool.singleton.runIfActive { try self.reloadNow(onlyWhenChanged: false) }
        } catch {
            throw error as? ConnectionError
                ?? ConnectionError(code: .ioError, message: "The certificate was not loaded again.", cause: error)
        }
    }

    /// Loads the files. Returns whether there was anything to load.
    private func reloadNow(onlyWhenChanged: Bool) throws(ConnectionError) -> Bool {
        reading.lock()
        defer { reading.unlock() }
        let stamps = Self.stamps(of: configuration)
        // Kept even when the files cannot be used, so that they are not tried again before they change again.
        let hasChanged = state.withLockedValue { state in
            defer { state.stamps = stamps }
            return state.stamps != stamps
        }
        guard hasChanged || !onlyWhenChanged else { return false }
        let loaded = try Self.load(configuration)
        state.withLockedValue { $0.loaded = loaded }
        return true
    }

    private static func load(_ configuration: TLSServerConfiguration) throws(ConnectionError) -> Loaded {
        let identity = try LoadedIdentity(configuration.identity)
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: [],
            privateKey: .privateKey(identity.privateKey)
        )
        tls.use(identity)
        try tls.offer(applicationProtocols: configuration.applicationProtocols)
        tls.restrict(to: configuration.minimumVersion)
        var verifier: CertificateVerifier?
        if let roots = configuration.clientRoots {
            // The verifier decides; this makes the certificate required, and tells clients the accepted authorities.
            tls.certificateVerification = .noHostnameVerification
            var certificates: [NIOSSLCertificate] = []
            for source in roots { certificates += try source.certificates() }
            tls.trustRoots = .certificates(certificates)
            tls.sendCANameList = true
            verifier = try CertificateVerifier(peer: .client, trust: .roots(roots), pins: [])
        }
        return Loaded(context: try NIOSSLContext.make(tls), clientVerifier: verifier)
    }

    private static func stamps(of configuration: TLSServerConfiguration) -> [FileStamp?] {
        let sources = [configuration.identity.certificateChain, configuration.identity.privateKey]
        return (sources + (configuration.clientRoots ?? [])).compactMap(\.path).map(FileStamp.init)
    }
}
