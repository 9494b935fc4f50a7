/// The ways in which the relay ends a connection.
package enum RelayCut: String, CaseIterable, Sendable {
    /// Both sides get a reset.
    case reset
    /// The bytes of both sides or of one side vanish, while both stay connected.
    case silence
    case silenceToServer = "silence-to-server"
    case silenceToClient = "silence-to-client"
    /// The bytes of both sides stay in the relay, which is then killed.
    case kill

    /// Each of the three kinds of cut is equally frequent.
    package static func random(using random: inout some RandomNumberGenerator) -> RelayCut {
        switch Int.random(in: 0..<3, using: &random) {
        case 0: .reset
        case 1: .kill
        default: [.silence, .silenceToServer, .silenceToClient][Int.random(in: 0..<3, using: &random)]
        }
    }
}
