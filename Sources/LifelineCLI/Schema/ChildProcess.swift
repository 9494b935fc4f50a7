internal import Glibc

/// The output and the exit status of a program.
struct ProgramResult {
    /// The exit code, or 128 plus the number of the signal that ended the program.
    let status: Int32
    let output: [UInt8]
    let errorOutput: [UInt8]
}

/// Runs a program to its end, without a shell and without input.
///
/// - Parameters:
///   - name: the program, looked up in PATH if it has no slash.
///   - arguments: its arguments, without its name.
/// - Returns: nil if there is no such program.
/// - Throws: `CommandFailure` when it cannot be started.
func runProgram(_ name: String, _ arguments: [String]) throws(CommandFailure) -> ProgramResult? {
    // Files, because unlike pipes they need no reader while the program runs.
    let output = try TemporaryFile()
    let errorOutput = try TemporaryFile()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output.descriptor, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, errorOutput.descriptor, STDERR_FILENO)

    var pid = pid_t()
    var arguments = ([name] + arguments).map { strdup($0) }
    defer { for argument in arguments { free(argument) } }
    arguments.append(nil)
    let error = posix_spawnp(&pid, name, &actions, nil, arguments, environ)
    if error == ENOENT { return nil }
    guard error == 0 else {
        let reason = String(cString: strerror(error))
        throw CommandFailure(status: .unavailable, message: "Cannot start \(name): \(reason).")
    }
    var status = Int32()
    _ = retryingOnInterrupt { Int(waitpid(pid, &status, 0)) }
    // The same as WIFEXITED and WEXITSTATUS, which are macros.
    let signal = status & 0x7F
    return ProgramResult(
        status: signal == 0 ? (status >> 8) & 0xFF : 128 + signal,
        output: try output.content(),
        errorOutput: try errorOutput.content()
    )
}

/// A file without a name, which is removed when it is closed.
private struct TemporaryFile: ~Copyable {
    private let stream: UnsafeMutablePointer<FILE>

    init() throws(CommandFailure) {
        guard let stream = tmpfile() else {
            throw CommandFailure(status: .inputOutput, message: "Cannot make a temporary file: \(lastErrorText()).")
        }
        self.stream = stream
    }

    deinit { fclose(stream) }

    var descriptor: Int32 { fileno(stream) }

    /// Returns everything that was written.
    func content() throws(CommandFailure) -> [UInt8] {
        lseek(descriptor, 0, SEEK_SET)
        return try InputFile(descriptor: descriptor, name: "a temporary file").readToEnd(limit: .max)
    }
}
