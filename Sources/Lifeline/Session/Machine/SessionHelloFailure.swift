/// Why a connection leads to no session.
package enum SessionHelloFailure: Error, Hashable {
    /// The client left, or the server ends: nobody is told anything.
    case ended
    /// The client said something else than hello.
    case violation(String)
    /// The server does not want the client, for this reason.
    case refused(String)
    /// The server could not find out whether it wants the client.
    case undecided

    /// Makes the failure that an error stands for, which was thrown while a client waited to be let in.
    ///
    /// - Parameter isCancelled: whether the task in which it was thrown is cancelled, which is so when the server ends.
    package init(_ error: any Error, isCancelled: Bool) {
        switch error {
        case let failure as SessionHelloFailure: self = failure
        case let status as SessionStatus where status.code == .unauthenticated || status.code == .permissionDenied:
            self = .refused(status.message)
        case is CancellationError where isCancelled: self = .ended
        default: self = .undecided
        }
    }
}
