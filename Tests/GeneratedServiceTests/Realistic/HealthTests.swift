import Lifeline
import TestServices
import Testing

/// Health checks: a unary call, one with a map, and a server stream.
@Suite(.timeLimit(.minutes(1))) struct HealthTests {
    @Test func healthIsProbedAndFollowed() async throws {
        try await withSession(serving: Health()) { session in
            let health = Test_Realistic_Health_HealthClient(session)
            #expect(try await health.probe(.with { $0.component = "store" }).condition == .up)
            let error = await #expect(throws: SessionError.self) {
                try await health.probe(.with { $0.component = "cellar" })
            }
            #expect(error?.status?.code == .notFound)

            let all = try await health.probeAll(.init()).components
            #expect(all["store"]?.condition == .up && all["attic"]?.condition == .down)
            let changes = try await health.follow(.with { $0.component = "attic" }).collected()
            #expect(changes.map(\.condition) == [.down, .up])
        }
    }
}

private typealias Reply = Test_Realistic_Health_ProbeReply

private struct Health: Test_Realistic_Health_HealthHandler {
    private let conditions: [String: Reply.Condition] = ["": .up, "attic": .down, "store": .up]

    func probe(_ request: Test_Realistic_Health_ProbeRequest, context: SessionContext) async throws -> Reply {
        guard let condition = conditions[request.component] else { throw SessionStatus(.notFound) }
        return .with { $0.condition = condition }
    }

    func probeAll(
        _ request: Test_Realistic_Health_ProbeAllRequest,
        context: SessionContext
    ) async throws -> Test_Realistic_Health_ProbeAllReply {
        .with { reply in
            for (name, condition) in conditions { reply.components[name] = .with { $0.condition = condition } }
        }
    }

    func follow(
        _ request: Test_Realistic_Health_ProbeRequest,
        to stream: SessionStreamWriter<Reply>,
        context: SessionContext
    ) async throws {
        for condition in [conditions[request.component] ?? .notFound, .up] {
            try await stream.send(.with { $0.condition = condition })
        }
    }
}
