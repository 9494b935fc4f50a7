/// Why nothing can be generated: what is wrong, where, and what to do about it.
package struct GeneratorError: Error, Hashable, CustomStringConvertible {
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}
