import Lifeline
import Testing

extension SessionOptions {
    /// Small enough that every limit is met.
    static var small: SessionOptions {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: 16, byteCount: 300)
        options.inboundWindow = SessionWindow(frameCount: 8, byteCount: 120)
        options.maximumRequestCount = 6
        options.maximumRunningCount = 4
        options.acknowledgementBatchSize = 3
        return options
    }
}

/// As `#require` and `#expect`, which cost too much for what is looked at a million times.
func require(_ condition: @autoclosure () -> Bool, at location: SourceLocation = #_sourceLocation) throws {
    if !condition() { throw Broken(location: location) }
}

func demand(_ condition: @autoclosure () -> Bool, at location: SourceLocation = #_sourceLocation) {
    if !condition() { Issue.record("It does not hold.", sourceLocation: location) }
}

/// A promise that was not kept.
struct Broken: Error {
    let location: SourceLocation
}
