internal import ArgumentParser

/// A deliberate error in a receiver's record of one numbered message, to show that it is detected.
package enum Spoil: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// It is omitted.
    case drop
    /// It is recorded twice.
    case double
    /// It is recorded after the next one.
    case swap

    /// The numbers to record after a message arrived.
    package func numbers(for number: Int, spoiling victim: Int) -> [Int] {
        switch self {
        case .drop: number == victim ? [] : [number]
        case .double: number == victim ? [number, number] : [number]
        case .swap: number == victim ? [] : number == victim + 1 ? [number, victim] : [number]
        }
    }
}
