/// The numbers that this side has given to the methods that it calls.
package struct MethodNumbers: Sendable {
    /// The most methods of a direction: a peer keeps the name of each.
    package static var maximumCount: Int { 1_024 }

    /// By their numbers, from 1 on.
    private(set) var names: [String] = []
    private var numbers: [ExactName: UInt32] = [:]
    /// The number that was asked for last: a session often calls one method many times. Of a name in ASCII, which is
    /// equal to itself only.
    private var last: (name: String, number: UInt32) = ("", 0)

    package init() {}

    var count: Int { names.count }

    /// The name of a number that was given.
    func name(_ number: UInt32) -> String { names[Int(number) - 1] }

    /// The name of a number; nil where it was not given.
    func knownName(_ number: UInt32) -> String? {
        number >= 1 && number <= names.count ? name(number) : nil
    }

    /// The number of a method; nil where it has none yet.
    @inline(__always)
    mutating func number(of name: String) -> UInt32? {
        if last.number != 0, last.name == name { return last.number }
        guard let number = numbers[ExactName(name)] else { return nil }
        remember(name, number)
        return number
    }

    /// Gives a method the next number.
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
