import LifelineProtos
import Testing

@testable import Lifeline

@Suite struct PendingCallTests {
    private let call = PendingCall(.request(method: "t.T/Ask", metadata: [:], payload: []), inbox: nil)
    private let response = Lifeline_Session_V1_Response.with { $0.serial = 7 }

    @Test func whatEndsBeforeAnybodyWaitsIsFound() async throws {
        call.resolve(with: .success(response))
        #expect(try await call.wait().get().serial == 7)
    }

    @Test(.timeLimit(.minutes(1))) func whoWaitsGoesOnWithItsEnd() async throws {
        async let outcome = call.wait()
        await Task.yield()
        call.resolve(with: .success(response))
        #expect(try await outcome.get().serial == 7)
    }

    @Test func itIsSentForTheFirstTimeOnce() {
        #expect(!call.wasSent)
        #expect(call.sent())
        #expect(!call.sent())
        #expect(call.wasSent)
    }
}
