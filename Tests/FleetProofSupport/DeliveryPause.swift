/// The longest time without a message, in nanoseconds.
package struct DeliveryPause: Codable, Hashable, Sendable {
    package private(set) var longest: Int64 = 0
    /// The time of the last message.
    private var last: Int64?
    private var isMeasured = false

    package init() {}

    /// A message arrived.
    package mutating func delivered(at time: Int64) {
        if isMeasured, let last { longest = max(longest, time - last) }
        last = time
    }

    /// Starts a new measurement.
    package mutating func begin(at time: Int64) {
        last = last ?? time
        (longest, isMeasured) = (0, true)
    }

    /// Ends the measurement. The current pause counts.
    package mutating func end(at time: Int64) {
        if isMeasured, let last { longest = max(longest, time - last) }
        isMeasured = false
    }
}
