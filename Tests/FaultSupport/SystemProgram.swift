internal import Glibc

/// A running system program at a node of a network, such as a proxy, until it is killed.
package final class SystemProgram: Sendable {
    private let process: ChildProcess

    /// - Parameter output: the file to which its output is appended.
    package init(
        _ name: String,
        _ arguments: [String],
        at node: TestNetwork.Node,
        of network: TestNetwork,
        output: String
    ) throws {
        let file = open(output, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw FaultFailure("\(output) cannot be opened.") }
        defer { close(file) }
        let input = open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard input >= 0 else { throw FaultFailure("/dev/null cannot be opened.") }
        defer { close(input) }
        process = try ChildProcess(
            Tool.path(of: "ip"),
            network.arguments(toRun: Tool.path(of: name), arguments, at: node),
            input: input,
            output: file,
            error: file
        )
    }

    deinit {
        process.signal(SIGKILL)
        _ = process.wait()
    }

    /// Kills it, and waits until it has ended.
    package func kill() async throws {
        let process = process
        process.signal(SIGKILL)
        _ = try await onThread { process.wait() }
    }
}
