internal import Crypto

/// A Lua script that Redis runs as one step.
package struct RedisScript: Sendable, Hashable {
    package let source: String
    /// The SHA-1 digest of the source in hexadecimal digits, by which Redis knows a script that it has run before.
    package let digest: String

    package init(_ source: String) {
        self.source = source
        let digits = Array("0123456789abcdef".utf8)
        let digest = Insecure.SHA1.hash(data: Array(source.utf8)).flatMap {
            [digits[Int($0 >> 4)], digits[Int($0 & 15)]]
        }
        self.digest = String(decoding: digest, as: UTF8.self)
    }
}
