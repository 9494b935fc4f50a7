internal import Dispatch
internal import Foundation
internal import Glibc
internal import Synchronization

/// A running program that takes commands, one in a line, and reports events. It ends when its input does.
package final class LineProgram: Sendable {
    package let name: String
    private let process: ChildProcess
    private let log = EventLog()
    private let input: Mutex<Int32?>

    /// Runs one of this package's programs, which are next to this executable, at a node of a network.
    package convenience init(product: String, _ arguments: [String], at node: TestNetwork.Node, of network: TestNetwork)
        throws
    {
        let path = try LineProgram.path(of: product)
        try self.init(
            name: product,
            Tool.path(of: "ip"),
            network.arguments(toRun: path, arguments, at: node)
        )
    }

    /// The same, in the network that this program is in.
    package convenience init(product: String, _ arguments: [String]) throws {
        try self.init(name: product, LineProgram.path(of: product), arguments)
    }

    private static func path(of product: String) throws -> String {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let path = URL(filePath: own).deletingLastPathComponent().appending(path: product).path
        guard access(path, X_OK) == 0 else { throw FaultFailure("\(path) is missing. Build the package.") }
        return path
    }

    private init(name: String, _ path: String, _ arguments: [String]) throws {
        self.name = name
        let pipes = (input: try PipeEnds(), output: try PipeEnds())
        defer {
            close(pipes.input.reading)
            close(pipes.output.writing)
        }
        self.process = try ChildProcess(
            path,
            arguments,
            input: pipes.input.reading,
            output: pipes.output.writing,
            error: STDERR_FILENO
        )
        self.input = Mutex(pipes.input.writing)
        _ = LineProgram.ignoresBrokenPipes
        let (log, output) = (log, pipes.output.reading)
        // Reads all the time: a program with a full pipe would stall, which would falsify the measurement.
        Thread { LineProgram.read(output, into: log) }.start()
    }

    deinit {
        process.signal(SIGKILL)
        input.withLock { if let descriptor = $0 { close(descriptor) } }
        // Reaps the process, which takes no time.
        _ = process.wait()
    }

    // MARK: Events

    /// All of its events.
    package var events: [FaultEvent] { log.events }

    /// Whether there will be no more events.
    package var isSilent: Bool { log.isEnded }

    /// The transitions that it has reported.
    package var steps: [FaultEvent] { events.filter { $0.event == .transition } }

    /// The next matching event after the one that this function returned last. Events before it are skipped.
    package func next(
        _ description: String,
        within time: Duration = .seconds(30),
        where matches: @escaping @Sendable (FaultEvent) -> Bool
    ) async throws -> FaultEvent {
        try await expected(description, within: time, log.next(within: time, where: matches))
    }

    /// A matching event, past or future.
    @discardableResult package func any(
        _ description: String,
        within time: Duration = .seconds(30),
        where matches: @escaping @Sendable (FaultEvent) -> Bool
    ) async throws -> FaultEvent {
        try await expected(description, within: time, log.any(within: time, where: matches))
    }

    /// Whether a matching event follows within a time, after the one that `next` returned last.
    package func says(within time: Duration, where matches: @escaping @Sendable (FaultEvent) -> Bool) async -> Bool {
        await log.next(within: time, where: matches) != nil
    }

    private func expected(_ description: String, within time: Duration, _ event: FaultEvent?) throws -> FaultEvent {
        if let event { return event }
        try Task.checkCancellation()
        let latest = events.suffix(8).map { "  \($0.line)" }.joined(separator: "\n")
        throw FaultFailure("\(name) did not report \(description) within \(time). Its last reports:\n\(latest)")
    }

    // MARK: Commands and signals

    /// Sends it a command.
    package func tell(_ command: String) throws {
        let count = input.withLock { descriptor in
            descriptor.map { descriptor in
                // Commands are far shorter than a pipe's buffer, and the programs read them at once.
                Array("\(command)\n".utf8).withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            }
        }
        guard let count, count > 0 else { throw FaultFailure("\(name) takes no command any more: \(command)") }
    }

    /// Sends it a signal.
    package func signal(_ number: Int32) throws {
        guard process.signal(number) else { throw FaultFailure("\(name) has ended before it got signal \(number).") }
    }

    /// Stops it, and waits until none of its threads runs.
    package func stop() async throws {
        let process = process
        guard try await onThread({ process.stop() }) else { throw FaultFailure("\(name) has ended before it stopped.") }
    }

    /// The kernel's state letters of its threads: T for a stopped one.
    package var threadStates: [Character] {
        get throws {
            let tasks = "/proc/\(process.id)/task"
            return try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap { thread in
                // A thread may have ended meanwhile. The name before the state is in parentheses, and may contain
                // parentheses.
                let line = try? String(contentsOfFile: "\(tasks)/\(thread)/stat", encoding: .utf8)
                return line?.split(separator: ")").last?.first { !$0.isWhitespace }
            }
        }
    }

    /// Ends its input, so that it ends in order, and waits for that. Returns its exit status.
    @discardableResult package func finish(within time: Duration = .seconds(20)) async throws -> Int32 {
        input.withLock { descriptor in
            if let descriptor { close(descriptor) }
            descriptor = nil
        }
        return try await waitForEnd(within: time)
    }

    /// Waits until it has ended, and kills it at a timeout. Returns its exit status, or the negated number of a signal.
    @discardableResult package func waitForEnd(within time: Duration = .seconds(20)) async throws -> Int32 {
        let process = process
        let killing = Task {
            try await Task.sleep(for: time)
            process.signal(SIGKILL)
        }
        defer { killing.cancel() }
        return try await onThread { process.wait() }
    }

    // MARK: -

    /// A write to an ended program has to fail with an error, not end this program.
    private static let ignoresBrokenPipes: Void = { _ = Glibc.signal(SIGPIPE, SIG_IGN) }()

    private static func read(_ output: Int32, into log: EventLog) {
        let decoder = JSONDecoder()
        var rest: [UInt8] = []
        while let chunk = readChunk(output) {
            rest += chunk
            var start = rest.startIndex
            while let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
                let line = Data(rest[start..<end])
                start = end + 1
                do {
                    log.append(try decoder.decode(FaultEvent.self, from: line))
                } catch {
                    let text = "This is no event: \(String(decoding: line, as: UTF8.self))\n"
                    FileHandle.standardError.write(Data(text.utf8))
                }
            }
            rest.removeFirst(start)
        }
        close(output)
        log.end()
    }
}
