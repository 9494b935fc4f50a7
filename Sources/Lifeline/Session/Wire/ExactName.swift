/// A method's name, compared byte by byte: Swift strings are equal when they are canonically equivalent.
package struct ExactName: Hashable, Sendable {
    package let name: String

    package init(_ name: String) { self.name = name }

    package static func == (first: ExactName, second: ExactName) -> Bool {
        first.name.utf8.elementsEqual(second.name.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        var name = name
        name.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
