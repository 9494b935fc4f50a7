import LifelineCore
import Testing

@testable import LifelineFleetRedis

/// The result of each event in each state of a connection, with one waiting command.
@Suite struct RedisConnectionMatrixTests {
    enum Situation: String, CaseIterable {
        case idle, connecting, greeting, ready, waiting, closed
    }

    enum Event: String, CaseIterable {
        case turn, opened, reply, broken, lost, deadline, close
    }

    private static let expected: [Situation: [Event: String]] = [
        .idle: [
            .turn: "connect 1", .opened: "stale", .reply: "connect 1", .broken: "connect 1", .lost: "connect 1",
            .deadline: "1: timedOut", .close: "disconnect; 1: closed",
        ],
        .connecting: [
            .turn: "", .opened: "write CLIENT SETNAME lifeline, PING", .reply: "disconnect", .broken: "disconnect",
            .lost: "disconnect", .deadline: "1: timedOut", .close: "disconnect; 1: closed",
        ],
        .greeting: [
            .turn: "", .opened: "stale", .reply: "", .broken: "disconnect", .lost: "disconnect",
            .deadline: "disconnect; 1: timedOut", .close: "disconnect; 1: closed",
        ],
        .ready: [
            .turn: "", .opened: "stale", .reply: "1: 7", .broken: "disconnect; 1: outcomeUnknown",
            .lost: "disconnect; 1: outcomeUnknown", .deadline: "write PING", .close: "disconnect; 1: outcomeUnknown",
        ],
        .waiting: [
            .turn: "", .opened: "stale", .reply: "", .broken: "", .lost: "", .deadline: "connect 2",
            .close: "disconnect; 1: closed",
        ],
        .closed: [
            .turn: "", .opened: "stale", .reply: "", .broken: "", .lost: "", .deadline: "no deadline", .close: "",
        ],
    ]

    @Test(arguments: Situation.allCases, Event.allCases)
    func decides(situation: Situation, event: Event) {
        var end = end(in: situation)
        switch event {
        case .turn: end.turn()
        case .opened: end.opened()
        case .reply: end.receive(":7")
        case .broken: end.receive("?")
        case .lost: end.lose()
        case .deadline: end.advanceToDeadline()
        case .close: end.close()
        }
        #expect(end.takeNotes().joined(separator: "; ") == Self.expected[situation]?[event])
    }

    private func end(in situation: Situation) -> CommandMachineEnd {
        var end = CommandMachineEnd()
        // Before the command is sent, because the connection would then not be idle.
        if situation == .idle { end.send(turns: false) } else { end.send() }
        switch situation {
        case .idle, .connecting: break
        case .greeting: end.opened()
        case .ready: end.connect()
        case .waiting: end.lose()
        case .closed: end.close()
        }
        _ = end.takeNotes()
        return end
    }
}
