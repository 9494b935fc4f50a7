import Lifeline

/// What messages carry in these tests.
struct TestContent: SessionContent, Hashable {
    static var messageOverhead: Int { 0 }
    let number: Int
    var byteCount = 10
    var method = ""
    var exceedsLimits = false
    var maximumFrameLength: Int { byteCount + 64 }

    /// As long as one may be.
    static func refusal(_ refusal: RequestRefusal) -> TestContent { TestContent(number: -1, byteCount: 1_000) }
}
