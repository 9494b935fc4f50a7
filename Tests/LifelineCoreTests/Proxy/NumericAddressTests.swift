import Glibc
import LifelineTestSupport
import Testing

@testable import LifelineCore

/// The operating system's reader is the measure.
@Suite struct NumericAddressTests {
    private func expected(_ text: String) -> [UInt8]? {
        var v4 = in_addr()
        var v6 = in6_addr()
        if text.utf8.contains(0) { return nil }
        if inet_pton(AF_INET, text, &v4) == 1 { return withUnsafeBytes(of: v4) { Array($0) } }
        if inet_pton(AF_INET6, text, &v6) == 1 { return withUnsafeBytes(of: v6) { Array($0) } }
        return nil
    }

    @Test(arguments: [
        "127.0.0.1", "0.0.0.0", "255.255.255.255", "256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1..2.3", "1.2.3.4.",
        ".1.2.3.4", "+1.2.3.4", "1.2.3.0004", "", "::", "::1", "1::", ":1", "1:", ":::", "1:::2", "1::2::3",
        "fe80::1%eth0",
        "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8",
        "1:2:3:4::5:6:7:8", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3.4:5", "::1.2.3",
        "12345::", "g::", "-1::", "+1::", "::0001", "::00001", "ABCD::ef", "localhost", "1.2.3.4:80", "[::1]",
    ])
    func readsWhatTheSystemDoes(text: String) {
        #expect(NumericAddress(text)?.bytes == expected(text))
    }

    @Test func readsWhatTheSystemDoesOfRandomTexts() {
        var random = SeededGenerator(seed: 5)
        let pieces = ["0", "1", "f", "::", ":", ":", ".", "255", "10", "abcd", "1.2.3.4", "0:0:0", "ffff", "256"]
        var readable = 0
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 1...12, using: &random))
                .map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            #expect(NumericAddress(text)?.bytes == expected(text), "\(text)")
            if expected(text) != nil { readable += 1 }
        }
        #expect(readable > 100, "it is worth something only when some can be read")
    }

    @Test func prefixes() throws {
        let address = try #require(NumericAddress("10.0.0.129"))
        for (other, shared) in [("10.0.0.128", 31), ("10.0.0.1", 24), ("138.0.0.129", 0), ("10.0.0.129", 32)] {
            let other = try #require(NumericAddress(other))
            for length in 0...32 { #expect(address.sharesPrefix(of: length, with: other) == (length <= shared)) }
        }
        #expect(!address.sharesPrefix(of: 0, with: try #require(NumericAddress("::"))))
        #expect(NumericAddress("::ffff:10.0.0.129")?.unmapped == address)
        #expect(NumericAddress("::fffe:10.0.0.129")?.unmapped.bytes.count == 16)
    }
}
