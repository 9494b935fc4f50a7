internal import ArgumentParser
internal import Lifeline

/// Whom a command that connects over TLS trusts, and what it shows.
struct ClientTLSArguments: ParsableArguments {
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

    @Option(help: "Show the server the certificate in this PEM file.", completion: .file())
    var certificate: String?

    @Option(help: "The PEM file with the certificate's private key.", completion: .file())
    var key: String?

    func validate(for endpoint: Endpoint) throws {
        if (certificate == nil) != (key == nil) { throw ValidationError("--certificate and --key go together.") }
        if trustPins, pin.isEmpty { throw ValidationError("--trust-pins needs --pin, which says whom to trust.") }
        if trustPins, ca != nil { throw ValidationError("Give --ca or --trust-pins, not both.") }
        let isUsed = !pin.isEmpty || ca != nil || certificate != nil
        if isUsed, !endpoint.isEncrypted {
            throw ValidationError("--pin, --ca, --certificate and --key are for endpoints tls:// and wss://.")
        }
    }

    var configuration: TLSClientConfiguration {
        var configuration = TLSClientConfiguration()
        configuration.pins = pin
        if trustPins { configuration.trust = .pinnedCertificates }
        if let ca { configuration.trust = .roots(.file(ca)) }
        if let certificate, let key {
            configuration.identity = TLSIdentity(certificateChain: .file(certificate), privateKey: .file(key))
        }
        return configuration
    }
}

/// What a command that listens over TLS shows, and whom it lets in.
struct ServerTLSArguments: ParsableArguments {
    @Option(
        help: "The PEM file with the server's certificate and those that lead to its root. Read again when it changes.",
        completion: .file()
    )
    var certificate: String?

    @Option(help: "The PEM file with the certificate's private key.", completion: .file())
    var key: String?

    @Option(
        help: "Let in only clients with a certificate of the authorities in this PEM file.",
        completion: .file()
    )
    var clientCA: String?

    func validate(for endpoint: Endpoint) throws {
        if endpoint.isEncrypted, certificate == nil || key == nil {
            throw ValidationError("\(endpoint) needs --certificate FILE and --key FILE.")
        }
        if !endpoint.isEncrypted, certificate != nil || key != nil || clientCA != nil {
            throw ValidationError("--certificate, --key and --client-ca are for endpoints tls:// and wss://.")
        }
    }

    var configuration: TLSServerConfiguration? {
        guard let certificate, let key else { return nil }
        let identity = TLSIdentity(certificateChain: .file(certificate), privateKey: .file(key))
        var configuration = TLSServerConfiguration(identity: identity)
        configuration.clientRoots = clientCA.map { [.file($0)] }
        return configuration
    }
}

@Sendable private func parsePin(_ text: String) throws -> CertificatePin {
    do throws(ConnectionError) {
        return try CertificatePin(text)
    } catch {
        throw ValidationError(error.message)
    }
}
