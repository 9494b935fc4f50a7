import Lifeline
import LifelineWellKnownTypes
import TestServices
import Testing

/// A chat: calls and pushes of every kind in one service.
@Suite(.timeLimit(.minutes(1))) struct ChatTests {
    @Test func peopleTalkInARoom() async throws {
        try await withSession(serving: Chat()) { session in
            let chat = Test_Realistic_Chat_ChatClient(session)
            var presences = chat.presences.makeAsyncIterator()
            let ada = Test_Realistic_Chat_Person.with { ($0.id, $0.avatar.value) = ("ada", "a.png") }
            let joined = try await chat.join(.with { ($0.room, $0.person) = ("hall", ada) })
            #expect(joined.present.map(\.avatar.value) == ["a.png"])
            #expect(try await presences.next()?.change == .joined)

            try await chat.type(.with { ($0.room, $0.isTyping) = ("hall", true) })
            #expect(try await presences.next()?.room == "hall, typing")

            let signals = try await chat.converse { stream in
                try await stream.send(.with { $0.line.text = "Grüezi" })
                try await stream.send(.with { $0.line.picture = .with { ($0.width, $0.height) = (4, 3) } })
                try await stream.send(.with { $0.seen = 2 })
            } receive: { signals in
                try await signals.collected()
            }
            #expect(signals.map(\.line.number) == [1, 2, 0] && signals.map(\.seen) == [0, 0, 2])
            #expect(signals[1].line.picture.width == 4)

            let lines = try await chat.history(.with { $0.from = 2 }).collected()
            #expect(lines.map(\.number) == [2] && lines.first?.content == signals[1].line.content)
        }
    }
}

private typealias Signal = Test_Realistic_Chat_Signal
private typealias Line = Test_Realistic_Chat_Line

private actor Chat: Test_Realistic_Chat_ChatHandler {
    private var lines: [Line] = []

    func join(
        _ request: Test_Realistic_Chat_JoinRequest,
        context: SessionContext
    ) async throws -> Test_Realistic_Chat_JoinReply {
        let pushes = Test_Realistic_Chat_ChatPushes(context.session)
        try await pushes.presences(.with { ($0.room, $0.change) = (request.room, .joined) })
        return .with { $0.present = [request.person] }
    }

    func history(
        _ request: Test_Realistic_Chat_HistoryRequest,
        to stream: SessionStreamWriter<Line>,
        context: SessionContext
    ) async throws {
        for line in lines where line.number >= request.from { try await stream.send(line) }
    }

    func converse(
        _ requests: SessionMessages<Signal>,
        to stream: SessionStreamWriter<Signal>,
        context: SessionContext
    ) async throws {
        for try await request in requests {
            var signal = request
            if case .line = signal.signal {
                signal.line.number = UInt64(lines.count + 1)
                lines.append(signal.line)
            }
            try await stream.send(signal)
        }
    }

    func type(_ message: Test_Realistic_Chat_Typing, context: SessionContext) async throws {
        let pushes = Test_Realistic_Chat_ChatPushes(context.session)
        try await pushes.presences(.with { $0.room = "\(message.room), typing" })
    }
}
