/// How a client opens a connection of its session: what the machine knows of a hello.
package struct SessionHello: Sendable, Equatable {
    /// The versions that the client speaks.
    package var minimumVersion: UInt32
    package var maximumVersion: UInt32
    /// The session to go on with; nil: a new one.
    package var session: SessionCredentials?
    /// Above that of every earlier hello of the session: one that was overtaken is known by it.
    package var attempt: UInt64
    /// How far the client is with what the server has sent.
    package var progress: SessionProgress
    /// What the client takes in each lane before it has processed it.
    package var window: SessionWindow
    /// Requests of the server's that may wait for their responses at once.
    package var maximumRequestCount: Int
    /// The longest frame that it takes, in bytes.
    package var maximumFrameLength: Int

    package init(
        minimumVersion: UInt32 = SessionVersion.lowest,
        maximumVersion: UInt32 = SessionVersion.highest,
        session: SessionCredentials?,
        attempt: UInt64,
        progress: SessionProgress,
        window: SessionWindow,
        maximumRequestCount: Int,
        maximumFrameLength: Int
    ) {
        self.minimumVersion = minimumVersion
        self.maximumVersion = maximumVersion
        self.session = session
        self.attempt = attempt
        self.progress = progress
        self.window = window
        self.maximumRequestCount = maximumRequestCount
        self.maximumFrameLength = maximumFrameLength
    }

    /// The highest version that both sides speak; nil when there is none.
    package var commonVersion: UInt32? {
        let version = min(maximumVersion, SessionVersion.highest)
        return version >= max(minimumVersion, SessionVersion.lowest) ? version : nil
    }
}

/// The versions of the protocol that this implementation speaks.
package enum SessionVersion {
    package static let lowest: UInt32 = 1
    package static let highest: UInt32 = 1
}

/// How a server lets a client in: what the machine knows of a welcome.
package struct SessionWelcome: Sendable, Equatable {
    /// The version to speak.
    package var version: UInt32
    /// What the next hello names.
    package var session: SessionCredentials
    /// Whether it is the session that the hello named.
    package var isResumed: Bool
    /// How far the server is with what the client has sent.
    package var progress: SessionProgress
    /// What the server takes in each lane before it has processed it.
    package var window: SessionWindow
    /// Requests of the client's that may wait for their responses at once.
    package var maximumRequestCount: Int
    /// The longest frame that it takes, in bytes.
    package var maximumFrameLength: Int

    package init(
        version: UInt32,
        session: SessionCredentials,
        isResumed: Bool,
        progress: SessionProgress,
        window: SessionWindow,
        maximumRequestCount: Int,
        maximumFrameLength: Int
    ) {
        self.version = version
        self.session = session
        self.isResumed = isResumed
        self.progress = progress
        self.window = window
        self.maximumRequestCount = maximumRequestCount
        self.maximumFrameLength = maximumFrameLength
    }
}

/// The end of a connection of a session, or its announcement.
package struct SessionGoodbye: Sendable, Hashable {
    /// Why; the numbers are those on the wire.
    package enum Code: UInt32, Sendable, CaseIterable {
        /// The session is over on both sides.
        case closed = 1
        /// The server goes away. What was begun is finished.
        case draining
        /// Another connection has taken the session over.
        case replaced
        /// The server does not let the client in.
        case refused
        /// No version that both speak.
        case version
        /// The other side broke the rules, and the session is over.
        case violation
        /// The server has as many sessions as it takes.
        case full
    }

    /// Nil for a code of a later version.
    package let code: Code?
    package let message: String
    /// How long to stay away.
    package let pause: Duration

    /// Makes a goodbye. Pauses below 0 count as 0, those over 365 days as 365 days. Of a message 1,000 scalars are taken: it
    /// is kept and logged, and any peer's frames can carry so much.
    package init(_ code: Code?, _ message: String = "", pause: Duration = .zero) {
        self.code = code
        self.message = String(message.unicodeScalars.prefix(1_000))
        self.pause = pause.clamped(atLeast: .zero)
    }
}
