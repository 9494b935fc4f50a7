internal import CEpollPeer
internal import Foundation

/// A process of a contender: a server or a client. It ends with this one.
final class Peer {
    let name: String
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private let words: URL
    private var unread: [UInt8] = []

    /// - Parameter core: which one the process runs on; nil for any.
    init(_ program: Program, core: Int?) throws {
        name = program.arguments.joined(separator: " ")
        words = FileManager.default.temporaryDirectory.appendingPathComponent("connection-peer-\(UUID()).log")
        _ = FileManager.default.createFile(atPath: words.path, contents: nil)
        process.executableURL = program.executable
        process.arguments = program.arguments
        process.standardInput = input
        process.standardOutput = output
        process.standardError = try FileHandle(forWritingTo: words)
        // A process has the core of whoever starts it.
        if let core { process_pin(Int32(core)) }
        defer { process_unpin() }
        try process.run()
    }

    /// What its threads have had a processor for, in nanoseconds.
    var cpuTime: UInt64 { process_cpu_time(process.processIdentifier) }

    /// The memory of its own, in bytes: what it has written to, and is no file's.
    var memory: UInt64 {
        get throws {
            let file = "/proc/\(process.processIdentifier)/smaps_rollup"
            let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
            let words = lines.first { $0.hasPrefix("Anonymous:") }?.split(separator: " ") ?? []
            guard words.count == 3, let kibibytes = UInt64(words[1]) else {
                throw failure("\(file) does not tell its memory.")
            }
            return kibibytes * 1024
        }
    }

    /// Has a client do something; returns the numbers of its answer.
    func perform(_ command: String) throws -> [Double] {
        let line = Data("\(command)\n".utf8)
        try input.fileHandleForWriting.write(contentsOf: line)
        let answer = try readLine(after: command).split(separator: " ")
        let numbers = answer.dropFirst().compactMap { Double($0) }
        guard answer.first == "done", numbers.count == 4 else {
            throw failure("it answered \(answer) to \(command).")
        }
        return numbers
    }

    /// The port that a server says it listens on.
    func readPort() throws -> Int {
        let line = try readLine(after: "its start").split(separator: " ")
        guard line.count == 2, line[0] == "port", let port = Int(line[1]) else { throw failure("it said \(line).") }
        return port
    }

    /// Longer than the longest run, and than what 10,000 connections take on a busy machine.
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
        // It may be writing them.
        if process.isRunning { stop() } else { process.waitUntilExit() }
        return PeerFailure(description: "\(name): \(text) \(lastWords)")
    }

    private var lastWords: String {
        let words = (try? String(contentsOf: words, encoding: .utf8)) ?? ""
        return words.isEmpty ? "It left no word." : "Its words: \(words.suffix(2000).trimmingCharacters(in: .newlines))"
    }

    /// How the process ended; nil while it runs.
    var end: String? {
        process.isRunning ? nil : "\(name): it ended with status \(process.terminationStatus). \(lastWords)"
    }

    func stop() {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(at: words)
    }
}

struct PeerFailure: Error, CustomStringConvertible {
    let description: String
}

/// How a process is started.
struct Program: Hashable {
    let executable: URL
    let arguments: [String]
}
