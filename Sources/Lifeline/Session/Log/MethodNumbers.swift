/// The numbers of the methods that this side calls.
package struct MethodNumbers: Sendable {
    /// The most methods of a direction, because a peer keeps the name of each.
    package static var maximumCount: Int { 1_024 }

    /// The names by number, from 1 on.
    private(set) var names: [String] = []
    private var numbers: [ExactName: UInt32] = [:]
    /// The number that was looked up last, because a session often calls one method many times. Only for a name in
    /// ASCII, which equals only itself.
    private var last: (name: String, number: UInt32) = ("", 0)

    package init() {}

    var count: Int { names.count }

    /// Returns the name for an assigned number.
    func name(_ number: UInt32) -> String { names[Int(number) - 1] }

    /// Returns the name for a number; nil if it is not assigned.
    func knownName(_ number: UInt32) -> String? {
        number >= 1 && number <= names.count ? name(number) : nil
    }

    /// Returns the number of a method; nil if it has none yet.
    @inline(__always)
    mutating func number(of name: String) -> UInt32? {
        if last.number != 0, last.name == name { return last.number }
        guard let number = numbers[ExactName(name)] else { return nil }
        remember(name, number)
        return number
    }

    /// Assigns the next number to a method.
    mutating func add(_ name: String) -> UInt32 {
        names.append(name)
        let number = UInt32(names.count)
        numbers[ExactName(name)] = number
        remember(name, number)
        return number
    }

    private mutating func remember(_ name: String, _ number: UInt32) {
        if name.utf8.allSatisfy({ $0 < 0x80 }) { last = (name, number) }
    }
}
