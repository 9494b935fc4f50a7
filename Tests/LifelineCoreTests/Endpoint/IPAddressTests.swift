import Glibc
import LifelineTestSupport
import Testing

@testable import LifelineCore

/// Compares with the operating system's parser and printer.
@Suite struct IPAddressTests {
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
        #expect(IPAddress(text)?.bytes == expected(text))
    }

    private func printed(_ address: IPAddress) -> String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        _ = inet_ntop(address.version == .v4 ? AF_INET : AF_INET6, address.bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    @Test func printsWhatTheSystemDoes() throws {
        var random = SeededGenerator(seed: 6)
        for _ in 0..<20_000 {
            // Mostly zeros, so that there are several runs of them. The first byte: glibc prints ::192.0.2.1 for
            // ::c000:201.
            let bytes = (0..<16).map {
                $0 > 0 && Int.random(in: 0..<3, using: &random) > 0 ? 0 : random.bytes(1)[0] | 1
            }
            for (version, bytes) in [(IPAddress.Version.v6, bytes), (.v4, Array(bytes[..<4]))] {
                let address = IPAddress(version: version, bytes: bytes.span.bytes)
                #expect(address?.description == address.map(printed))
            }
        }
        let mapped = try #require(IPAddress("::ffff:1.2.3.4"))
        #expect("\(mapped)" == printed(mapped))
    }

    @Test func readsWhatTheSystemDoesOfRandomTexts() {
        var random = SeededGenerator(seed: 5)
        let pieces = ["0", "1", "f", "::", ":", ":", ".", "255", "10", "abcd", "1.2.3.4", "0:0:0", "ffff", "256"]
        var readable = 0
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 1...12, using: &random))
                .map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            #expect(IPAddress(text)?.bytes == expected(text), "\(text)")
            if expected(text) != nil { readable += 1 }
        }
        #expect(readable > 100, "it is worth something only when some can be read")
    }

    @Test func prefixes() throws {
        let address = try #require(IPAddress("10.0.0.129"))
        for (other, shared) in [("10.0.0.128", 31), ("10.0.0.1", 24), ("138.0.0.129", 0), ("10.0.0.129", 32)] {
            let other = try #require(IPAddress(other))
            for length in 0...32 { #expect(address.sharesPrefix(of: length, with: other) == (length <= shared)) }
        }
        let long = try #require(IPAddress("2001:db8::8000:0:1"))
        for (other, shared) in [("2001:db8::8000:0:0", 127), ("2001:db8::1", 80), ("2001:db8:1::", 47), ("::", 2)] {
            let other = try #require(IPAddress(other))
            for length in 0...128 { #expect(long.sharesPrefix(of: length, with: other) == (length <= shared)) }
        }
        #expect(!address.sharesPrefix(of: 0, with: try #require(IPAddress("::"))))
        #expect(IPAddress("::ffff:10.0.0.129")?.unmapped == address)
        #expect(IPAddress("::fffe:10.0.0.129")?.unmapped.bytes.count == 16)
    }

    @Test(arguments: ["0.0.0.0", "192.0.2.255", "::", "::1", "2001:db8::2", "fe80::1:2:3:4", "::ffff:192.0.2.1"])
    func textFormIsRead(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect("\(address)" == text)
        #expect(IPAddress(version: address.version, bytes: address.bytes.span.bytes) == address)
    }

    @Test func otherNumbersOfBytesAreRefused() {
        for count in 0..<20 {
            let bytes = [UInt8](repeating: 1, count: count)
            #expect((IPAddress(version: .v4, bytes: bytes.span.bytes) != nil) == (count == 4))
            #expect((IPAddress(version: .v6, bytes: bytes.span.bytes) != nil) == (count == 16))
        }
    }

    @Test func addressesThatStandForOthers() throws {
        #expect(IPAddress("::ffff:192.0.2.1")?.unmapped == IPAddress("192.0.2.1"))
        #expect(IPAddress("::1")?.unmapped == IPAddress("::1"))
    }

    @Test(arguments: [
        ("169.254.0.1", true), ("169.253.255.255", false), ("fe80::1", true), ("febf::1", true), ("fec0::1", false),
    ])
    func linkLocal(text: String, expected: Bool) throws {
        #expect(try #require(IPAddress(text)).isLinkLocal == expected)
    }
}
