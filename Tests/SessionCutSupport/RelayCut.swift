/// How the relay ends a connection.
package enum RelayCut: String, CaseIterable, Sendable {
    /// Both sides get a reset.
    case reset
    /// What both sides send vanishes, or only what one does, while both stay connected.
    case silence
    case silenceToServer = "silence-to-server"
    case silenceToClient = "silence-to-client"
    /// What both sides send stays inside; then the relay is to be killed.
    case kill

    /// Each of the three kinds of cut as often as the others.
    package static func random(using random: inout some RandomNumberGenerator) -> RelayCut {
        switch Int.random(in: 0..<3, using: &random) {
        case 0: .reset
        case 1: .kill
        default: [.silence, .silenceToServer, .silenceToClient][Int.random(in: 0..<3, using: &random)]
        }
    }
}
