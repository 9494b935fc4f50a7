import Foundation
import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import Testing

/// `lifeline send` while its receiver is killed and started again.
@Suite(.timeLimit(.minutes(2))) struct ReconnectTests {
    @Test func survivesThreeDeathsOfTheReceiver() async throws {
        try await withTemporaryPath("output") { path in
            let (count, deaths) = (10_000, 3)
            let port = try TestPort.next()
            var receiver = try Receiver(port: port, output: path)
            let sender = try Sender(port: port)
            var numbers: [Int] = []
            for death in 0...deaths {
                let part = count / (deaths + 1)
                let range = (death * part)..<(death == deaths ? count : (death + 1) * part)
                async let feeding: Void = sender.feed(range)
                // The receivers are killed while they receive; the last one lives.
                let isLast = death == deaths
                try await receiver.waitForOutput(isLast ? 1 : part / 8, from: sender)
                if isLast {
                    try await feeding
                    #expect(try await sender.finish() == 0, "\(sender.errorText)")
                    receiver.interrupt()
                } else {
                    receiver.kill()
                    try await feeding
                }
                numbers += try receiver.numbers()
                receiver.removeOutput()
                if !isLast { receiver = try Receiver(port: port, output: path) }
            }
            let lines = sender.errorText.split(separator: "\n")
            let ends = lines.count { $0.contains("lost the connection: ") || $0.contains(" ended the connection") }
            #expect(ends == deaths)
            // The first receiver may not listen yet.
            #expect(lines.count { $0.hasPrefix("lifeline: connected to 127.0.0.1:") } >= deaths)
            let summary = try #require(lines.last)
            #expect(summary.contains("sent \(count) messages") && summary.contains("3 connections were lost"))
            let undelivered = try #require(summary.firstMatch(of: /of which (\d+) did not arrive/)).output.1
            // No message arrives twice or out of order. Missing messages that are not counted had reached a killed
            // receiver.
            #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
            #expect(numbers.last == count - 1)
            #expect(try numbers.count + #require(Int(undelivered)) <= count)
        }
    }

    @Test func givesUpWith69AndTellsWhatItTried() async throws {
        let port = try TestPort.next()
        let outcome = try await Program.product(
            "lifeline",
            ["send", "--to", "tcp://127.0.0.1:\(port)", "--attempts", "2"] + chatMessage("a")
        ).outcome()
        #expect(outcome.status == 69)
        let lines = outcome.errorText.split(separator: "\n")
        #expect(lines.count == 2, "\(lines)")
        let step = #/lifeline: 127.0.0.1:\d+ refused the connection; next try in [\d.]+ s, 2 of 2/#
        #expect(lines.first?.wholeMatch(of: step) != nil, "\(lines)")
        let advice = "Check that a program listens there. Gave up after 2 attempts."
        #expect(lines.last == "lifeline: 127.0.0.1:\(port) refused the connection. \(advice)")
    }

    /// A receiver that has enough messages ends in order: everything was sent, although no receiver is left.
    @Test func aReceiverThatHasHadEnoughIsNoFailure() async throws {
        var listener: RawSocket? = try await RawSocket.listen()
        let sender = try Sender(port: UInt16(try #require(listener).port), "--attempts", "1")
        let peer = try #require(try await listener?.accept())
        listener = nil
        try await sender.feed(0..<1)
        // The receiver has everything, and ends its side. The sender then ends its own side, and gives up.
        _ = try await peer.read(1)
        try peer.finish()
        _ = try await peer.read()
        #expect(try await sender.finish() == 0, "\(sender.errorText)")
    }

    @Test func isQuietWhenAskedTo() async throws {
        let port = try TestPort.next()
        let outcome = try await Program.product(
            "lifeline",
            ["send", "--to", "tcp://127.0.0.1:\(port)", "--attempts", "2", "--quiet"] + chatMessage("a")
        ).outcome()
        #expect(outcome.status == 69)
        #expect(outcome.errorText.split(separator: "\n").count == 1)
    }
}

/// `lifeline send`, which is fed messages with ascending positions.
private final class Sender: Sendable {
    private let process = Process()
    private let input = Pipe.make()
    private let errors: URL
    private let status = AsyncStream.makeStream(of: Int32.self)

    init(port: UInt16, _ options: String...) throws {
        errors = FileManager.default.temporaryDirectory.appending(path: "errors-\(UUID().uuidString)")
        try Data().write(to: errors)
        process.executableURL = URL(filePath: try Program.product("lifeline", []).path)
        process.arguments = ["send", "--to", "tcp://127.0.0.1:\(port)", "--format", "delimited"] + options
        process.standardInput = input
        process.standardError = try FileHandle(forWritingTo: errors)
        process.terminationHandler = { [status] in
            status.continuation.yield($0.terminationStatus)
            status.continuation.finish()
        }
        try process.start()
    }

    deinit { try? FileManager.default.removeItem(at: errors) }

    var isRunning: Bool { process.isRunning }

    var errorText: String { (try? String(contentsOf: errors, encoding: .utf8)) ?? "" }

    func feed(_ range: Range<Int>) async throws {
        var stream = Data()
        for number in range {
            try Sample_Chat_V1_ChatMessage.with {
                $0.position = Int64(number)
                $0.text = "text"
            }.withDelimitedBytes { stream.append(contentsOf: $0) }
        }
        try input.fileHandleForWriting.write(contentsOf: stream)
    }

    func finish() async throws -> Int32? {
        try input.fileHandleForWriting.close()
        for await status in status.stream { return status }
        return nil
    }
}

/// `lifeline receive`, whose output is a file.
private struct Receiver {
    private let process = Process()
    private let output: URL
    private let watch: FileWatch

    init(port: UInt16, output: String) throws {
        self.output = URL(filePath: output)
        try Data().write(to: self.output)
        watch = try FileWatch([output])
        process.executableURL = URL(filePath: try Program.product("lifeline", []).path)
        process.arguments = ["receive", "--on", "tcp://127.0.0.1:\(port)", "--format", "delimited"]
        process.standardOutput = try FileHandle(forWritingTo: self.output)
        process.standardError = FileHandle.nullDevice
        process.terminationHandler = { [weak watch] _ in watch?.lookAgain() }
        try process.start()
    }

    /// Waits until it has printed a number of messages.
    func waitForOutput(_ count: Int, from sender: Sender) async throws {
        try await watch.wait {
            if try numbers().count >= count { return () }
            guard process.isRunning, sender.isRunning else { throw Ended(errorText: sender.errorText) }
            return nil
        }
    }

    /// One of the commands has ended too early.
    struct Ended: Error {
        let errorText: String
    }

    func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    func interrupt() {
        process.interrupt()
        process.waitUntilExit()
    }

    func removeOutput() { try? FileManager.default.removeItem(at: output) }

    /// The positions of the messages in its output. The last one may be incomplete.
    func numbers() throws -> [Int] {
        var bytes = try Data(contentsOf: output)[...]
        var numbers: [Int] = []
        while let length = bytes.first.map(Int.init), bytes.count > length {
            let message = try Sample_Chat_V1_ChatMessage(serializedBytes: Array(bytes.dropFirst().prefix(length)))
            numbers.append(Int(message.position))
            bytes = bytes.dropFirst(1 + length)
        }
        return numbers
    }
}
