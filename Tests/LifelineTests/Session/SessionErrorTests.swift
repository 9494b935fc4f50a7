import Lifeline
import Testing

@Suite struct SessionErrorTests {
    @Test func everyGoodbyeIsAnError() {
        let codes: [SessionGoodbye.Code?: (SessionError.Code, byPeer: SessionError.Code)] = [
            .closed: (.closedLocally, .closedByPeer), .draining: (.closedLocally, .closedByPeer),
            .replaced: (.replaced, .replaced), .refused: (.refused, .refused),
            .version: (.versionMismatch, .versionMismatch), .violation: (.protocolViolation, .protocolViolation),
            .full: (.closedLocally, .closedByPeer), nil: (.closedLocally, .closedByPeer),
        ]
        #expect(codes.count == SessionGoodbye.Code.allCases.count + 1)
        for (code, expected) in codes {
            #expect(SessionError(SessionGoodbye(code), byPeer: false).code == expected.0)
            #expect(SessionError(SessionGoodbye(code), byPeer: true).code == expected.byPeer)
        }
        let refused = SessionError(SessionGoodbye(.refused, "No ticket."), byPeer: true)
        #expect(
            refused.message.hasSuffix("The peer says: No ticket.")
                && refused.description.hasPrefix("refused: The server")
        )
        let broken = SessionError(SessionGoodbye(.violation, SessionViolation.notOpened.message), byPeer: false)
        #expect(broken.message.hasSuffix("The reason: A frame came before the session was opened."))
    }

    @Test func everyOutcomeThatIsNoSuccessIsAnError() {
        #expect(
            SessionError(SessionDeliveryOutcome.processed) == nil && SessionError(SessionDeliveryOutcome.sent) == nil
        )
        let failures: [(SessionDeliveryOutcome, SessionError.Code)] = [
            (.expired, .messageExpired), (.replaced, .messageReplaced), (.dropped, .messageDropped),
            (.inDoubt, .messageInDoubt), (.unsent, .messageUnsent), (.refused, .messageRefused),
        ]
        for (outcome, code) in failures { #expect(SessionError(outcome)?.code == code) }
        #expect(SessionError.sessionLost.code == .sessionLost && SessionError.expired.code == .expired)
        #expect(SessionError.notWaitedFor.code == .notWaitedFor)
    }

    @Test func causesAreTold() {
        let error = SessionError(code: .refused, message: "No.", cause: SessionStatus(.unauthenticated, "Who?"))
        #expect("\(error)" == "refused: No. Cause: unauthenticated: Who?")
    }

    @Test func statusCodesHaveTheNumbersOfGoogleRPC() {
        let codes: [SessionStatus.Code] = [
            .ok, .cancelled, .unknown, .invalidArgument, .deadlineExceeded, .notFound, .alreadyExists,
            .permissionDenied,
            .resourceExhausted, .failedPrecondition, .aborted, .outOfRange, .unimplemented, .internal, .unavailable,
            .dataLoss, .unauthenticated,
        ]
        #expect(codes.map(\.rawValue) == Array(0...16))
        #expect(
            "\(SessionStatus.Code.notFound)" == "notFound"
                && "\(SessionStatus.Code.unauthenticated)" == "unauthenticated"
        )
        #expect(
            "\(SessionStatus.Code(rawValue: 17))" == "code 17"
                && "\(SessionStatus.Code(rawValue: .max))" == "code 4294967295"
        )
        #expect(
            "\(SessionStatus(.notFound))" == "notFound" && "\(SessionStatus(.aborted, "Again."))" == "aborted: Again."
        )
        #expect(
            SessionStatus(.aborted) == SessionStatus(.aborted)
                && SessionStatus(.aborted) != SessionStatus(.aborted, "x")
        )
    }

    @Test func violationsSayWhatHappened() {
        let place = SessionPlace(.urgent, 7)
        let violations: [SessionViolation] = [
            .unknownAcknowledgement(place), .acknowledgementWentBack(place), .windowExceeded(.urgent), .notOpened,
            .openedTwice, .version(7), .otherSession, .unexpectedFrame, .serialInUse(7), .noSerial,
            .undecodable("It is no message."), .emptyWindow, .malformedCredentials(byteCount: 7), .tooManyEntries,
            .frameLimit(7), .urgentFramesUnacknowledged, .creditExceeded, .unknownMethod(7), .methodNumber(7),
            .tooManyMethods, .partsAfterEnd, .payloadWithParts,
        ]
        #expect(Set(violations.map(\.message)).count == violations.count)
        #expect(violations[0].message == "The urgent frame 7 was acknowledged and never sent.")
        #expect(violations[1].message == "The acknowledgement of urgent frames went back to 7.")
        #expect(violations.allSatisfy { $0.message.hasSuffix(".") })
    }
}
