internal import LifelineCore

extension SessionError {
    /// Makes the error that a goodbye means for this side.
    package init(_ goodbye: SessionGoodbye, byPeer: Bool) {
        let (code, message) = Self.meaning(of: goodbye.code, byPeer: byPeer)
        let words =
            goodbye.message.isEmpty
            ? "" : " \(byPeer ? "The peer says" : "The reason"): \(goodbye.message.escaped())"
        let status = code == .refused ? SessionStatus(.unauthenticated, goodbye.message) : nil
        self.init(code: code, message: message + words, status: status)
    }

    private static func meaning(of code: SessionGoodbye.Code?, byPeer: Bool) -> (Code, String) {
        switch code {
        case .replaced:
            (.replaced, "Another connection has taken over the session. Let only one client use its credentials.")
        case .refused:
            (.refused, "The server does not let this client in. Check what it wants in the hello's metadata.")
        case .version:
            (.versionMismatch, "The two sides have no version of the session protocol in common. Update the older one.")
        case .violation where byPeer:
            (.protocolViolation, "The peer says that this side broke the rules of sessions. Report it as a bug.")
        case .violation:
            (.protocolViolation, "The peer broke the rules of sessions. Report it to the authors of the peer.")
        // The last two end no sessions.
        case .closed, .full, .draining, nil:
            byPeer
                ? (.closedByPeer, "The peer closed the session. Begin another one.")
                : (.closedLocally, "This side closed the session. Begin another one.")
        }
    }
}
