/// The progress of a side with the other side's frames.
package struct Acknowledgement: Equatable, Sendable {
    /// The most ranges of a frame.
    package static let maximumRangeCount = 1_024

    /// Acknowledges every ordinary frame up to this place.
    package var ordinary: UInt64
    /// Acknowledges every urgent frame up to this place.
    package var urgent: UInt64
    /// Acknowledged places of ordinary frames above `ordinary`: ascending, with a gap before each range.
    package var ranges: [ClosedRange<UInt64>]

    package init(ordinary: UInt64 = 0, urgent: UInt64 = 0, ranges: [ClosedRange<UInt64>] = []) {
        self.ordinary = ordinary
        self.urgent = urgent
        self.ranges = ranges
    }

    /// Returns the number of ranges that fit into a frame of this length, besides the other fields.
    static func rangeLimit(frameLimit: Int) -> Int {
        // Two varints of up to ten bytes each; the other numbers, tags and lengths take less than 64 bytes.
        min(maximumRangeCount, (frameLimit - 64) / 20)
    }

    /// Parses the message of an acknowledgement frame.
    ///
    /// - Throws: `.undecodable` for malformed protobuf, and for ranges that break the rules
    package init(parsing body: UnsafeRawBufferPointer) throws(SessionViolation) {
        self.init()
        var numbers: [UInt64] = []
        var reader = FieldReader(body)
        while let tag = reader.next() {
            switch tag {
            case .varint(1): ordinary = reader.varint()
            case .varint(2): urgent = reader.varint()
            case .varint(3): try Self.append(reader.varint(), to: &numbers)
            case .delimited(3):
                // Packed or not: a protobuf reader accepts both.
                var packed = FieldReader(reader.bytesValue())
                while !packed.isAtEnd { try Self.append(packed.varint(), to: &numbers) }
                try packed.finish()
            default: reader.skip(tag)
            }
        }
        try reader.finish()
        ranges = try Self.ranges(numbers, above: ordinary)
    }

    /// Appends the frame with its length prefix.
    ///
    /// The ranges must be as the property describes, and at most 1,024.
    package func write(to bytes: inout [UInt8]) {
        precondition(ranges.count <= Self.maximumRangeCount, "an acknowledgement has too many ranges")
        FieldWriter.appendFrame(.acknowledgement, to: &bytes) { body in
            FieldWriter.appendField(1, ordinary, to: &body)
            FieldWriter.appendField(2, urgent, to: &body)
            guard !ranges.isEmpty else { return }
            FieldWriter.appendMessage(3, to: &body) { packed in
                var last = ordinary
                for range in ranges {
                    precondition(range.lowerBound > last && range.lowerBound - last > 1, "a range has no gap before it")
                    FieldWriter.appendVarint(range.lowerBound - last - 1, to: &packed)
                    FieldWriter.appendVarint(range.upperBound - range.lowerBound + 1, to: &packed)
                    last = range.upperBound
                }
            }
        }
    }

    private static func append(_ number: UInt64, to numbers: inout [UInt64]) throws(SessionViolation) {
        guard numbers.count < 2 * maximumRangeCount else {
            throw .undecodable("Its acknowledgement has more than \(maximumRangeCount) ranges.")
        }
        numbers.append(number)
    }

    /// Makes ranges from pairs of numbers: the skipped places, and the processed places that follow.
    private static func ranges(
        _ numbers: [UInt64],
        above ordinary: UInt64
    ) throws(SessionViolation) -> [ClosedRange<UInt64>] {
        guard numbers.count.isMultiple(of: 2) else { throw .undecodable("Its acknowledgement has half a range.") }
        var ranges: [ClosedRange<UInt64>] = []
        ranges.reserveCapacity(numbers.count / 2)
        var last = ordinary
        for index in stride(from: 0, to: numbers.count, by: 2) {
            let (skip, run) = (numbers[index], numbers[index + 1])
            guard skip > 0, run > 0 else { throw .undecodable("Its acknowledgement has an empty range or gap.") }
            let (before, isBeforeTooLarge) = last.addingReportingOverflow(skip)
            let (end, isEndTooLarge) = before.addingReportingOverflow(run)
            guard !isBeforeTooLarge, !isEndTooLarge else {
                throw .undecodable("Its acknowledgement has a place above 2⁶⁴.")
            }
            ranges.append(before + 1...end)
            last = end
        }
        return ranges
    }
}
