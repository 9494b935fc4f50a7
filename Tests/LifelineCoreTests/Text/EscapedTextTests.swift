import LifelineCore
import Testing

@Suite struct EscapedTextTests {
    @Test func lettersStay() {
        for text in ["", "Hello, \"you\" \\ ~", "Grüezi 👩‍🚀", "שלום", "\u{a0}\u{200d}\u{feff}"] {
            #expect(text.escaped() == text)
        }
    }

    @Test func nothingIsObeyed() {
        #expect("a\u{1b}[2J\u{7}\u{9b}\r\nb\u{7f}".escaped() == #"a\u{1b}[2J\u{7}\u{9b}\u{d}\u{a}b\u{7f}"#)
        #expect("\u{2028}x\u{2029}\t".escaped() == #"\u{2028}x\u{2029}\u{9}"#)
        #expect("\u{202e}txt.\u{2066}exe\u{61c}\u{200f}".escaped() == #"\u{202e}txt.\u{2066}exe\u{61c}\u{200f}"#)
    }

    /// Line by line, as in the documentation.
    @Test func everyScalarIsDecided() {
        let unsafe: [ClosedRange<UInt32>] = [
            0x00...0x1F, 0x7F...0x9F, 0x61C...0x61C, 0x200E...0x200F, 0x2028...0x2029, 0x202A...0x202E, 0x2066...0x2069,
        ]
        for scalar in (0...0x10FFFF as ClosedRange<UInt32>).compactMap(Unicode.Scalar.init) {
            let isUnsafe = unsafe.contains { $0.contains(scalar.value) }
            if scalar.isUnsafeInLine != isUnsafe { Issue.record("\(scalar.value)") }
        }
    }

    @Test func escapingTwiceIsEscapingOnce() {
        let once = "\u{1b}[31m \\u{1b}\u{202e}".escaped()
        #expect(once.escaped() == once)
    }

    /// A letter may have any number of combining marks. Each of them counts.
    @Test func longTextsAreCut() {
        #expect("abcdef".escaped(limit: 6) == "abcdef")
        #expect("abcdefg".escaped(limit: 6) == "abcdef…")
        #expect("\n\n\n".escaped(limit: 2) == #"\u{a}\u{a}…"#)
        let marked = "e" + String(repeating: "\u{301}", count: 100_000)
        #expect(marked.escaped().unicodeScalars.count == 1_001)
        #expect(String(escaping: Array("abc".utf8), limit: 2) == "ab…")
    }

    @Test func bytesThatAreNoText() {
        #expect(String(escaping: Array("Grüezi\u{9b}".utf8)) == #"Grüezi\u{9b}"#)
        #expect(String(escaping: [0x41, 0x9B, 0xFF, 0x0A, 0x42]) == #"A\x9b\xff\x0aB"#)
        #expect(String(escaping: []) == "")
    }

    /// Errors and answers that contain text of a peer.
    @Test func errorsEscape() {
        struct Foreign: Error, CustomStringConvertible { let description = "x\u{1b}[2J\n" }
        #expect(
            "\(ConnectionError(code: .ioError, message: "m.", cause: Foreign()))".hasSuffix(#"Cause: x\u{1b}[2J\u{a}"#)
        )
        let closure = WebSocketClosure(.internalError, reason: "bye\u{202e}\u{9b}")
        #expect("\(closure)".hasSuffix(#""bye\u{202e}\u{9b}""#) && closure.reason == "bye\u{202e}\u{9b}")
        #expect(ConnectionError.webSocketClosed(closure).message.contains(#"bye\u{202e}\u{9b}"#))
        #expect(WebSocketRefusal(status: 500, reason: "no\u{2028}").reason == #"no\u{2028}"#)
        #expect("\(WebSocketCredentials(user: "a\u{1b}", password: "p"))".contains(#"a\u{1b}"#))
        #expect("\(Endpoint.unix(path: "/tmp/a\nb"))" == #"unix:///tmp/a\u{a}b"#)
    }
}
