/// Decides what a server does with the frames of one connection, before it has a session and after.
///
/// The first frame is the hello. The server then decides whether to let the client in. If it does, all later frames go
/// to the session.
package struct SessionAdmission<Frame, Session> {
    /// The kinds of frames that it distinguishes.
    package enum Kind {
        /// `isResume`: whether the hello names a session to resume.
        case hello(isResume: Bool)
        case goodbye
        case heartbeat
        case other
    }

    /// The server's response to a frame, or to the end of the client's side.
    package enum Step {
        case nothing
        /// Drop the frame. Heartbeats are no longer answered either.
        case drop
        /// Decide whether to let the client in.
        case decide
        /// Refuse the client, because the first frame is not a hello.
        case refuse
        /// Give up the connection, because the client is gone.
        case leave
        /// Pass the frame to the session.
        case handOver(Session)
    }

    fileprivate enum Stage {
        /// No hello was received. Can go to: deciding, over.
        case waiting
        /// The server decides. Meanwhile the client may only send a goodbye. Can go to: attached, over.
        ///
        /// The goodbye is kept. If the hello names a session, the goodbye ends that session: so the client is let in
        /// first, even if it has left meanwhile.
        case deciding(isResume: Bool, goodbye: Frame?)
        case attached(Session)
        case over
    }

    private var stage = Stage.waiting

    package init() {}

    /// Handles a received frame.
    package mutating func received(_ frame: Frame, _ kind: Kind) -> Step {
        switch (stage, kind) {
        case (.attached(let session), _): return .handOver(session)
        case (.waiting, .hello(let isResume)):
            stage = .deciding(isResume: isResume, goodbye: nil)
            return .decide
        case (.waiting, .goodbye), (.waiting, .other):
            stage = .over
            return .refuse
        case (.deciding(let isResume, nil), .goodbye):
            stage = .deciding(isResume: isResume, goodbye: frame)
            return isResume ? .nothing : .leave
        // Other frames are dropped: the welcome tells the client where to continue.
        case (.waiting, .heartbeat), (.deciding, _): return .nothing
        case (.over, _): return .drop
        }
    }

    /// Handles the end of the client's side, or a failure of the connection.
    package func inputEnded() -> Step {
        switch stage {
        case .attached(let session): .handOver(session)
        // The session gets the goodbye first.
        case .deciding(isResume: true, goodbye: _?): .nothing
        case .waiting, .deciding, .over: .leave
        }
    }

    /// Lets the client in: later frames go to the session. Returns the goodbye, if one was kept; nil when the
    /// connection is over.
    package mutating func attach(to session: Session) -> [Frame]? {
        guard case .deciding(_, let goodbye) = stage else { return nil }
        stage = .attached(session)
        return goodbye.map { [$0] } ?? []
    }

    /// Drops all later frames.
    package mutating func end() { stage = .over }

    /// The session that has the connection.
    package var session: Session? { if case .attached(let session) = stage { session } else { nil } }
}

extension SessionAdmission: Sendable where Frame: Sendable, Session: Sendable {}
extension SessionAdmission.Stage: Sendable where Frame: Sendable, Session: Sendable {}
