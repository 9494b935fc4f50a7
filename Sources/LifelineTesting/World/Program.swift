internal import LifelineRuntime

/// A program on a host of a world, running or ended.
public final class Program<Value: Sendable>: AnyProgram, @unchecked Sendable {
    private let hostName: String
    private let end = Latch<Result<Value, any Error>>()
    var task: Task<Void, Never>?
    /// The process that runs it.
    weak var process: WorldProcess?
    /// Whether a task waits for its end, and so receives its failure.
    private(set) var isWaitedFor = false

    init(on hostName: String) { self.hostName = hostName }

    /// The value that the program returns, once it has.
    ///
    /// - Throws: what the program throws; `ProgramKilled` when its process was killed.
    public var value: Value {
        get async throws {
            isWaitedFor = true
            return try await end.wait().get()
        }
    }

    /// Asks the program to end. Does nothing after its process was killed.
    public func cancel() {
        // In the name of the process, because handlers of cancellation belong to the program.
        process?.perform { self.task?.cancel() }
    }

    /// The story has ended, so the program must end, killed or not.
    func finish() { task?.cancel() }

    func end(_ result: Result<Value, any Error>) { end.open(with: result) }

    func kill() { end.open(with: .failure(ProgramKilled(host: hostName))) }
}

/// The process of a program was killed.
public struct ProgramKilled: Error, Hashable, CustomStringConvertible {
    /// The name of the host.
    public let host: String

    public var description: String { "The process on \(host) was killed." }
}

/// A program with any type of value.
protocol AnyProgram: AnyObject {
    func finish()
    func kill()
}
