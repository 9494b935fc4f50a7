import Lifeline
import LifelineCore
import Testing

/// The meanings of the reasons for which sessions end.
@Suite struct SessionEndReasonTests {
    /// Whether the end is a failure, whether work is dropped, and the goodbyes of a client and of a server.
    private static let meanings: [(end: SessionEndReason, isFailure: Bool, dropsWork: Bool, told: [String?])] = [
        (.closed, false, false, ["closed", "closed"]),
        (.abandoned, false, true, ["closed", "closed The server has ended the session."]),
        (
            .expired, true, true,
            ["closed The client was away for too long.", "closed The client was away for too long."]
        ),
        (.madeWay, true, true, ["closed The server was full.", "closed The server was full."]),
        (.shutDown, false, true, [nil, nil]),
        (
            .misconfigured(ConnectionError(code: .invalidConfiguration, message: "It is too long.")), true, false,
            ["closed", "closed"]
        ),
        (.violated(.noSerial), true, false, Array(repeating: "violation A request came with serial 0.", count: 2)),
        (.saidByPeer(SessionGoodbye(.closed)), false, false, [nil, nil]),
        (.saidByPeer(SessionGoodbye(.refused)), true, false, [nil, nil]),
    ]

    @Test func eachReasonHasItsMeaning() throws {
        for (end, isFailure, dropsWork, told) in Self.meanings {
            #expect(end.isFailure == isFailure && end.dropsWork == dropsWork, "\(end)")
            for (role, told) in zip([SessionRole.client, .server], told) {
                #expect(try goodbye(of: role, end) == told, "\(end)")
            }
        }
    }

    private func goodbye(of role: SessionRole, _ end: SessionEndReason) throws -> String? {
        let peer = MachineHostilePeer.opened(role)
        _ = peer.offered()
        peer.end(end)
        guard let frame = peer.offered().first(where: { $0.kind == .goodbye }) else { return nil }
        let goodbye = try frame.body.withUnsafeBytes { try SessionGoodbye(parsing: $0) }
        return (goodbye.code.map { "\($0)" } ?? "?") + (goodbye.message.isEmpty ? "" : " \(goodbye.message)")
    }
}
