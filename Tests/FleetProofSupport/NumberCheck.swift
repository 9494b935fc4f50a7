/// The numbers 1, 2, 3… of one sender that one receiver gets: it finds missing, doubled and reordered ones.
package struct NumberCheck: Codable, Hashable, Sendable {
    /// How many numbers arrived, each counted once.
    package private(set) var count = 0
    /// The highest received number.
    package private(set) var last = 0
    /// Numbers below the last one that have not arrived.
    package private(set) var missing: [ClosedRange<Int>] = []
    /// The same, if the receiver was told that they may be missing.
    package private(set) var missingAsTold: [ClosedRange<Int>] = []
    package private(set) var doubled: [Int] = []
    package private(set) var reordered: [Int] = []

    package init() {}

    /// A number came.
    ///
    /// - Parameter isGapTold: whether the receiver was told that numbers right before this one may be missing.
    package mutating func receive(_ number: Int, isGapTold: Bool = false) {
        if number > last {
            if number > last + 1 {
                let gap = last + 1...number - 1
                if isGapTold { missingAsTold.append(gap) } else { missing.append(gap) }
            }
            last = number
            count += 1
        } else if Self.take(number, from: &missing) || Self.take(number, from: &missingAsTold) {
            reordered.append(number)
            count += 1
        } else {
            doubled.append(number)
        }
    }

    /// The missing numbers, as ranges.
    ///
    /// - Parameters:
    ///   - end: the last number that was sent.
    ///   - isEndTold: whether the receiver was told that numbers after the last received one may be missing.
    ///   - excused: numbers that the sender may or may not have sent.
    package func lost(of end: Int, isEndTold: Bool = false, except excused: Set<Int> = []) -> [[Int]] {
        let gaps = missing + (end > last && !isEndTold ? [last + 1...end] : [])
        return gaps.map { $0.filter { !excused.contains($0) } }.filter { !$0.isEmpty }
    }

    /// How many numbers are missing and were reported to the receiver.
    package func toldCount(of end: Int, isEndTold: Bool) -> Int {
        missingAsTold.reduce(0) { $0 + $1.count } + (isEndTold ? max(end - last, 0) : 0)
    }

    private static func take(_ number: Int, from gaps: inout [ClosedRange<Int>]) -> Bool {
        guard let index = gaps.firstIndex(where: { $0.contains(number) }) else { return false }
        let gap = gaps[index]
        let below = gap.lowerBound < number ? [gap.lowerBound...number - 1] : []
        let above = gap.upperBound > number ? [number + 1...gap.upperBound] : []
        gaps.replaceSubrange(index...index, with: below + above)
        return true
    }
}
