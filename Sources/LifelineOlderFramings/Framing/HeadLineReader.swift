internal import LifelineCore

/// Reads the JSON object of a head line, by the strict rules of `HeadLineFraming`. It takes one pass, linear time, and
/// a bounded stack.
struct HeadLineReader {
    /// The deepest nesting of skipped members' values: more than any head has, and little stack.
    static let maximumDepth = 32

    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    /// - Parameter bytes: the line without its CRLF.
    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    /// Reads the whole line. A size that does not fit into an `Int` becomes the greatest `Int`.
    mutating func read() throws(FramingError) -> (type: String, size: Int) {
        try checkUTF8()
        var type: String?
        var size: Int?
        var otherNames: Set<[UInt8]> = []
        skipSpace()
        try expect("{", or: "there is no JSON object")
        skipSpace()
        if !take("}") {
            repeat {
                skipSpace()
                let start = offset
                let name = try readString()
                try readColon()
                switch name {
                case Self.typeName where type == nil: type = String(decoding: try readString(), as: UTF8.self)
                case Self.sizeName where size == nil: size = try readSize()
                default:
                    // Compares bytes, because equal strings need not be the same name.
                    guard name != Self.typeName, name != Self.sizeName, otherNames.insert(name).inserted else {
                        throw .malformedHead("a member comes twice", at: start)
                    }
                    try skipValue(depth: 1)
                }
                skipSpace()
            } while take(",")
            try expect("}", or: "neither a comma nor the end of the object follows a member")
        }
        skipSpace()
        guard offset == bytes.count else { throw failure("something follows the object") }
        guard let type else { throw failure("the member \"type\" is missing") }
        guard let size else { throw failure("the member \"size\" is missing") }
        return (type, size)
    }

    private static let typeName = Array("type".utf8)
    private static let sizeName = Array("size".utf8)

    private func failure(_ reason: String) -> FramingError { .malformedHead(reason, at: offset) }

    private func checkUTF8() throws(FramingError) {
        guard bytes.contains(where: { $0 >= 0x80 }) else { return }
        if String(validating: bytes, as: UTF8.self) == nil { throw failure("the line is not valid UTF-8") }
    }
}

// Tokens.
extension HeadLineReader {
    private var current: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private mutating func skipSpace() {
        while let byte = current, Self.isSpace(byte) { offset += 1 }
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard current == UInt8(ascii: character) else { return false }
        offset += 1
        return true
    }

    private mutating func expect(_ character: Unicode.Scalar, or reason: String) throws(FramingError) {
        if !take(character) { throw failure(reason) }
    }

    /// Reads the colon after a name, and the space around it.
    private mutating func readColon() throws(FramingError) {
        skipSpace()
        try expect(":", or: "no colon follows a name")
        skipSpace()
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private mutating func takeDigits() -> Range<Int> {
        let start = offset
        while let byte = current, Self.isDigit(byte) { offset += 1 }
        return start..<offset
    }
}

// Values.
extension HeadLineReader {
    /// Reads a number, or a string with its digits.
    private mutating func readSize() throws(FramingError) -> Int {
        let start = offset
        let reason = "the size is not a whole number of bytes, without sign, exponent and leading zeros"
        if current == UInt8(ascii: "\"") {
            let digits = try readString()
            guard let size = Self.size(ofDigits: digits) else { throw .malformedHead(reason, at: start) }
            return size
        }
        let digits = takeDigits()
        guard let size = Self.size(ofDigits: bytes[digits]) else { throw .malformedHead(reason, at: start) }
        // `1.0` and `1e3`: no comma or brace follows the digits.
        if let byte = current, byte == UInt8(ascii: ".") || byte | 0x20 == UInt8(ascii: "e") {
            throw .malformedHead(reason, at: start)
        }
        return size
    }

    private static func size(ofDigits digits: some Collection<UInt8>) -> Int? {
        guard let first = digits.first, digits.allSatisfy(isDigit), digits.count == 1 || first != UInt8(ascii: "0")
        else { return nil }
        var size = 0
        for digit in digits {
            let (tens, overflow) = size.multipliedReportingOverflow(by: 10)
            let (sum, overflow2) = tens.addingReportingOverflow(Int(digit - UInt8(ascii: "0")))
            if overflow || overflow2 { return .max }
            size = sum
        }
        return size
    }

    /// Reads a string, as UTF-8.
    private mutating func readString() throws(FramingError) -> [UInt8] {
        try expect("\"", or: "a string is expected")
        var text: [UInt8] = []
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                offset += 1
                return text
            case UInt8(ascii: "\\"):
                offset += 1
                text += try readEscape().utf8
            case 0x00...0x1F:
                throw failure("a control character in a string is not escaped")
            default:
                text.append(byte)
                offset += 1
            }
        }
        throw failure("a string does not end")
    }

    /// Reads the characters after a reverse solidus.
    private mutating func readEscape() throws(FramingError) -> Unicode.Scalar {
        guard let byte = current else { throw failure("a string does not end") }
        let scalar: Unicode.Scalar
        switch Unicode.Scalar(byte) {
        case "\"", "\\", "/": scalar = Unicode.Scalar(byte)
        case "b": scalar = "\u{08}"
        case "f": scalar = "\u{0C}"
        case "n": scalar = "\n"
        case "r": scalar = "\r"
        case "t": scalar = "\t"
        case "u":
            offset += 1
            return try readEscapedScalar()
        default: throw failure("JSON has no such escape")
        }
        offset += 1
        return scalar
    }

    /// Reads the four digits after `\u`, and the second half of a surrogate pair if they are the first.
    private mutating func readEscapedScalar() throws(FramingError) -> Unicode.Scalar {
        let first = try readFourDigits()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard UTF16.isLeadSurrogate(first), take("\\"), take("u") else {
            throw failure("a surrogate stands alone")
        }
        let second = try readFourDigits()
        // Ten bits of each half, above the range of one code unit.
        let value = 0x1_0000 + (UInt32(first & 0x3FF) << 10 | UInt32(second & 0x3FF))
        guard UTF16.isTrailSurrogate(second), let scalar = Unicode.Scalar(value) else {
            throw failure("a surrogate stands alone")
        }
        return scalar
    }

    private mutating func readFourDigits() throws(FramingError) -> UInt16 {
        var value: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = current, let digit = Self.hexadecimalDigit(byte) else {
                throw failure("no four hexadecimal digits follow \\u")
            }
            value = value << 4 | digit
            offset += 1
        }
        return value
    }

    private static func hexadecimalDigit(_ byte: UInt8) -> UInt16? {
        let letter = byte | 0x20
        if isDigit(byte) { return UInt16(byte - UInt8(ascii: "0")) }
        return (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(letter) ? UInt16(letter - UInt8(ascii: "a") + 10) : nil
    }
}

// Unused values, which must be JSON nevertheless.
extension HeadLineReader {
    private mutating func skipValue(depth: Int) throws(FramingError) {
        guard let byte = current else { throw failure("a value is expected") }
        switch Unicode.Scalar(byte) {
        case "\"": _ = try readString()
        case "{": try skipMembers(until: "}", depth: depth)
        case "[": try skipMembers(until: "]", depth: depth)
        case "t": try skip("true")
        case "f": try skip("false")
        case "n": try skip("null")
        default: try skipNumber()
        }
    }

    /// Skips the elements of an array, or the members of an object, which have names.
    private mutating func skipMembers(until end: Unicode.Scalar, depth: Int) throws(FramingError) {
        guard depth <= Self.maximumDepth else { throw failure("values are nested over \(Self.maximumDepth) deep") }
        offset += 1
        skipSpace()
        if take(end) { return }
        repeat {
            skipSpace()
            if end == "}" {
                _ = try readString()
                try readColon()
            }
            try skipValue(depth: depth + 1)
            skipSpace()
        } while take(",")
        try expect(end, or: "neither a comma nor \(end) follows a value")
    }

    private mutating func skip(_ word: StaticString) throws(FramingError) {
        let end = offset + word.utf8CodeUnitCount
        guard end <= bytes.count, word.withUTF8Buffer({ bytes[offset..<end].elementsEqual($0) }) else {
            throw failure("a value is expected")
        }
        offset = end
    }

    private mutating func skipNumber() throws(FramingError) {
        _ = take("-")
        let whole = takeDigits()
        guard !whole.isEmpty else { throw failure("a value is expected") }
        guard whole.count == 1 || bytes[whole.lowerBound] != UInt8(ascii: "0") else {
            throw failure("a number has leading zeros")
        }
        if take("."), takeDigits().isEmpty { throw failure("no digits follow a decimal point") }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            if takeDigits().isEmpty { throw failure("an exponent has no digits") }
        }
    }
}
