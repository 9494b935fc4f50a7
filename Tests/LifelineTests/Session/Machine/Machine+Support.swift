import Lifeline
import LifelineCore

extension MonotonicTime {
    /// A time in milliseconds after the beginning.
    static func ms(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }
}

extension SessionCredentials {
    static func test(_ number: UInt64) -> SessionCredentials {
        SessionCredentials(id: SessionID(number, 1), token: SessionToken(number, 2))
    }
}

extension ClientOpening {
    static func test(
        _ credentials: SessionCredentials? = nil,
        attempt: UInt64 = 1,
        progress: OpeningProgress = OpeningProgress(),
        terms: SessionTerms = HostileFrame.terms
    ) -> ClientOpening {
        ClientOpening(credentials: credentials, attempt: attempt, progress: progress, terms: terms)
    }
}

extension SessionSnapshot {
    /// The snapshot of a session in which nothing has happened.
    static var empty: SessionSnapshot {
        let terms = SessionTerms(
            window: SessionWindow(frameCount: 100, byteCount: 100_000),
            credit: 64 << 10,
            maximumRequestCount: 10,
            maximumFrameLength: 100_000
        )
        return SessionSnapshot(
            peerTerms: terms,
            ownTerms: terms,
            ordinary: LaneSnapshot(next: 1, sentEnd: 1, frames: []),
            urgent: LaneSnapshot(next: 1, sentEnd: 1, frames: []),
            waiting: [],
            methods: [],
            peerMethods: [],
            received: 0,
            urgentReceived: 0,
            peerReceived: 0
        )
    }
}
