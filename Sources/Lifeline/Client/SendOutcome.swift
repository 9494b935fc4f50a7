package import LifelineCore

/// How a send ended that did not fail.
public enum SendOutcome: Sendable, Hashable {
    /// A connection took the message: it is written before a graceful close. If that connection is lost first, the
    /// event that tells of it counts the message as undelivered.
    case accepted
    /// It waited for a connection longer than its policy lets it live, and was dropped. No connection took it.
    case dropped
}

/// How a send ended, and on which connection.
package struct SendResult: Sendable {
    package let outcome: SendOutcome
    /// Nil when it was dropped.
    package let connection: ClientMachine.ConnectionID?
}
