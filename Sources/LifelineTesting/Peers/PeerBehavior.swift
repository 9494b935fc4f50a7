/// The behavior of a simulated server: correct, or with a fault of real peers.
package struct PeerBehavior: Sendable, Hashable {
    /// The answer to an attempt to connect.
    package enum Greeting: Sendable, Hashable {
        /// The connection is accepted.
        case accept
        /// The connection is accepted, and closed at once.
        case acceptAndClose
        /// The connection is accepted, and reset at once.
        case acceptAndReset
        /// The connection is refused, as if no program listened.
        case refuse
        /// The attempt is not answered.
        case ignore
        /// The certificate is rejected.
        case rejectTLS
    }

    /// The way in which a server ends a connection.
    package enum Manner: Sendable, Hashable {
        /// It closes the connection in order.
        case close
        /// It resets the connection.
        case reset
        /// It sends an invalid frame.
        case violateProtocol
        /// It disappears, and the client gets no sign of that.
        case fallSilent
    }

    /// The answer to attempts to connect.
    package var greeting = Greeting.accept
    /// Whether it reads. If not, buffers fill up and the other side has to wait.
    package var reads = true
    /// Whether it answers pings.
    package var answersPings = true
    /// The time that it takes to accept a connection, and to answer a ping.
    package var answerDelay = Duration.zero
    /// The number of messages after which it ends a connection; nil if it does not.
    package var endsAfterMessages: Int?
    /// The number of bytes from the client after which a connection is cut, perhaps within a message; nil if it is not
    /// cut. Applies to connections that are accepted from now on.
    package var endsAfterBytes: Int?
    /// The way in which it ends connections. For `endsAfterBytes`, `close` and `violateProtocol` count as `reset`.
    package var manner = Manner.close

    /// Makes the behavior of a correct peer.
    package init() {}

    /// Behaves correctly.
    package static let accepting = PeerBehavior()
    /// Refuses every connection, like a machine on which the program does not run.
    package static let refusing = PeerBehavior(.refuse)
    /// Accepts connections and closes them at once, like a load balancer without servers.
    package static let dropping = PeerBehavior(.acceptAndClose)
    /// Does not answer, like a firewall that drops packets.
    package static let unreachable = PeerBehavior(.ignore)
    /// Rejects TLS.
    package static let rejectingTLS = PeerBehavior(.rejectTLS)

    /// Accepts connections, but neither reads nor answers, like a program that hangs.
    package static var stalling: PeerBehavior {
        var behavior = PeerBehavior()
        behavior.reads = false
        behavior.answersPings = false
        return behavior
    }

    private init(_ greeting: Greeting) {
        self.greeting = greeting
    }
}
