import Lifeline
import Testing

/// Every state × every event: what is done and said and which state follows, so that no pair is undecided.
@Suite struct SessionMachineMatrixTests {
    /// Every state, with the variants in which events mean something else.
    ///
    /// Those that are busy have request 1 (of waiter 101) sent and processed, pushes #2 and #3 sent, push #4 and the
    /// request of waiter 102 unsent behind the full window, request 7 of the peer's running, and push 71 of the peer's
    /// unprocessed.
    enum Situation: String, CaseIterable, Sendable {
        case new, opening, open, busy, detached, failed, closing, ended
        case serverNew, serverOpen, serverBusy, serverDetached, serverEnded

        var isServer: Bool { rawValue.hasPrefix("server") }
    }

    enum Event: String, CaseIterable, Sendable {
        // Connections: one that names this session, and one whose hello or welcome does not.
        case connected, resumedAgain, resumedTooFar, disconnected
        case hello, welcomeNew, welcomeAgain, welcomeOther, welcomeVersion
        // Messages.
        case push, part, atMostOncePush, request, sameRequest, response, lateResponse, cancel, unknown
        case duplicate, unplacedBlank, gap, urgentGap, urgentPush, unplacedResponse, acknowledged, acknowledgedTooMuch
        case noFrame
        // Goodbyes.
        case goodbyeClosed, goodbyeDraining, goodbyeReplaced, goodbyeRefused, goodbyeVersion, goodbyeViolation
        case goodbyeFull, goodbyeUnknown
        // What this side wants.
        case sendPush, sendAtMostOnce, sendRequest, cancelRequest, respond, finish, withdraw, timer, lateTimer
        case drain, close, abandon
    }

    struct Fixture {
        var machine: TestMachine
        var request: TestMachine.RequestID = 0
        var incoming: IncomingRequest?
        var receipt: TestMachine.Receipt?
    }

    private func fixture(_ situation: Situation) throws -> Fixture {
        let window = SessionWindow(frameCount: 2, byteCount: 1000)
        func machine(_ role: TestMachine.Role) -> TestMachine {
            TestMachine(role: role, options: SessionOptions())
        }
        switch situation {
        case .new: return Fixture(machine: machine(.client))
        case .serverNew: return Fixture(machine: machine(.server))
        case .opening:
            var client = machine(.client)
            _ = client.connected(now: .ms(0))
            _ = client.frames(now: .ms(0))
            return Fixture(machine: client)
        case .open: return Fixture(machine: .openClient())
        case .serverOpen: return Fixture(machine: .openServer())
        case .busy: return try busy(.openClient(welcome: .test(window: window)))
        case .serverBusy: return try busy(.openServer(hello: .test(window: window)))
        case .detached, .serverDetached:
            var fixture = try fixture(situation == .detached ? .busy : .serverBusy)
            _ = fixture.machine.disconnected(now: .ms(1))
            return fixture
        case .failed:
            var fixture = try fixture(.busy)
            _ = fixture.machine.received(.hello(.test()), now: .ms(1))
            _ = fixture.machine.frames(now: .ms(1))
            return fixture
        case .closing:
            var fixture = try fixture(.busy)
            _ = fixture.machine.close()
            return fixture
        case .ended, .serverEnded:
            var fixture = try fixture(situation == .ended ? .busy : .serverBusy)
            _ = fixture.machine.abandon(SessionGoodbye(.closed))
            _ = fixture.machine.frames(now: .ms(1))
            return fixture
        }
    }

    private func busy(_ machine: TestMachine) throws -> Fixture {
        var fixture = Fixture(machine: machine)
        fixture.request = try fixture.machine.request(TestContent(number: 1), 101, deadline: nil, now: .ms(0))
        _ = fixture.machine.frames(now: .ms(0))
        _ = fixture.machine.received(.acknowledgement(1), now: .ms(0))
        for number in 2...4 {
            _ = fixture.machine.push(TestContent(number: number), isObserved: true, now: .ms(0))
        }
        _ = try fixture.machine.request(TestContent(number: 6), 102, deadline: .ms(500), now: .ms(0))
        let begun = fixture.machine.received(.ordinary(1, .request(70, serial: 7), acknowledging: (1, 0)), now: .ms(0))
        if case .beginRequest(let incoming, _, _) = begun.first { fixture.incoming = incoming }
        let pushed = fixture.machine.received(.ordinary(2, .push(71)), now: .ms(0))
        if case .deliverPush(_, _, let receipt) = pushed.first { fixture.receipt = receipt }
        let acknowledgements = SessionAcknowledgement(ordinary: 1)
        // The window takes #2 and #3; the rest waits.
        while let (frame, _) = fixture.machine.nextFrame(now: .ms(0)) {
            if case .message(_, let told, _) = frame { #expect(told == acknowledgements) }
        }
        return fixture
    }

    private func apply(_ event: Event, to fixture: inout Fixture, isServer: Bool) throws -> String {
        let now = MonotonicTime.ms(10)
        let content = TestContent(number: 5)
        /// The next frames of the peer's.
        let (next, isBusy) = fixture.receipt == nil ? (UInt64(1), false) : (3, true)
        let progress = SessionProgress(processed: SessionAcknowledgement(ordinary: isBusy ? 1 : 0), received: 0)
        func receive(_ frame: TestFrame) -> String { line(fixture.machine.received(frame, now: now)) }
        func goodbye(_ code: SessionGoodbye.Code?) -> String { receive(.goodbye(SessionGoodbye(code))) }
        switch event {
        case .connected:
            if !isServer { return line(fixture.machine.connected(now: now)) }
            return line(fixture.machine.opened(by: .test(), .test(2), isResumed: false, now: now))
        case .resumedAgain:
            if !isServer {
                let actions = fixture.machine.connected(now: now)
                let frames = fixture.machine.frames(now: now)
                let welcome = SessionWelcome.test(isResumed: true, progress: progress)
                return line(actions) + " [\(frames)] " + receive(.welcome(welcome))
            }
            let hello = SessionHello.test(.test(1), progress: progress)
            return line(fixture.machine.opened(by: hello, .test(1), isResumed: true, now: now))
        case .resumedTooFar:
            let tooFar = SessionProgress(processed: SessionAcknowledgement(ordinary: 9), received: 9)
            if !isServer {
                _ = fixture.machine.connected(now: now)
                _ = fixture.machine.frames(now: now)
                let welcome = SessionWelcome.test(isResumed: true, progress: tooFar)
                return receive(.welcome(welcome))
            }
            let hello = SessionHello.test(.test(1), progress: tooFar)
            return line(fixture.machine.opened(by: hello, .test(1), isResumed: true, now: now))
        case .disconnected: return line(fixture.machine.disconnected(now: now))
        case .hello: return receive(.hello(.test()))
        case .welcomeNew: return receive(.welcome(.test(.test(2))))
        case .welcomeAgain: return receive(.welcome(.test(isResumed: true, progress: progress)))
        case .welcomeOther: return receive(.welcome(.test(.test(2), isResumed: true)))
        case .welcomeVersion:
            var welcome = SessionWelcome.test()
            welcome.version = 2
            return receive(.welcome(welcome))
        case .push: return receive(.ordinary(next, .push(5)))
        case .part: return receive(.ordinary(next, .part(5, of: 1)))
        case .atMostOncePush: return receive(.message(nil, SessionAcknowledgement(), .push(5)))
        case .request: return receive(.ordinary(next, .request(5, serial: 8)))
        case .sameRequest: return receive(.ordinary(next, .request(5, serial: 7)))
        case .response: return receive(.urgent(1, .response(5, serial: 1)))
        case .lateResponse: return receive(.ordinary(next, .response(5, serial: 99)))
        case .cancel: return receive(.urgent(1, .cancel(serial: 7)))
        case .unknown: return receive(.ordinary(next, .blank))
        case .duplicate: return receive(.ordinary(next == 1 ? 0 : 1, .push(5)))
        case .unplacedBlank: return receive(.message(nil, SessionAcknowledgement(), .blank))
        case .gap: return receive(.ordinary(next + 1, .push(5)))
        case .urgentGap: return receive(.urgent(.max, .blank))
        case .urgentPush: return receive(.urgent(1, .push(5)))
        case .unplacedResponse: return receive(.message(nil, SessionAcknowledgement(), .response(5, serial: 1)))
        case .acknowledged: return receive(.acknowledgement(isBusy ? 2 : 0))
        case .acknowledgedTooMuch: return receive(.acknowledgement(.max))
        case .goodbyeClosed: return goodbye(.closed)
        case .goodbyeDraining: return goodbye(.draining)
        case .goodbyeReplaced: return goodbye(.replaced)
        case .goodbyeRefused: return goodbye(.refused)
        case .goodbyeVersion: return goodbye(.version)
        case .goodbyeViolation: return goodbye(.violation)
        case .goodbyeFull: return goodbye(.full)
        case .goodbyeUnknown: return goodbye(nil)
        case .sendPush, .sendAtMostOnce:
            let delivery = event == .sendPush ? SessionDelivery.reliable : .atMostOnce
            let (offer, actions) = fixture.machine.push(content, delivery, isObserved: true, now: now)
            return "\(offer)" + line(actions)
        case .sendRequest:
            do {
                _ = try fixture.machine.request(content, 103, deadline: nil, now: now)
                return "accepted"
            } catch {
                return "\(error.code)"
            }
        case .cancelRequest:
            let (waiter, actions) = fixture.machine.cancelRequest(fixture.request, now: now)
            return (waiter.map { "of \($0) " } ?? "") + line(actions)
        case .respond:
            guard let incoming = fixture.incoming else { return "" }
            let (isAccepted, actions) = fixture.machine.respond(to: incoming, content, now: now)
            return (isAccepted ? "accepted " : "") + line(actions)
        case .finish:
            if let receipt = fixture.receipt { fixture.machine.finish(receipt, now: now) }
            return fixture.machine.nextDeadline == now + .milliseconds(20) ? "to acknowledge" : ""
        case .withdraw:
            let (isWithdrawn, actions) = fixture.machine.withdraw(4, now: now)
            return (isWithdrawn ? "withdrawn " : "") + line(actions)
        case .timer: return line(fixture.machine.timerFired(now: .ms(500)))
        case .lateTimer: return line(fixture.machine.timerFired(now: .ms(10_000)))
        case .noFrame: return line(fixture.machine.receivedViolation(.undecodable(""), now: now))
        case .drain:
            fixture.machine.drain(pause: .seconds(1))
            return ""
        case .close: return line(fixture.machine.close())
        case .abandon: return line(fixture.machine.abandon(SessionGoodbye(.closed)))
        }
    }

    /// What becomes of those that are busy when their session is lost, and when it ends.
    private func abbreviated(_ result: String) -> String {
        result
            .replacing("fail 101 sessionLost, cancel 7, #2 inDoubt, #3 inDoubt", with: "<lost>")
            .replacing(
                "fail 101 sessionLost, fail 102 notSent, cancel 7, #2 inDoubt, #3 inDoubt, #4 unsent, ended",
                with: "<over>"
            )
    }

    @Test(arguments: Event.allCases) func everyPair(event: Event) throws {
        var results: [(situations: String, result: String)] = []
        for situation in Situation.allCases {
            var fixture = try fixture(situation)
            let actions = try apply(event, to: &fixture, isServer: situation.isServer)
            if event == .timer || event == .lateTimer {
                // Or it would ring again at once, for as long as there is no room for frames.
                let now = MonotonicTime.ms(event == .timer ? 500 : 10_000)
                #expect(fixture.machine.nextDeadline.map { $0 > now } ?? true)
            }
            let frames = fixture.machine.frames(now: .ms(10))
            let result = abbreviated(actions) + (frames.isEmpty ? "" : " [\(frames)]")
            if let same = results.firstIndex(where: { $0.result == result }) {
                results[same].situations += " \(situation)"
            } else {
                results.append(("\(situation)", result))
            }
        }
        #expect(results.map { "\($0.situations):\($0.result.isEmpty ? "" : " ")\($0.result)" } == Self.expected[event])
    }
}
