/// The versions of the protocol that this implementation speaks.
package enum SessionVersion {
    package static let lowest: UInt32 = 1
    package static let highest: UInt32 = 1
}

/// The end of a connection of a session, or its announcement.
package struct SessionGoodbye: Sendable, Hashable {
    /// The reason. The numbers are those on the wire.
    package enum Code: UInt32, Sendable, CaseIterable {
        /// The session is over on both sides.
        case closed = 1
        /// The server goes away. Begun work is finished.
        case draining
        /// Another connection has taken over the session.
        case replaced
        /// The server does not let the client in.
        case refused
        /// The two sides have no version in common.
        case version
        /// The other side broke the rules, and the session is over.
        case violation
        /// The server has as many sessions as it allows.
        case full
    }

    /// Nil for a code of a later version.
    package let code: Code?
    package let message: String
    /// How long to stay away.
    package let pause: Duration

    /// Makes a goodbye. Pauses below 0 count as 0, those over 365 days as 365 days. A message is cut to 1,000 scalars,
    /// because it is kept and logged, and any peer's frames can carry that much.
    package init(_ code: Code?, _ message: String = "", pause: Duration = .zero) {
        self.code = code
        self.message = String(message.unicodeScalars.prefix(1_000))
        self.pause = pause.clamped(atLeast: .zero)
    }
}
