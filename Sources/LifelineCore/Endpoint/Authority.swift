/// The host and the port of a URL, without a user: `host`, `host:port`, `[address]` or `[address]:port`.
package struct Authority {
    /// The reason why a text cannot be split.
    package enum Problem: Error {
        /// More than one colon, and no brackets.
        case addressWithoutBrackets
        case unclosedBracket
        /// Something other than a colon follows the bracket.
        case unexpectedAfterBracket
    }

    /// The host, without brackets.
    package let host: Substring
    /// The text after the colon; nil if there is no colon.
    package let portText: Substring?

    /// The port; nil if `portText` is not a number from 0 to 65535.
    package var port: UInt16? {
        guard let portText, portText.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return UInt16(portText)
    }

    package init(_ text: Substring) throws(Problem) {
        let rest: Substring
        if text.first == "[" {
            guard let bracket = text.firstIndex(of: "]") else { throw .unclosedBracket }
            host = text[..<bracket].dropFirst()
            rest = text[bracket...].dropFirst()
            guard rest.first ?? ":" == ":" else { throw .unexpectedAfterBracket }
        } else {
            host = text.prefix { $0 != ":" }
            rest = text[host.endIndex...]
            if rest.dropFirst().contains(":") { throw .addressWithoutBrackets }
        }
        portText = rest.isEmpty ? nil : rest.dropFirst()
    }
}
