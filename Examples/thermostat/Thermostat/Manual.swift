internal import LifelineOlderFramings

/// The numbers in the device's manual.
enum Manual {
    /// The request for the temperature. The answer's content is a temperature.
    static let temperature: UInt32 = 0x500
    /// The request to heat up to the temperature in its content.
    static let setTarget: UInt32 = 0x501
    /// The push that says that the room has the target's temperature, which is its content.
    static let targetReached: UInt32 = 7

    /// The status of an answer.
    enum Status {
        static let ok: UInt32 = 0
        /// The device was switched on, and has not been told a target since.
        static let noTarget: UInt32 = 1
        /// The target is over 30 °C or under 5 °C.
        static let outOfRange: UInt32 = 2
        static let unknownRequest: UInt32 = 3
    }
}

/// A temperature as the device writes it: hundredths of a degree Celsius, in four bytes, the most significant one first.
struct Temperature: Equatable, CustomStringConvertible {
    var hundredths: Int32

    init(hundredths: Int32) { self.hundredths = hundredths }

    /// Reads a content; nil where it is no temperature.
    init?(_ content: [UInt8]) {
        guard content.count == 4 else { return nil }
        hundredths = Int32(bitPattern: content.reduce(0) { $0 << 8 | UInt32($1) })
    }

    var content: [UInt8] { withUnsafeBytes(of: hundredths.bigEndian) { Array($0) } }

    var description: String { "\(Double(hundredths) / 100) °C" }
}
