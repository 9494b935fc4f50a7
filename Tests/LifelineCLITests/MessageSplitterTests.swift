import Testing

@testable import LifelineCLI

/// Text that is split into messages.
@Suite struct MessageSplitterTests {
    /// The messages in `text`, which arrives in chunks of `length` bytes.
    private func pieces(
        _ form: TextForm,
        _ text: String,
        length: Int = .max,
        limit: Int = 1000
    ) throws -> [MessageSplitter.Piece] {
        var splitter = MessageSplitter(form, limit: limit)
        var pieces: [MessageSplitter.Piece] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            try splitter.split(Array(rest.prefix(length)), into: &pieces)
            rest = rest.dropFirst(length)
        }
        splitter.finish(into: &pieces)
        return pieces
    }

    private func expect(_ form: TextForm, _ text: String, _ expected: [(String, line: Int)]) throws {
        let expected = expected.map { MessageSplitter.Piece(text: Array($0.0.utf8), line: $0.line) }
        for length in [1, 2, 3, 7, .max] {
            #expect(try pieces(form, text, length: length) == expected, "\(text) by \(length)")
        }
    }

    @Test func jsonValuesMayFollowEachOtherInAnyWay() throws {
        try expect(.json, "", [])
        try expect(.json, " \n\t\r\n", [])
        try expect(.json, "{}", [("{}", 1)])
        try expect(.json, "{}\n{}\n", [("{}", 1), ("{}", 2)])
        try expect(.json, "{}{} {}", [("{}", 1), ("{}", 1), ("{}", 1)])
        try expect(.json, "\n{\n\"a\": [\n{}]\n}\n\n[1]", [("{\n\"a\": [\n{}]\n}", 2), ("[1]", 7)])
    }

    @Test func bracesInStringsEndNothing() throws {
        try expect(.json, #"{"}": "\"}", "{": "\\"}{}"#, [(#"{"}": "\"}", "{": "\\"}"#, 1), ("{}", 1)])
        try expect(.json, #""a\"b" "c""#, [(#""a\"b""#, 1), (#""c""#, 1)])
    }

    @Test func otherValuesEndBeforeSpaceOrAValue() throws {
        try expect(.json, "1 true\nnull", [("1", 1), ("true", 1), ("null", 2)])
        try expect(.json, "1{}2\"a\"3[]", [("1", 1), ("{}", 1), ("2", 1), ("\"a\"", 1), ("3", 1), ("[]", 1)])
    }

    @Test func malformedJSONIsLeftToTheParser() throws {
        try expect(.json, "}{}", [("}", 1), ("{}", 1)])
        try expect(.json, "a}b {}", [("a}b", 1), ("{}", 1)])
        try expect(.json, "{\"a\": 1", [("{\"a\": 1", 1)])
        try expect(.json, "\n\"a", [("\"a", 2)])
    }

    @Test func aLineOfDashesEndsATextMessage() throws {
        try expect(.text, "", [])
        try expect(.text, "a: 1\n---\nb: 2\n---\n", [("a: 1\n", 1), ("b: 2\n", 3)])
        try expect(.text, "a: 1\n--- \r\n\nb: 2", [("a: 1\n", 1), ("\nb: 2", 3)])
        try expect(.text, "---\n---\n---", [("", 1), ("", 2), ("", 3)])
        try expect(.text, "a: \"---\"\n ---\n----\n", [("a: \"---\"\n ---\n----\n", 1)])
    }

    @Test func commentsBehindTheLastMessageAreNone() throws {
        try expect(.text, "a: 1\n---\n\n# the end\n", [("a: 1\n", 1)])
        try expect(.text, "# first\na: 1\n", [("# first\na: 1\n", 1)])
    }

    @Test func aTextOverTheLimitIsAnError() throws {
        let limit = 10
        for form in TextForm.allCases {
            let text = form == .json ? "{}\n[12345678]{}" : "---\n123456789\n"
            for length in [1, 4, .max] {
                #expect(throws: Never.self) { try pieces(form, text, length: length, limit: limit) }
                #expect(throws: MessageSplitter.TooLong(line: 2)) {
                    try pieces(form, text, length: length, limit: limit - 1)
                }
            }
        }
    }
}
