internal import ArgumentParser
internal import Lifeline

/// The certificate that a command presents over TLS.
struct TLSIdentityArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The PEM file with the certificate to show, and those that lead to its root. Servers read it again when it "
                + "changes."
        ),
        completion: .file()
    )
    var certificate: String?

    @Option(help: "The PEM file with the certificate's private key.", completion: .file())
    var key: String?

    func validate() throws {
        if (certificate == nil) != (key == nil) { throw ValidationError("--certificate and --key go together.") }
    }

    var identity: TLSIdentity? {
        guard let certificate, let key else { return nil }
        return TLSIdentity(certificateChain: .file(certificate), privateKey: .file(key))
    }
}

/// Options for the servers that a command trusts over TLS.
struct TLSTrustArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Accept only a server whose chain has this key (sha256/BASE64) or certificate (its SHA-256 fingerprint). May be given several times.",
            valueName: "pin"
        ),
        transform: parsePin
    )
    var pin: [CertificatePin] = []

    @Flag(help: "Trust the pinned certificates and nobody else: for servers whose certificate nobody has issued.")
    var trustPins = false

    @Option(help: "Trust the certificate authorities in this PEM file, instead of the system's.", completion: .file())
    var ca: String?

    func validate() throws {
        if trustPins, pin.isEmpty { throw ValidationError("--trust-pins needs --pin, which says whom to trust.") }
        if trustPins, ca != nil { throw ValidationError("Give --ca or --trust-pins, not both.") }
    }

    var isGiven: Bool { !pin.isEmpty || ca != nil }

    func validate(with identity: TLSIdentityArguments, for endpoint: Endpoint) throws {
        if isGiven || identity.certificate != nil, !endpoint.isEncrypted {
            throw ValidationError("--pin, --ca, --certificate and --key are for endpoints tls:// and wss://.")
        }
    }

    /// - Parameter identity: the client's certificate.
    func configuration(showing identity: TLSIdentity?) -> TLSClientConfiguration {
        var configuration = TLSClientConfiguration()
        configuration.pins = pin
        if trustPins { configuration.trust = .pinnedCertificates }
        if let ca { configuration.trust = .roots(.file(ca)) }
        configuration.identity = identity
        return configuration
    }
}

/// Options for the clients that a command lets in over TLS.
struct TLSClientsArguments: ParsableArguments {
    @Option(
        help: "Let in only clients with a certificate of the authorities in this PEM file.",
        completion: .file()
    )
    var clientCA: String?

    func validate(with identity: TLSIdentityArguments, for endpoint: Endpoint) throws {
        if endpoint.isEncrypted, identity.certificate == nil {
            throw ValidationError("\(endpoint) needs --certificate FILE and --key FILE.")
        }
        if !endpoint.isEncrypted, identity.certificate != nil || clientCA != nil {
            throw ValidationError("--certificate, --key and --client-ca are for endpoints tls:// and wss://.")
        }
    }

    /// - Parameter identity: the server's certificate.
    func configuration(showing identity: TLSIdentityArguments) -> TLSServerConfiguration? {
        guard let identity = identity.identity else { return nil }
        var configuration = TLSServerConfiguration(identity: identity)
        configuration.clientRoots = clientCA.map { [.file($0)] }
        return configuration
    }
}

/// Options for the servers that a command trusts over TLS, and for its own certificate.
struct ClientTLSArguments: ParsableArguments {
    @OptionGroup var trust: TLSTrustArguments
    @OptionGroup var identity: TLSIdentityArguments

    func validate(for endpoint: Endpoint) throws { try trust.validate(with: identity, for: endpoint) }

    var configuration: TLSClientConfiguration { trust.configuration(showing: identity.identity) }
}

/// Options for the certificate of a command that listens over TLS, and for the clients that it lets in.
struct ServerTLSArguments: ParsableArguments {
    @OptionGroup var identity: TLSIdentityArguments
    @OptionGroup var clients: TLSClientsArguments

    func validate(for endpoint: Endpoint) throws { try clients.validate(with: identity, for: endpoint) }

    var configuration: TLSServerConfiguration? { clients.configuration(showing: identity) }
}

@Sendable private func parsePin(_ text: String) throws -> CertificatePin {
    do throws(ConnectionError) {
        return try CertificatePin(text)
    } catch {
        throw ValidationError(error.message)
    }
}
