/// Header fields of an HTTP message, in order. Names are compared without regard to case.
///
/// Values may be secrets, so descriptions have only the names.
public struct HTTPFields: Sendable, Hashable {
    package struct Field: Sendable, Hashable {
        package let name: String
        package let value: String
    }

    package private(set) var fields: [Field] = []

    /// Makes an empty list.
    public init() {}

    /// The names, in order; a repeated name occurs repeatedly.
    public var names: [String] { fields.map(\.name) }

    /// The values of all fields of this name.
    public func values(of name: String) -> [String] {
        fields.filter { HTTPFields.isEqual($0.name, name) }.map(\.value)
    }

    /// The value of a field. The values of several are joined with commas (RFC 9110, section 5.3). Nil when there is
    /// none.
    public subscript(name: String) -> String? {
        let values = values(of: name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Adds a field at the end.
    public mutating func append(_ value: String, named name: String) {
        fields.append(Field(name: name, value: value))
    }
}

extension HTTPFields: ExpressibleByDictionaryLiteral {
    /// Makes a list from names and values, in order.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }
}

extension HTTPFields: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The names.
    public var description: String { "\(names)" }
    /// The names.
    public var debugDescription: String { description }
    /// The names.
    public var customMirror: Mirror { Mirror(self, children: ["names": names]) }
}

extension HTTPFields {
    /// Returns the elements of a comma-separated list, over all fields of this name (RFC 9110, section 5.6.1).
    func elements(of name: String) -> [Substring] {
        values(of: name).flatMap { $0.split(separator: ",").map(HTTPFields.trimmed) }.filter { !$0.isEmpty }
    }

    /// Returns whether a list has an element, without regard to case.
    func hasElement(_ element: String, in name: String) -> Bool {
        elements(of: name).contains { HTTPFields.isEqual($0, element) }
    }

    static func isEqual(_ first: some StringProtocol, _ second: some StringProtocol) -> Bool {
        first.utf8.elementsEqual(second.utf8) { lowercased($0) == lowercased($1) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    static func trimmed(_ text: Substring) -> Substring {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        guard let last = text.lastIndex(where: { !isSpace($0) }) else { return "" }
        return text[...last].drop(while: isSpace)
    }

    /// Returns whether a text is a token (RFC 9110, section 5.6.2), as names of fields and of subprotocols must be.
    static func isToken(_ text: some StringProtocol) -> Bool {
        let others = "!#$%&'*+-.^_`|~".utf8
        return !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: others.contains(byte)
                }
            }
    }

    /// Returns whether a text can be the value of a field: it has no control characters, so it cannot end the line.
    static func isValue(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 == 0x09 || (0x20...0x7E).contains($0) || $0 >= 0x80 }
    }
}
