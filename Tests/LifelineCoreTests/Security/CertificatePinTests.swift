import LifelineCore
import LifelineTestSupport
import Testing

@Suite struct CertificatePinTests {
    /// RFC 7469, section 2.1.5, and the SHA-256 digest of nothing.
    @Test(arguments: [
        "sha256/d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM=", "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    ]) func readsAKeysPin(text: String) throws {
        let pin = try CertificatePin(text)
        #expect(pin.kind == .publicKey)
        #expect(pin.description == text)
        #expect(try CertificatePin(text.replacing("sha256/", with: "sha256//")) == pin, "as curl writes it")
    }

    @Test func knowsTheBytes() throws {
        let pin = try CertificatePin("sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
        let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        let ofCertificate = try CertificatePin(digest)
        #expect(ofCertificate.kind == .certificate)
        #expect(ofCertificate.digest == pin.digest)
        #expect(ofCertificate != pin)
        #expect(ofCertificate.description == digest)
        #expect(pin.digest.prefix(4) == [0xE3, 0xB0, 0xC4, 0x42])
    }

    @Test func readsAFingerprintWithColons() throws {
        let text = (0..<32).map { $0 % 2 == 0 ? "0A" : "ff" }.joined(separator: ":")
        #expect(try CertificatePin(text).digest == (0..<32).map { $0 % 2 == 0 ? 0x0A : 0xFF })
    }

    @Test func readsWhatItWrites() throws {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<1000 {
            let digest = random.bytes(32)
            for kind in [CertificatePin.Kind.publicKey, .certificate] {
                let pin = CertificatePin(kind: kind, digest: digest)
                #expect(try CertificatePin(pin.description) == pin)
                #expect(try CertificatePin(pin.description.replacing("sha256/", with: "sha256//")) == pin)
            }
        }
    }

    @Test(arguments: [
        "", "sha256/", "sha256//", "sha1/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF==",
        "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=", "sha256/47DEQpj8HBSa-_TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "sha256///47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8", String(repeating: "g", count: 64),
        (0..<32).map { _ in "0A" }.joined(separator: "-"), String(repeating: "é", count: 32),
    ]) func refusesTheRest(text: String) {
        let error = #expect(throws: ConnectionError.self) { try CertificatePin(text) }
        #expect(error?.code == .invalidConfiguration)
    }
}
