internal import CEpollPeer
internal import Foundation

/// A process of a contender: a server or a client. It ends with this one.
final class Peer {
    let name: String
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private let words: FileHandle
    private var unread: [UInt8] = []

    /// - Parameter core: the core on which the process runs; nil for any.
    init(_ program: Program, core: Int?) throws {
        name = program.arguments.joined(separator: " ")
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("connection-peer-\(UUID()).log")
        _ = FileManager.default.createFile(atPath: file.path, contents: nil)
        words = try FileHandle(forUpdating: file)
        // The file disappears when nobody has it open any more, however this ends.
        try FileManager.default.removeItem(at: file)
        process.executableURL = program.executable
        process.arguments = program.arguments
        process.standardInput = input
        process.standardOutput = output
        process.standardError = words
        // A process inherits the core of its parent.
        if let core { process_pin(Int32(core)) }
        defer { process_unpin() }
        try process.run()
    }

    /// The processor time of its threads, in nanoseconds.
    var cpuTime: UInt64 {
        get throws {
            let time = process_cpu_time(process.processIdentifier)
            guard time > 0 else { throw failure("its processor time cannot be read.") }
            return time
        }
    }

    /// Its private memory in bytes: the memory that it has written to, without files.
    var memory: UInt64 {
        get throws {
            let file = "/proc/\(process.processIdentifier)/smaps_rollup"
            let lines = (try? String(contentsOfFile: file, encoding: .utf8))?.split(separator: "\n")
            let words = lines?.first { $0.hasPrefix("Anonymous:") }?.split(separator: " ") ?? []
            guard words.count == 3, let kibibytes = UInt64(words[1]) else {
                throw failure("\(file) does not tell its memory.")
            }
            return kibibytes * 1024
        }
    }

    /// Sends a client a command. Returns the numbers of its answer.
    func perform(_ command: String) throws -> [Double] {
        let line = Data("\(command)\n".utf8)
        do {
            try input.fileHandleForWriting.write(contentsOf: line)
        } catch {
            throw failure("it took no \(command).")
        }
        let answer = try readLine(after: command).split(separator: " ")
        let numbers = answer.dropFirst().compactMap { Double($0) }
        guard answer.first == "done", numbers.count == 4 else {
            throw failure("it answered \(answer) to \(command).")
        }
        return numbers
    }

    /// The port that a server prints.
    func readPort() throws -> Int {
        let line = try readLine(after: "its start").split(separator: " ")
        guard line.count == 2, line[0] == "port", let port = Int(line[1]) else { throw failure("it said \(line).") }
        return port
    }

    /// Longer than the longest run, and than 10,000 connections take on a busy machine.
    private static let patience: Int32 = 60_000

    private func readLine(after what: String) throws -> String {
        let descriptor = output.fileHandleForReading.fileDescriptor
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { unread.removeSubrange(...end) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, Self.patience) > 0 else {
                throw failure("it said nothing for \(Self.patience / 1000) s after \(what).")
            }
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = read(descriptor, &bytes, bytes.count)
            guard count > 0 else { throw failure("it ended after \(what).") }
            unread += bytes[..<count]
        }
    }

    private func failure(_ text: String) -> PeerFailure {
        let end = end ?? "It was still running."
        stop()
        return PeerFailure(description: "\(name): \(text) \(end) \(lastWords)")
    }

    private var lastWords: String {
        // The process shared the offset, and has ended.
        try? words.seek(toOffset: 0)
        let words = String(decoding: (try? words.readToEnd()) ?? Data(), as: UTF8.self)
        return words.isEmpty ? "It left no word." : "Its words: \(words.suffix(2000).trimmingCharacters(in: .newlines))"
    }

    /// A possible reason for a client's failure: the end of this process; nil if it runs.
    var failureOfItsOwn: PeerFailure? { end.map { PeerFailure(description: "\(name): \($0) \(lastWords)") } }

    /// How the process ended; nil if it still runs after a second. A process that closes its output or a connection is
    /// mostly about to exit, with a message and a status.
    private var end: String? {
        for _ in 0..<100 where process.isRunning { usleep(10_000) }
        guard !process.isRunning else { return nil }
        let how = process.terminationReason == .uncaughtSignal ? "signal" : "status"
        return "It ended with \(how) \(process.terminationStatus)."
    }

    func stop() {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    deinit { stop() }
}

struct PeerFailure: Error, CustomStringConvertible {
    let description: String
}

/// The command of a process.
struct Program: Hashable {
    let executable: URL
    let arguments: [String]
}
