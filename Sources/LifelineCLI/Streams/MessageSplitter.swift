/// Splits text that arrives in pieces into the texts of single messages.
///
/// JSON values may follow each other with or without space between them, and may have several lines. In text format, a
/// line with `---` ends a message; the last one may lack it.
struct MessageSplitter {
    /// The text of a message, which may still be malformed.
    struct Piece: Equatable {
        let text: [UInt8]
        /// The number of its first line, from 1.
        let line: Int
    }

    /// The error for a message whose text is longer than the limit.
    struct TooLong: Error, Equatable {
        /// The number of the message's first line, from 1.
        let line: Int
    }

    private let form: TextForm
    private let limit: Int
    private var json = JSONState()
    /// The received part of the present message.
    private var text: [UInt8] = []
    /// The number of its first line.
    private var firstLine = 1
    /// The number of the line that is being read.
    private var line = 1
    /// The start of that line in `text`; for text format only.
    private var lineStart = 0

    /// - Parameter limit: the most bytes that the text of a message may have.
    init(_ form: TextForm, limit: Int) {
        self.form = form
        self.limit = limit
    }

    /// Appends the messages that end in `chunk`.
    mutating func split(_ chunk: [UInt8], into pieces: inout [Piece]) throws(TooLong) {
        switch form {
        case .json: try splitJSON(chunk, into: &pieces)
        case .text: try splitText(chunk, into: &pieces)
        }
    }

    /// Appends the message that ends with the input. A later chunk is another text; line numbers continue.
    mutating func finish(into pieces: inout [Piece]) {
        switch form {
        case .json:
            if !text.isEmpty { take(into: &pieces) }
            json = JSONState()
        case .text: if isSeparator(text[lineStart...]) || text.hasContent { takeText(into: &pieces) }
        }
    }

    private mutating func take(into pieces: inout [Piece]) {
        pieces.append(Piece(text: text, line: firstLine))
        text = []
    }

    private mutating func append(_ bytes: ArraySlice<UInt8>) throws(TooLong) {
        text += bytes
        if text.count > limit { throw TooLong(line: firstLine) }
    }
}

// MARK: - JSON

extension MessageSplitter {
    private mutating func splitJSON(_ chunk: [UInt8], into pieces: inout [Piece]) throws(TooLong) {
        // The start of the part of the message that is not yet in `text`.
        var start = 0
        for index in chunk.indices {
            let byte = chunk[index]
            if json.isScalar, byte.isSpace || byte == openBrace || byte == openBracket || byte == quote {
                try append(chunk[start..<index])
                take(into: &pieces)
                json = JSONState()
            }
            if json.isBetween {
                start = index
                firstLine = line
            }
            if json.ends(with: byte) {
                try append(chunk[start...index])
                take(into: &pieces)
                start = index + 1
            }
            if byte == newline { line += 1 }
        }
        if !json.isBetween { try append(chunk[start...]) }
    }
}

/// A place in a sequence of JSON values.
private struct JSONState {
    /// The number of open objects and arrays.
    private var depth = 0
    private var isInString = false
    /// Whether the previous byte is a backslash.
    private var isEscaped = false
    /// Whether the place is inside a number, true, false, null, or invalid JSON. This ends before the first space, or
    /// another value.
    private(set) var isScalar = false

    /// Whether the place is between values.
    var isBetween: Bool { depth == 0 && !isInString && !isScalar }

    /// Moves over a byte, and returns whether a value ends with it.
    mutating func ends(with byte: UInt8) -> Bool {
        if isInString {
            if isEscaped {
                isEscaped = false
            } else if byte == backslash {
                isEscaped = true
            } else if byte == quote {
                isInString = false
                return depth == 0
            }
            return false
        }
        switch byte {
        case quote: isInString = true
        case openBrace, openBracket: depth += 1
        case closeBrace, closeBracket:
            // An unmatched bracket is left to the parser, which reports it.
            depth = max(depth - 1, 0)
            return depth == 0 && !isScalar
        default: if depth == 0, !byte.isSpace { isScalar = true }
        }
        return false
    }
}

// MARK: - Text format

extension MessageSplitter {
    private mutating func splitText(_ chunk: [UInt8], into pieces: inout [Piece]) throws(TooLong) {
        var start = 0
        while let end = chunk[start...].firstIndex(of: newline) {
            try append(chunk[start...end])
            start = end + 1
            line += 1
            if isSeparator(text[lineStart...]) {
                takeText(into: &pieces)
            } else {
                lineStart = text.count
            }
        }
        try append(chunk[start...])
    }

    private mutating func takeText(into pieces: inout [Piece]) {
        if isSeparator(text[lineStart...]) { text.removeSubrange(lineStart...) }
        take(into: &pieces)
        (firstLine, lineStart) = (line, 0)
    }

    private func isSeparator(_ line: ArraySlice<UInt8>) -> Bool {
        line.starts(with: MessageTextEncoder.separator.utf8)
            && line.dropFirst(MessageTextEncoder.separator.utf8.count).allSatisfy(\.isSpace)
    }
}

extension [UInt8] {
    /// Whether there is anything besides space and comments.
    fileprivate var hasContent: Bool {
        var isInComment = false
        for byte in self where !byte.isSpace || byte == newline {
            if byte == newline {
                isInComment = false
            } else if byte == UInt8(ascii: "#") {
                isInComment = true
            } else if !isInComment {
                return true
            }
        }
        return false
    }
}

// MARK: - Characters

private let newline = UInt8(ascii: "\n")
private let quote = UInt8(ascii: "\"")
private let backslash = UInt8(ascii: "\\")
private let openBrace = UInt8(ascii: "{")
private let closeBrace = UInt8(ascii: "}")
private let openBracket = UInt8(ascii: "[")
private let closeBracket = UInt8(ascii: "]")

extension UInt8 {
    fileprivate var isSpace: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }
}
