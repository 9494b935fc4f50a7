/// A method's name, which is another one where a byte differs: strings count as equal where they look alike.
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
