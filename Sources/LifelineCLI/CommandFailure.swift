internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import LifelineCore

/// The reason why the command cannot go on, in words for its user, and its exit code (sysexits.h).
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
    /// Makes the failure that `error` means for the user; nil if a peer, a file or an endpoint cannot cause it.
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
    /// The signal: SIGINT or SIGTERM.
    let signal: Int32
}

/// Runs a command. When it fails, prints the reason and exits with the failure's code. After an interrupt it exits with
/// 128 plus the signal's number, as shells report a program that ends by a signal.
func exitingOnFailure(_ body: () async throws -> Void) async throws {
    let result: Result<Void, any Error>
    prepareForFailure()
    do { result = .success(try await body()) } catch { result = .failure(error) }
    try exitOnFailure(result)
}

/// Does the same for a command that blocks its thread.
func exitingOnFailure(_ body: () throws -> Void) throws {
    prepareForFailure()
    try exitOnFailure(Result(catching: body))
}

private func prepareForFailure() {
    // When its output is no longer read, writing fails, and is reported like other failures.
    signal(SIGPIPE, SIG_IGN)
    // The limit of a file's length makes writing fail, too, and does not kill the program.
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
