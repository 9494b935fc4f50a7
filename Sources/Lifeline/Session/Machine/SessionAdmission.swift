/// Whom the frames of one of a server's connections are for, from the hello on: the server decides whether to let the client
/// in, and then they are the session's.
package struct SessionAdmission<Frame, Session> {
    /// What a frame is before there is a session.
    package enum Kind {
        /// Whether it names a session to go on with.
        case hello(isResume: Bool)
        case goodbye
        case heartbeat
        case other
    }

    /// What is to be done with a frame, or with the end of the client's side.
    package enum Step {
        case nothing
        /// Drop it: not even a heartbeat is answered any more.
        case drop
        /// Decide whether to let the client in.
        case decide
        /// The first frame is no hello: say so.
        case refuse
        /// The client is not there any more: the connection is of no use.
        case leave
        /// It is for the session to know.
        case handOver(Session)
    }

    fileprivate enum Stage {
        /// No hello has come. Can go to: deciding, over.
        case waiting
        /// The client has nothing to say meanwhile but goodbye. Can go to: attached, over.
        ///
        /// The goodbye is kept. Where the hello names a session it is for that session, as it ends it: the client is let in
        /// first, even if it has left meanwhile.
        case deciding(isResume: Bool, goodbye: Frame?)
        case attached(Session)
        case over
    }

    private var stage = Stage.waiting

    package init() {}

    /// A frame has come.
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
        // What cannot wait for the welcome is dropped; the welcome tells how far this side is.
        case (.waiting, .heartbeat), (.deciding, _): return .nothing
        case (.over, _): return .drop
        }
    }

    /// The client has ended its side, or the connection has failed.
    package func inputEnded() -> Step {
        switch stage {
        case .attached(let session): .handOver(session)
        // The session hears of the goodbye first.
        case .deciding(isResume: true, goodbye: _?): .nothing
        case .waiting, .deciding, .over: .leave
        }
    }

    /// The client is let in: frames are the session's from now on. Returns those that came before, as far as they count; nil
    /// when the connection is over.
    package mutating func attach(to session: Session) -> [Frame]? {
        guard case .deciding(_, let goodbye) = stage else { return nil }
        stage = .attached(session)
        return goodbye.map { [$0] } ?? []
    }

    /// What comes from now on is dropped.
    package mutating func end() { stage = .over }

    /// The session that has the connection.
    package var session: Session? { if case .attached(let session) = stage { session } else { nil } }
}

extension SessionAdmission: Sendable where Frame: Sendable, Session: Sendable {}
extension SessionAdmission.Stage: Sendable where Frame: Sendable, Session: Sendable {}
