import LifelineCore
import LifelineTransport
import Logging
import NIOConcurrencyHelpers
import TestProtos

@testable import Lifeline

/// The session frames in delimited bytes, which hold only whole frames.
func sessionFrames(in bytes: [UInt8]) throws -> [Lifeline_Session_V1_Frame] {
    struct Collector: FrameSink {
        var frames: [Lifeline_Session_V1_Frame] = []

        mutating func receive(frame: UnsafeRawBufferPointer) throws {
            frames.append(try Lifeline_Session_V1_Frame(serializedBytes: Array(frame)))
        }
    }
    var collector = Collector()
    var assembler = FrameAssembler(decoder: FrameDecoder(maximumFrameLength: 4 << 20))
    try bytes.withUnsafeBytes { try assembler.receive($0, into: &collector) }
    try assembler.finish()
    return collector.frames
}

/// A service with the methods of a test.
struct TestService: SessionService {
    var methods: [SessionMethod]

    init(_ methods: SessionMethod...) { self.methods = methods }
}

/// Collects records of several tasks.
final class Notes<Value: Sendable>: Sendable {
    private let values = NIOLockedValueBox<[Value]>([])

    var all: [Value] { values.withLockedValue { $0 } }
    var count: Int { values.withLockedValue { $0.count } }

    func add(_ value: Value) { values.withLockedValue { $0.append(value) } }
}

/// Runs `body`, which must throw a `SessionError`, and returns that.
func sessionError(_ body: () async throws -> some Any) async -> SessionError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? SessionError
    }
}
