internal import Lifeline
internal import LifelineCore

/// What a message of a scenario says: which one it is, and so many bytes that follow from it.
struct SessionNote: Equatable {
    /// Ascending over everything that is sent in a scenario.
    let number: Int
    /// Of a part of a response: which one, from 1 on; of a response: how many parts were accepted that have to come.
    var part = 0
    var fillerCount = 0

    var payload: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 + fillerCount)
        for shift in [0, 8, 16, 24] { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
        for shift in [0, 8, 16, 24] { bytes.append(UInt8(truncatingIfNeeded: part >> shift)) }
        for index in 0..<fillerCount { bytes.append(UInt8(truncatingIfNeeded: number &+ index)) }
        return bytes
    }

    init(_ number: Int, part: Int = 0, fillerCount: Int = 0) {
        (self.number, self.part, self.fillerCount) = (number, part, fillerCount)
    }

    /// Nil when the bytes are not those of a note.
    init?(_ content: SessionPayload) {
        let bytes = content.payload
        guard bytes.count >= 8 else { return nil }
        func read(_ start: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[start + $1]) << (8 * $1) } }
        self.init(read(0), part: read(4), fillerCount: bytes.count - 8)
        for (index, byte) in bytes.dropFirst(8).enumerated() where byte != UInt8(truncatingIfNeeded: number &+ index) {
            return nil
        }
    }
}
