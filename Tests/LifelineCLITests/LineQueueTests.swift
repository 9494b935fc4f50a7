import Dispatch
import Glibc
import Testing

@testable import LifelineCLI

/// Standard error, when nobody reads it.
@Suite(.timeLimit(.minutes(1))) struct LineQueueTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func linesThatFitWait() {
        var queue = LineQueue(capacity: 8)
        for line in ["one\n", "two\n"] { queue.append(line) }
        #expect(text(queue.take()) == "one\ntwo\n")
        #expect(queue.take().isEmpty)
    }

    /// The count is in the place of the lines, and no later line comes before it.
    @Test func linesThatDoNotFitAreCounted() {
        var queue = LineQueue(capacity: 8)
        for line in ["one\n", "three\n", "2\n"] { queue.append(line) }
        #expect(text(queue.take()) == "one\nlifeline: 2 lines were left out here, as standard error was not read\n")
        for line in ["one\n", "three\n"] { queue.append(line) }
        #expect(text(queue.take()) == "one\nlifeline: 1 line was left out here, as standard error was not read\n")
        queue.append("next\n")
        #expect(text(queue.take()) == "next\n")
    }

    /// Writers continue, whatever the reader does. The reader gets all lines except the counted ones, in order.
    @Test func writersDoNotWait() async throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let (reading, writing) = (ends[0], ends[1])
        let output = ErrorOutput(descriptor: writing)
        let count = 100_000
        for number in 0..<count { output.write("line \(number)\n") }
        // Nobody reads.
        output.flush(within: .milliseconds(10))
        let read = Task.detached {
            var bytes: [UInt8] = []
            var chunk = [UInt8](repeating: 0, count: 64 << 10)
            while true {
                let size = Glibc.read(reading, &chunk, chunk.count)
                if size <= 0 { return bytes }
                bytes += chunk[..<size]
            }
        }
        output.flush(within: .seconds(50))
        output.write("the last\n")
        output.flush(within: .seconds(50))
        close(writing)
        let lines = text(await read.value).split(separator: "\n")
        close(reading)
        let written = lines.filter { $0.hasPrefix("line ") }.compactMap { Int($0.dropFirst(5)) }
        let leftOut = lines.compactMap { $0.wholeMatch(of: /lifeline: (\d+) lines? (?:was|were) left out here.*/) }
        #expect(leftOut.count >= 1 && lines.last == "the last")
        #expect(written.count + leftOut.compactMap { Int($0.output.1) }.reduce(0, +) == count)
        #expect(zip(written, written.dropFirst()).allSatisfy { $0 < $1 })
    }
}
