import Testing

@testable import LifelineCodegen

@Suite struct SwiftLiteralTests {
    @Test(arguments: [
        ("", #""""#),
        ("plain ~", #""plain ~""#),
        (#"quote " and \"#, #""quote \" and \\""#),
        (#"\(1)"#, #""\\(1)""#),
        ("tab\t line\n return\r nul\0 delete\u{7F}", #""tab\u{9} line\u{a} return\u{d} nul\u{0} delete\u{7f}""#),
        ("é😀\u{2028}", #""\u{e9}\u{1f600}\u{2028}""#),
        ("e\u{301}", #""e\u{301}""#),
    ])
    func strings(text: String, literal: String) {
        #expect(SwiftLiteral.string(text) == literal)
    }

    @Test(
        arguments: [
            ("", []),
            ("abc", [0x61, 0x62, 0x63]),
            (#"\000\001\177\200\377"#, [0, 1, 0x7F, 0x80, 0xFF]),
            (#"\0001"#, [0, 0x31]),
            (#"\n\r\t\"\'\\"#, [10, 13, 9, 0x22, 0x27, 0x5C]),
            ("\\", [0x5C]),
        ] as [(String, [UInt8])]
    )
    func bytes(escaped: String, bytes: [UInt8]) {
        #expect(SwiftLiteral.unescaped(escaped) == bytes)
    }

    @Test(arguments: [
        ("1.5e+300", "1.5e+300"), ("3", "3"), ("-0", "-0.0"), ("0", "0"), ("inf", ".infinity"),
        ("-inf", "-.infinity"), ("nan", ".nan"), ("-nan", ".nan"),
        ("4.94065645841247e-324", "Double(bitPattern: 1)"), ("-4.94065645841247e-324", "-Double(bitPattern: 1)"),
    ])
    func floatingPoint(text: String, literal: String) throws {
        #expect(SwiftLiteral.floatingPoint(try #require(Double(text)), text, as: "Double") == literal)
    }
}
