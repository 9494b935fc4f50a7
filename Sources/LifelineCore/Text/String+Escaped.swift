// Escapes a peer's text for a line in a log, in an error, or on a terminal. Every such text passes through here before
// it becomes part of a line.

extension String {
    /// Returns the text without characters that control a terminal, end a line, or change its reading order.
    ///
    /// The scalars of `Unicode.Scalar.isUnsafeInLine` become `\u{…}`. All others stay, including backslashes, so that
    /// escaping a text twice is the same as escaping it once.
    ///
    /// - Parameter limit: the most scalars to keep; "…" replaces the rest. The default, 1,000, fills some lines of a
    ///   terminal, far more than most errors need.
    package func escaped(limit: Int = 1_000) -> String {
        if utf8.count <= limit, utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return self }
        var result = ""
        for (count, scalar) in unicodeScalars.enumerated() {
            if count == limit { return result + "…" }
            if scalar.isUnsafeInLine {
                result += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Makes the escaped text of UTF-8 bytes. If they are not valid UTF-8, each byte that is not printable ASCII
    /// becomes `\x` and two digits.
    ///
    /// - Parameter limit: the most bytes to use; "…" replaces the rest.
    package init(escaping bytes: some Collection<UInt8>, limit: Int = 1_000) {
        let taken = bytes.prefix(limit)
        self =
            String(validating: taken, as: UTF8.self)?.escaped(limit: .max)
            ?? taken.map { (0x20...0x7E).contains($0) ? "\(Unicode.Scalar($0))" : "\\x" + hexadecimal($0) }.joined()
        if taken.endIndex != bytes.endIndex { self += "…" }
    }
}

private func hexadecimal(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }

extension Unicode.Scalar {
    /// Whether the scalar must be escaped in a line of text: C0 and C1 controls, DEL, the separators of lines and
    /// paragraphs, and the marks, embeddings, overrides and isolates of bidirectional text.
    package var isUnsafeInLine: Bool {
        switch value {
        case 0x00...0x1F, 0x7F...0x9F, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
