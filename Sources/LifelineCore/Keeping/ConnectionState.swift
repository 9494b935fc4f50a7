/// The state of a client's connection.
public enum ConnectionState: String, Hashable, Sendable, CaseIterable {
    /// Not started. Can go to: waitingForNetwork, connecting, closed.
    case idle
    /// There is no network; the next attempt begins when it comes. Can go to: connecting, closed.
    case waitingForNetwork
    /// An attempt to connect is under way. Can go to: ready, waitingForNetwork, backingOff, gaveUp, closed.
    case connecting
    /// Connected. Can go to: waitingForNetwork, connecting, backingOff, gaveUp, draining, closed.
    case ready
    /// The next attempt is due at a known time. Can go to: connecting, waitingForNetwork, closed.
    case backingOff
    /// The user closed the client: accepted messages are still written. Can go to: closed.
    case draining
    /// No attempt is due: all were used up, or further ones are useless. The network's return or `reconnect()` starts
    /// again. Can go to: connecting, waitingForNetwork, closed.
    case gaveUp
    /// Over. Can go to: no other state.
    case closed
}

extension ConnectionState: CustomStringConvertible {
    /// The state's name.
    public var description: String { rawValue }
}
