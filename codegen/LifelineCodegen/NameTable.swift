/// The names in a table: see LifelineNames in lifeline_table.h.
struct NameTable {
    private var text = ""
    private var names: [(offset: Int, count: Int)] = []
    /// See LifelineNames.
    private let order: [Int]

    init(_ names: [String]) {
        // By their bytes: strings with different bytes may be equal.
        var offsets: [[UInt8]: Int] = [:]
        var byteCount = 0
        for name in names {
            if offsets[Array(name.utf8)] == nil {
                offsets[Array(name.utf8)] = byteCount
                // The string literal ends the last name.
                text += (text.isEmpty ? "" : "\\000") + name.utf8.cLiteral
                byteCount += name.utf8.count + 1
            }
            self.names.append((offsets[Array(name.utf8)] ?? 0, name.utf8.count))
        }
        // The names at even indices, and those at odd ones.
        var seen: [Set<[UInt8]>] = [[], []]
        order = names.indices.filter { index in
            let isFirst = seen[index % 2].insert(Array(names[index].utf8)).inserted
            let isSecondOfTwo = index % 2 == 1 && names[index - 1].utf8.elementsEqual(names[index].utf8)
            return isFirst && !isSecondOfTwo
        }.sorted {
            let (left, right) = (names[$0].utf8, names[$1].utf8)
            if left.count != right.count { return left.count < right.count }
            return left.elementsEqual(right) ? $0 % 2 < $1 % 2 : left.lexicographicallyPrecedes(right)
        }
    }

    /// Defines the arrays that ``value(as:)`` refers to.
    func print(as prefix: String, to printer: inout SourcePrinter) {
        let entries = names.map { "{\($0.offset), \($0.count)}" }.joined(separator: ", ")
        let order = order.map(String.init).joined(separator: ", ")
        printer.print(
            "static const char \(prefix)__name_text[] = \"\(text)\";",
            "static const LifelineName \(prefix)__name_entries[] = {\(entries)};",
            "static const uint32_t \(prefix)__name_order[] = {\(order)};"
        )
    }

    /// An initializer of a LifelineNames.
    func value(as prefix: String) -> String {
        "{.text = \(prefix)__name_text, .names = \(prefix)__name_entries, .order = \(prefix)__name_order, "
            + ".order_count = \(order.count)}"
    }
}

extension Sequence<UInt8> {
    /// As a part of a C string literal.
    var cLiteral: String {
        map { byte in
            let isPlain = (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
            if isPlain && byte != UInt8(ascii: "?") { return String(Unicode.Scalar(byte)) }
            // Three digits, so that a digit after them is not read as a part.
            let octal = String(byte, radix: 8)
            return "\\" + String(repeating: "0", count: 3 - octal.count) + octal
        }.joined()
    }
}
