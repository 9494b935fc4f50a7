/// The longest time without a message, in nanoseconds.
package struct DeliveryPause: Codable, Hashable, Sendable {
    package private(set) var longest: Int64 = 0
    /// When the last message came.
    private var last: Int64?
    private var isMeasured = false

    package init() {}

    /// A message came.
    package mutating func delivered(at time: Int64) {
        if isMeasured, let last { longest = max(longest, time - last) }
        last = time
    }

    /// Measures from now on, anew.
    package mutating func begin(at time: Int64) {
        last = last ?? time
        (longest, isMeasured) = (0, true)
    }

    /// Measures no more. What has lasted until now counts.
    package mutating func end(at time: Int64) {
        if isMeasured, let last { longest = max(longest, time - last) }
        isMeasured = false
    }
}
