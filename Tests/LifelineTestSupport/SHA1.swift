internal import Crypto

/// Returns a text's SHA-1 digest.
@Sendable
package func sha1(_ text: String) -> [UInt8] {
    Array(Insecure.SHA1.hash(data: Array(text.utf8)))
}
