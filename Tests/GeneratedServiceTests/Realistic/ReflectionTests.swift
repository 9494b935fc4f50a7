import Lifeline
import TestServices
import Testing

/// A service with one method, which goes both ways, with oneofs in either direction.
@Suite(.timeLimit(.minutes(1))) struct ReflectionTests {
    @Test func inquiriesFindAnswersInTheirOrder() async throws {
        try await withSession(serving: Reflection()) { session in
            let reflection = Test_Realistic_Reflection_ReflectionClient(session)
            let findings = try await reflection.inquire { stream in
                try await stream.send(.with { $0.list = "*" })
                try await stream.send(.with { $0.fileByName = "a.proto" })
                try await stream.send(.with { $0.fileContaining = "a.Nothing" })
                try await stream.send(.with { $0.fileWithExtension.number = 100 })
                try await stream.send(.with { $0.extensionNumbersOf = "a.Message" })
            } receive: { findings in
                try await findings.collected()
            }
            #expect(findings.map(\.services.services.count) == [2, 0, 0, 0, 0])
            #expect(findings.map { $0.files.descriptors.first ?? [] } == [[], [1, 2], [], [], []])
            #expect(findings.map(\.failure.code) == [0, 0, 5, 5, 0])
            #expect(findings.last?.numbers.numbers == [100, 101])
            #expect(findings.map(\.inquiry.fileContaining) == ["", "", "a.Nothing", "", ""])
        }
    }
}

private struct Reflection: Test_Realistic_Reflection_ReflectionHandler {
    func inquire(
        _ requests: SessionMessages<Test_Realistic_Reflection_Inquiry>,
        to stream: SessionStreamWriter<Test_Realistic_Reflection_Finding>,
        context: SessionContext
    ) async throws {
        for try await inquiry in requests { try await stream.send(finding(for: inquiry)) }
    }

    private func finding(for inquiry: Test_Realistic_Reflection_Inquiry) -> Test_Realistic_Reflection_Finding {
        .with { finding in
            finding.inquiry = inquiry
            switch inquiry.question {
            case .list:
                for name in ["a.One", "a.Two"] { finding.services.services.append(.with { $0.name = name }) }
            case .fileByName("a.proto"):
                finding.files.descriptors = [[1, 2]]
            case .extensionNumbersOf:
                finding.numbers.numbers = [100, 101]
            default:
                finding.failure = .with { ($0.code, $0.message) = (5, "not found") }
            }
        }
    }
}
