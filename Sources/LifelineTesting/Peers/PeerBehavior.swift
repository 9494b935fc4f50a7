/// What a simulated server does with its connections: the right thing, or one of those that peers do instead.
package struct PeerBehavior: Sendable, Hashable {
    /// What becomes of an attempt to connect.
    package enum Greeting: Sendable, Hashable {
        /// It is let in.
        case accept
        /// It is let in, and the connection is closed at once.
        case acceptAndClose
        /// It is let in, and the connection is reset at once.
        case acceptAndReset
        /// It is refused: nobody listens.
        case refuse
        /// Nothing answers.
        case ignore
        /// The certificate is not accepted.
        case rejectTLS
    }

    /// How a server ends what it began.
    package enum Manner: Sendable, Hashable {
        /// It closes in order.
        case close
        /// It resets the connection.
        case reset
        /// It sends what is no frame.
        case violateProtocol
        /// It is there no more, and nobody tells.
        case fallSilent
    }

    /// What becomes of attempts to connect.
    package var greeting = Greeting.accept
    /// Whether it reads what comes. If not, buffers fill up and the other side has to wait.
    package var reads = true
    /// Whether it answers pings.
    package var answersPings = true
    /// How long it takes to let a connection in, and to answer a ping.
    package var answerDelay = Duration.zero
    /// After how many messages on a connection it ends that one; nil: it does not.
    package var endsAfterMessages: Int?
    /// After how many bytes from the client the connection is cut on the way, so that a message may have come in parts;
    /// nil: it is not. It counts for connections made from now on.
    package var endsAfterBytes: Int?
    /// How it ends connections. On the way, `close` and `violateProtocol` count as `reset`.
    package var manner = Manner.close

    /// The behaviour of a good peer.
    package init() {}

    /// Does the right thing.
    package static let accepting = PeerBehavior()
    /// Refuses every connection, as a machine does on which the program does not run.
    package static let refusing = PeerBehavior(.refuse)
    /// Lets connections in and closes them at once, as a load balancer does that has nobody behind it.
    package static let dropping = PeerBehavior(.acceptAndClose)
    /// Does not even answer, as a firewall that drops packets.
    package static let unreachable = PeerBehavior(.ignore)
    /// Rejects TLS.
    package static let rejectingTLS = PeerBehavior(.rejectTLS)

    /// Lets connections in, reads nothing and answers nothing, as a program that hangs.
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
