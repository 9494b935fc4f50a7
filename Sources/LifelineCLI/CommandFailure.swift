internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import LifelineCore

/// Why the command cannot go on, in words for its user, and the code that it exits with (sysexits.h).
struct CommandFailure: Error {
    enum Status: Int32 {
        case usage = 64
        case badData = 65
        case unavailable = 69
        case software = 70
        case inputOutput = 74
        case temporary = 75
        case protocolBroken = 76
        case noPermission = 77
    }

    let status: Status
    let message: String
}

extension CommandFailure {
    /// What `error` means to the user; nil when it is not one that a peer, a file or an endpoint can cause.
    init?(_ error: any Error) {
        switch error {
        case let error as CommandFailure:
            self = error
        case let error as PartialSendError:
            guard let cause = CommandFailure(error.cause) else { return nil }
            self = cause
        case let error as ConnectionError:
            self.init(status: Self.status(of: error), message: "\(error)")
        case let error as SessionError:
            self.init(error)
        case is FramingError, is MessageError, is BadMessage:
            self.init(status: .badData, message: "\(error)")
        default:
            return nil
        }
    }

    static func status(of error: ConnectionError) -> Status {
        switch error.code {
        case .connectFailed, .connectTimeout, .listenFailed, .addressInUse, .unixSocketPathTooLong, .webSocketRefused:
            .unavailable
        case .proxyRefused, .proxyAuthenticationRequired, .proxyConnectFailed, .proxyProtocolViolation:
            .unavailable
        case .tlsRejected, .tlsVersionUnsupported, .certificateExpired, .certificateHostMismatch, .certificateUntrusted,
            .certificatePinMismatch:
            .unavailable
        case .protocolViolation, .messageRefused, .invalidConfiguration, .truncated: .badData
        default: .inputOutput
        }
    }
}

/// The user interrupted the command.
struct Interrupted: Error {
    /// SIGINT or SIGTERM.
    let signal: Int32
}

/// Runs a command; when it fails, prints why and exits with the code that stands for it. After an interrupt it exits
/// with 128 and the signal's number, as a shell has it for a program that ends by a signal.
func exitingOnFailure(_ body: () async throws -> Void) async throws {
    let result: Result<Void, any Error>
    prepareForFailure()
    do { result = .success(try await body()) } catch { result = .failure(error) }
    try exitOnFailure(result)
}

/// The same for a command that blocks its thread.
func exitingOnFailure(_ body: () throws -> Void) throws {
    prepareForFailure()
    try exitOnFailure(Result(catching: body))
}

private func prepareForFailure() {
    // Who reads its output no longer makes writing fail, and that is told as other failures are.
    signal(SIGPIPE, SIG_IGN)
    // Nor does the limit of a file's length end the program in the middle.
    signal(SIGXFSZ, SIG_IGN)
}

private func exitOnFailure(_ result: Result<Void, any Error>) throws {
    defer { ErrorOutput.standard.flush() }
    do {
        try result.get()
    } catch let error as Interrupted {
        throw ExitCode(128 + error.signal)
    } catch {
        guard let failure = CommandFailure(error) else { throw error }
        writeErrorLine(TerminalStyle.error.line("lifeline: \(failure.message.escaped(limit: .max))"))
        throw ExitCode(failure.status.rawValue)
    }
}
