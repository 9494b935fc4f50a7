/// One result, as it is written to JSON.
public struct Row: Codable, Sendable, Hashable {
    public var `case`: String
    public var workload: String
    public var contender: String
    public var value: Double
    public var unit: String
    /// How many times worse than Lifeline: 2 means twice the time or memory, or half the rate. Nil where
    /// one of the two is 0, and nothing can be divided.
    public var ratio: Double?
}
