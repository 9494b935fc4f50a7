internal import ArgumentParser

/// What a receiver notes wrongly on purpose of one numbered message, to see that it is found.
package enum Spoil: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// It is left out.
    case drop
    /// It is noted twice.
    case double
    /// It is noted behind the one that comes next.
    case swap

    /// The numbers to note when one has come.
    package func numbers(for number: Int, spoiling victim: Int) -> [Int] {
        switch self {
        case .drop: number == victim ? [] : [number]
        case .double: number == victim ? [number, number] : [number]
        case .swap: number == victim ? [] : number == victim + 1 ? [number, victim] : [number]
        }
    }
}
