package import LifelineCore

/// The outcome of a send that did not fail.
public enum SendOutcome: Sendable, Hashable {
    /// A connection took the message: it is written before a graceful close. If that connection is lost first, its
    /// event counts the message as undelivered.
    case accepted
    /// The message waited for a connection longer than its policy allows, and was dropped. No connection took it.
    case dropped
}

/// The outcome of a send, and its connection.
package struct SendResult: Sendable {
    package let outcome: SendOutcome
    /// Nil when the message was dropped.
    package let connection: ClientMachine.ConnectionID?
}
