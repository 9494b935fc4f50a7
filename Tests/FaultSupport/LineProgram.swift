internal import Dispatch
internal import Foundation
internal import Glibc
internal import Synchronization

/// A running program that takes commands, one a line, and says what happens in events. It ends when its input does.
package final class LineProgram: Sendable {
    package let name: String
    private let process: ChildProcess
    private let log = EventLog()
    private let input: Mutex<Int32?>

    /// Runs one of this package's programs, which stand beside this one's executable, at a node of a network.
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
        // It always reads: a program whose pipe is full stops, and then it is not the fault that is measured.
        Thread { LineProgram.read(output, into: log) }.start()
    }

    deinit {
        process.signal(SIGKILL)
        input.withLock { if let descriptor = $0 { close(descriptor) } }
        // Not left as a zombie; it takes no time.
        _ = process.wait()
    }

    // MARK: Events

    /// All that it has said.
    package var events: [FaultEvent] { log.events }

    /// Whether it has said all that it will.
    package var isSilent: Bool { log.isEnded }

    /// The transitions that it has told.
    package var steps: [FaultEvent] { events.filter { $0.event == .transition } }

    /// The next event that matches, after the one that this returned last. What comes before it is passed over.
    package func next(
        _ description: String,
        within time: Duration = .seconds(30),
        where matches: @escaping @Sendable (FaultEvent) -> Bool
    ) async throws -> FaultEvent {
        try await expected(description, within: time, log.next(within: time, where: matches))
    }

    /// An event that matches, whether it has come already or not.
    @discardableResult package func any(
        _ description: String,
        within time: Duration = .seconds(30),
        where matches: @escaping @Sendable (FaultEvent) -> Bool
    ) async throws -> FaultEvent {
        try await expected(description, within: time, log.any(within: time, where: matches))
    }

    /// Whether an event that matches comes within a time, after the one that `next` returned last.
    package func says(within time: Duration, where matches: @escaping @Sendable (FaultEvent) -> Bool) async -> Bool {
        await log.next(within: time, where: matches) != nil
    }

    private func expected(_ description: String, within time: Duration, _ event: FaultEvent?) throws -> FaultEvent {
        if let event { return event }
        try Task.checkCancellation()
        let latest = events.suffix(8).map { "  \($0.line)" }.joined(separator: "\n")
        throw FaultFailure("\(name) did not say \(description) within \(time). The last that it said:\n\(latest)")
    }

    // MARK: Commands and signals

    /// Gives it a command.
    package func tell(_ command: String) throws {
        let count = input.withLock { descriptor in
            descriptor.map { descriptor in
                // Commands are far shorter than a pipe's room, and the programs read them at once.
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

    /// What its threads do, as the kernel says in a letter each: T for those that are stopped.
    package var threadStates: [Character] {
        get throws {
            let tasks = "/proc/\(process.id)/task"
            return try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap { thread in
                // One may have ended meanwhile. The name before the state is in parentheses, and may contain some.
                let line = try? String(contentsOfFile: "\(tasks)/\(thread)/stat", encoding: .utf8)
                return line?.split(separator: ")").last?.first { !$0.isWhitespace }
            }
        }
    }

    /// Ends its input, so that it ends in order, and waits for that; its exit status.
    @discardableResult package func finish(within time: Duration = .seconds(20)) async throws -> Int32 {
        input.withLock { descriptor in
            if let descriptor { close(descriptor) }
            descriptor = nil
        }
        return try await waitForEnd(within: time)
    }

    /// Waits until it has ended, and kills it when the time is up; its exit status, or a signal's number, negated.
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

    /// To write to a program that has ended is an error, and not the end of this one.
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
