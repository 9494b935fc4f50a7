import Lifeline

/// What messages carry in these tests.
struct TestContent: SessionContent, Hashable {
    static var messageOverhead: Int { 0 }
    let number: Int
    var byteCount = 10
    var method = ""
    var exceedsLimits = false
    var maximumFrameLength: Int { byteCount + 64 }
}
