import Lifeline
import Testing

@Suite struct FrameKindTests {
    @Test func theNumberSaysTheLane() {
        for number in UInt32(0)...60 {
            let lane: SessionLane? =
                switch number {
                case 8...31: .ordinary
                case 32...47: .urgent
                default: nil
                }
            #expect(FrameKind(rawValue: number).lane == lane)
        }
        #expect(FrameKind(rawValue: 1 << 29 - 1).lane == nil)
    }

    @Test func theKindsHaveTheNumbersOfTheProtocol() {
        let kinds: [FrameKind] = [
            .hello, .welcome, .goodbye, .ping, .pong, .acknowledgement, .credit, .push, .request, .requestPart,
            .requestEnd, .responsePart, .response, .method, .blank, .urgentResponse, .cancel, .unplacedPush,
            .unplacedRequestPart, .unplacedResponsePart,
        ]
        #expect(kinds.map(\.rawValue) == Array(1...15) + [32, 33, 48, 49, 50])
    }
}
