import Lifeline

/// What messages carry in these tests.
struct TestContent: SessionContent, Hashable {
    let number: Int
    var byteCount = 10
    var method = ""
    var maximumFrameLength: Int { byteCount + 64 }
}
