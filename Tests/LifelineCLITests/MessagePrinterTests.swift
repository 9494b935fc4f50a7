import Foundation
import Lifeline
import LifelineMessages
import LifelineTestSupport
import Synchronization
import Testing

@testable import LifelineCLI

/// Several connections print through one printer. The output may block for a while.
@Suite(.timeLimit(.minutes(1))) struct MessagePrinterTests {
    private final class Count: Sendable {
        let value = Atomic(0)
    }

    private static let messageLength = 1000
    private static let frameLength = 2 + messageLength

    /// A message that names its connection and its number.
    private static func message(_ number: Int, of connection: UInt8) -> RawMessage {
        let head = [connection, UInt8(number >> 8), UInt8(number & 0xFF)]
        return RawMessage(bytes: head + [UInt8](repeating: 0x20, count: messageLength - head.count))
    }

    private static func batch(_ numbers: Range<Int>, of connection: UInt8) -> [RawMessage] {
        numbers.map { message($0, of: connection) }
    }

    /// The numbers of a connection's messages in the output.
    private static func numbers(of connection: UInt8, in output: [UInt8]) -> [Int] {
        stride(from: 0, to: output.count, by: frameLength).compactMap { start in
            let head = Array(output[(start + 2)..<(start + 5)])
            return head[0] == connection ? Int(head[1]) << 8 | Int(head[2]) : nil
        }
    }

    private func printer(to path: String, limit: Int?) throws -> MessagePrinter {
        MessagePrinter(
            form: .delimited(nil),
            output: try OutputFile(path: path),
            limit: limit,
            skipsBadMessages: false,
            isQuiet: true
        )
    }

    /// Reads on a thread that may block.
    private func read(_ count: Int, from file: FileHandle) async throws -> [UInt8] {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { Array(try file.read(upToCount: count) ?? Data()) })
            }
        }
    }

    /// Batches that are larger than one write.
    @Test func messagesOfTwoConnectionsStayWholeAndInOrder() async throws {
        try await withTemporaryPath("messages") { path in
            let limit = 1500
            let printer = try printer(to: path, limit: limit)
            try await withThrowingTaskGroup { group in
                for connection in [1, 2] as [UInt8] {
                    group.addTask {
                        for start in stride(from: 0, to: 1000, by: 500) {
                            let batch = Self.batch(start..<(start + 500), of: connection)
                            try await printer.print(batch, after: start, of: "it")
                        }
                    }
                }
                // The printer is done when the last message of all connections is written.
                let interruption = await Interruption()
                try await printer.commandEnd.wait(or: interruption, within: nil)
                #expect(FileManager.default.contents(atPath: path)?.count == limit * Self.frameLength)
                try await group.waitForAll()
            }
            let output = Array(try #require(FileManager.default.contents(atPath: path)))
            let counts = [1, 2].map { Self.numbers(of: $0, in: output) }
            #expect(counts.allSatisfy { $0 == Array(0..<$0.count) })
            #expect(counts.map(\.count).reduce(0, +) == limit)
        }
    }

    /// A connection's batch is taken when the output has taken the previous one, except for the bytes that a pipe
    /// holds.
    @Test func aPipeThatIsFullHoldsConnectionsUp() async throws {
        try await withTemporaryPath("pipe") { pipe in
            #expect(mkfifo(pipe, 0o600) == 0)
            // Open at both ends, so that opening it does not block.
            let descriptor = open(pipe, O_RDWR)
            let reader = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            let printer = try printer(to: pipe, limit: nil)
            let finished = Count()
            let total = 2 * 500 * Self.frameLength
            try await withThrowingTaskGroup { group in
                for connection in [1, 2] as [UInt8] {
                    group.addTask {
                        try await printer.print(Self.batch(0..<500, of: connection), after: 0, of: "it")
                        finished.value.add(1, ordering: .relaxed)
                    }
                }
                // pipe(7).
                let pipeCapacity = 64 << 10
                var output: [UInt8] = []
                while output.count < total - 2 * pipeCapacity { output += try await read(pipeCapacity, from: reader) }
                #expect(finished.value.load(ordering: .relaxed) < 2)
                while output.count < total {
                    output += try await read(min(pipeCapacity, total - output.count), from: reader)
                }
                try await group.waitForAll()
                for connection in [1, 2] as [UInt8] {
                    #expect(Self.numbers(of: connection, in: output) == Array(0..<500))
                }
            }
        }
    }
}
