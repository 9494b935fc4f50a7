/// The set of a sender's processed durable messages, by their numbers from 1 on.
///
/// Messages are processed nearly in order, so there are few gaps: one for each slow message. Adding and finding a
/// number takes logarithmic time, and moves the ranges after a new gap.
package struct ReceivedNumbers: Equatable, Sendable {
    /// All numbers up to this one were processed, or will never come.
    package private(set) var floor: UInt64 = 0
    /// The ranges above the floor, ascending, with gaps between them.
    private var ranges: [ClosedRange<UInt64>] = []

    package init() {}

    package var gapCount: Int { ranges.count }

    package func contains(_ number: UInt64) -> Bool {
        if number <= floor { return true }
        let index = firstIndex(endingFrom: number)
        return index < ranges.count && ranges[index].contains(number)
    }

    /// Adds a processed message.
    package mutating func insert(_ number: UInt64) {
        guard number > floor else { return }
        if number == floor + 1 { return raiseFloor(to: number) }
        // The first range that the number is in, or in front of.
        let index = firstIndex(endingFrom: number)
        if index < ranges.count, ranges[index].contains(number) { return }
        let continues = index > 0 && ranges[index - 1].upperBound == number - 1
        let precedes = index < ranges.count && ranges[index].lowerBound == number + 1
        switch (continues, precedes) {
        case (true, true):
            ranges[index - 1] = ranges[index - 1].lowerBound...ranges[index].upperBound
            ranges.remove(at: index)
        case (true, false): ranges[index - 1] = ranges[index - 1].lowerBound...number
        case (false, true): ranges[index] = number...ranges[index].upperBound
        case (false, false): ranges.insert(number...number, at: index)
        }
    }

    /// Notes that no more numbers up to this one will come.
    package mutating func raiseFloor(to number: UInt64) {
        guard number > floor else { return }
        floor = number
        var index = 0
        // No range begins at 0.
        while index < ranges.count, ranges[index].lowerBound - 1 <= floor {
            floor = max(floor, ranges[index].upperBound)
            index += 1
        }
        ranges.removeFirst(index)
    }

    /// Returns the index of the first range that ends at or after a number.
    private func firstIndex(endingFrom number: UInt64) -> Int {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

// The stored form: varints of the floor, and for each range the numbers that it skips and those that it has.
extension ReceivedNumbers {
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        FieldWriter.appendVarint(floor, to: &bytes)
        var end = floor
        for range in ranges {
            FieldWriter.appendVarint(range.lowerBound - end - 1, to: &bytes)
            FieldWriter.appendVarint(range.upperBound - range.lowerBound + 1, to: &bytes)
            end = range.upperBound
        }
        return bytes
    }

    /// Reads the stored form; nil if it is damaged.
    package init?(bytes: [UInt8]) {
        let isWhole = bytes.withUnsafeBytes { bytes in
            var reader = FieldReader(bytes)
            floor = reader.varint()
            var end = floor
            while !reader.isAtEnd {
                let (gap, count) = (reader.varint(), reader.varint())
                let (first, overflows) = end.addingReportingOverflow(gap)
                let (last, overflowsToo) = first.addingReportingOverflow(count)
                guard gap > 0, count > 0, !overflows, !overflowsToo else { return false }
                ranges.append(first + 1...last)
                end = last
            }
            return !reader.hasFailed
        }
        if !isWhole { return nil }
    }
}
