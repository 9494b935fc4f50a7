/// One result, in its JSON form.
public struct Row: Codable, Sendable, Hashable {
    public var `case`: String
    public var workload: String
    public var contender: String
    public var value: Double
    public var unit: String
    /// How many times worse than Lifeline: 2 means twice the time or memory, or half the rate. Nil if one of the two is
    /// 0, so that there is no ratio.
    public var ratio: Double?
}
