/// The reason why a connection leads to no session.
package enum SessionHelloFailure: Error, Hashable {
    /// The client left, or the server ends. The client is not told.
    case ended
    /// The client's first frame was not a hello.
    case violation(String)
    /// The server refuses the client, for this reason.
    case refused(String)
    /// The server could not decide whether to let the client in.
    case undecided

    /// Makes the failure for an error that was thrown while a client waited to be let in.
    ///
    /// - Parameter isCancelled: whether the task in which it was thrown is cancelled, as it is when the server ends.
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
