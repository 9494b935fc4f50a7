import Lifeline
import Testing

/// Every state × every event: what is done and said and which state follows, so that no pair is undecided.
@Suite struct SessionMachineMatrixTests {
    /// Every state, with the variants in which events mean something else.
    ///
    /// Those that are busy have request 1 (of waiter 101) sent and processed, pushes #2 and #3 sent, push #4 and the
    /// request of waiter 102 unsent behind the full window, request 7 of the peer's running, and push 71 of the peer's
    /// unprocessed. Most others come from them.
    enum Situation: String, CaseIterable, Sendable {
        case new, opening, open, busy, detached
        /// The peer broke the rules, and the goodbye is not offered yet; and then it is, and the connection is closed.
        case failed, aborting
        /// The peer goes away, and this side has left it as soon as nothing was under way.
        case leaving, left
        /// With a deadline of 2 s.
        case closing, closingOpening, closingDetached
        /// Ended, before the goodbye was offered, after it, and when the connection is gone.
        case ending, ended, endedDetached
        case serverNew, serverOpen, serverBusy, serverDetached
        /// An older connection has until 2,001 ms to end its side.
        case serverReplaced
        /// Its connection has refused a frame.
        case serverLeft
        /// Tells the peer after 1 s at the latest that it goes away; or has told it.
        case serverDraining, serverDrained
        case serverClosing, serverClosingDetached
        /// As those of a client; its goodbye found no room.
        case serverEnding, serverEnded

        var isServer: Bool { rawValue.hasPrefix("server") }
    }

    enum Event: String, CaseIterable, Sendable {
        // Connections: one that names this session, and one whose hello or welcome does not; one that has the
        // number of the present one, or an older one.
        case connected, resumedAgain, resumedTooFar, connectedTooLate, connectedEarlier, versionTooHigh
        /// One whose peer says that the session is over before anything was offered.
        case overAtOnce
        case disconnected, otherDisconnected, otherFrame, otherNoFrame
        case hello, welcomeNew, welcomeAgain, welcomeOther, welcomeVersion
        // What was offered.
        case offered, offeredWithoutRoom, sendingFailed
        // Messages.
        case push, part, atMostOncePush, request, sameRequest, response, lateResponse, cancel, unknown
        case duplicate, unplacedBlank, gap, urgentGap, urgentPush, unplacedResponse, acknowledged, acknowledgedTooMuch
        case noFrame
        // Goodbyes.
        case goodbyeClosed, goodbyeDraining, goodbyeReplaced, goodbyeRefused, goodbyeVersion, goodbyeViolation
        case goodbyeFull, goodbyeUnknown
        // What this side does. A large push is longer than most peers' frames, or larger than the windows of busy ones.
        case sendPush, sendLarge, sendAtMostOnce, sendPart, sendRequest, cancelRequest, respond, respondTooMuch
        case finish, withdraw
        case timer, laterTimer, lateTimer
        case drain, drainLater, drainByNow, close, closeSoon, closeByNow
        case abandon, expire, makeWay, shutDown, misconfigure
    }

    struct Fixture {
        var machine: TestMachine
        var request: TestMachine.RequestID = 0
        var push: TestMachine.Number = 4
        var incoming: IncomingRequest?
        var receipt: TestMachine.Receipt?
        /// The place of the peer's next message; how many were sent to it, and how many of these it has processed.
        var next: UInt64 = 1
        var sentCount: UInt64 = 0
        var processedCount: UInt64 = 0
    }

    private func fixture(_ situation: Situation) throws -> Fixture {
        let window = Self.smallWindow
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
        case .busy: return try busy(.openClient(welcome: .test(window: window, frameLimit: 2_000)))
        case .serverBusy: return try busy(.openServer(hello: .test(window: window, frameLimit: 2_000)))
        default: return try derivedFixture(situation)
        }
    }

    /// Those that come from others, by what happens 1 ms later.
    private func derivedFixture(_ situation: Situation) throws -> Fixture {
        let base: Situation =
            switch situation {
            case .left, .ending: .open
            case .serverDrained, .serverClosingDetached, .serverEnding: .serverOpen
            case .closingOpening: .closingDetached
            case .endedDetached: .ended
            case _ where situation.isServer: .serverBusy
            default: .busy
            }
        var fixture = try fixture(base)
        let now = MonotonicTime.ms(1)
        switch situation {
        case .detached, .serverDetached, .endedDetached: _ = fixture.machine.disconnected(now: now)
        case .failed: _ = fixture.machine.received(.hello(.test()), now: now)
        case .aborting:
            _ = fixture.machine.received(.hello(.test()), now: now)
            _ = fixture.machine.settle(now: now)
        case .leaving, .left:
            _ = fixture.machine.received(.goodbye(SessionGoodbye(.draining)), now: now)
            _ = fixture.machine.settle(now: now)
        case .closing, .serverClosing: _ = fixture.machine.close(by: .ms(2_000), now: now)
        case .closingDetached, .serverClosingDetached:
            _ = fixture.machine.disconnected(now: now)
            _ = fixture.machine.close(by: .ms(2_000), now: now)
        case .closingOpening:
            _ = fixture.machine.connected(now: now)
            _ = fixture.machine.settle(now: now)
        case .ending, .serverEnding: _ = fixture.machine.end(.abandoned, now: now)
        case .ended:
            _ = fixture.machine.end(.abandoned, now: now)
            _ = fixture.machine.settle(now: now)
        case .serverEnded:
            _ = fixture.machine.end(.abandoned, now: now)
            _ = fixture.machine.settle(hasRoom: false, now: now)
        case .serverLeft: _ = fixture.machine.sendingFailed()
        case .serverReplaced:
            let progress = SessionProgress(processed: SessionAcknowledgement(ordinary: 1), received: 3)
            let hello = SessionHello.test(.test(1), attempt: 2, progress: progress, window: Self.smallWindow)
            _ = fixture.machine.opened(by: hello, .test(1), isResumed: true, now: now)
            _ = fixture.machine.settle(now: now)
        case .serverDraining:
            fixture.machine.drain(pause: .seconds(1), by: .ms(1_000))
            _ = fixture.machine.settle(now: now)
        case .serverDrained:
            fixture.machine.drain(pause: .seconds(1), by: .ms(1_000))
            _ = fixture.machine.settle(now: now)
        case .new, .opening, .open, .busy, .serverNew, .serverOpen, .serverBusy: break
        }
        return fixture
    }

    private static let smallWindow = SessionWindow(frameCount: 2, byteCount: 500)

    func busy(_ machine: TestMachine) throws -> Fixture {
        var fixture = Fixture(machine: machine, next: 3, sentCount: 3, processedCount: 1)
        fixture.request = try fixture.machine.request(TestContent(number: 1), 101, deadline: nil, now: .ms(0))
        _ = fixture.machine.frames(now: .ms(0))
        _ = fixture.machine.received(.acknowledgement(1), now: .ms(0))
        for number in 2...4 {
            // The last one is longer than the frames that the peer of the next session takes.
            let content = TestContent(number: number, byteCount: number == 4 ? 20 : 10)
            _ = fixture.machine.push(content, isObserved: true, now: .ms(0))
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

    /// Exactly when the one thing or the other is due.
    private static let timers: [Event: MonotonicTime] = [
        .timer: .ms(500), .laterTimer: .ms(2_001), .lateTimer: .ms(10_000),
    ]

    private func apply(_ event: Event, to fixture: inout Fixture, isServer: Bool) throws -> String {
        let now = MonotonicTime.ms(10)
        let content = TestContent(number: 5)
        let next = fixture.next
        let progress = SessionProgress(processed: SessionAcknowledgement(ordinary: fixture.processedCount), received: 0)
        /// What the peer says next that it has processed.
        let processed = min(fixture.processedCount + 1, fixture.sentCount)
        func receive(_ frame: TestFrame) -> String { line(fixture.machine.received(frame, now: now)) }
        func opened(_ hello: SessionHello, over id: UInt64, isResumed: Bool = true) -> String {
            let credentials = SessionCredentials.test(isResumed ? 1 : 2)
            let (refusal, actions) = fixture.machine.opened(
                by: hello,
                credentials,
                isResumed: isResumed,
                over: id,
                now: now
            )
            return (refusal?.code.map { "refused: \($0) " } ?? "") + line(actions)
        }
        func goodbye(_ code: SessionGoodbye.Code?) -> String { receive(.goodbye(SessionGoodbye(code))) }
        switch event {
        case .connected:
            if !isServer { return line(fixture.machine.connected(now: now)) }
            return opened(.test(), over: fixture.machine.life.connectionID + 1, isResumed: false)
        case .resumedAgain:
            if !isServer {
                let actions = fixture.machine.connected(now: now)
                let frames = fixture.machine.frames(now: now)
                let welcome = SessionWelcome.test(isResumed: true, progress: progress)
                return line(actions) + " [\(frames)] " + receive(.welcome(welcome))
            }
            let hello = SessionHello.test(.test(1), progress: progress)
            return opened(hello, over: fixture.machine.life.connectionID + 1)
        case .resumedTooFar:
            let tooFar = SessionProgress(processed: SessionAcknowledgement(ordinary: 9), received: 9)
            if !isServer {
                _ = fixture.machine.connected(now: now)
                _ = fixture.machine.frames(now: now)
                let welcome = SessionWelcome.test(isResumed: true, progress: tooFar)
                return receive(.welcome(welcome))
            }
            let hello = SessionHello.test(.test(1), progress: tooFar)
            return opened(hello, over: fixture.machine.life.connectionID + 1)
        case .connectedTooLate, .connectedEarlier:
            let present = fixture.machine.life.connectionID
            let id = event == .connectedTooLate ? present : max(present, 1) - 1
            if !isServer { return line(fixture.machine.connected(over: id, now: now)) }
            return opened(.test(.test(1), progress: progress), over: id)
        case .overAtOnce:
            let id = fixture.machine.life.connectionID + 1
            let actions =
                isServer
                ? opened(.test(.test(1), progress: progress), over: id)
                : line(fixture.machine.connected(over: id, now: now))
            return actions + "; " + goodbye(.closed)
        case .versionTooHigh:
            guard isServer else { return "" }
            var hello = SessionHello.test(.test(1), progress: progress)
            (hello.minimumVersion, hello.maximumVersion) = (2, 3)
            return opened(hello, over: fixture.machine.life.connectionID + 1)
        case .disconnected: return line(fixture.machine.disconnected(now: now))
        case .otherDisconnected:
            return line(fixture.machine.disconnected(fixture.machine.life.connectionID &- 1, now: now))
        case .otherFrame:
            let id = fixture.machine.life.connectionID + 1
            return line(fixture.machine.received(.goodbye(SessionGoodbye(.closed)), over: id, now: now))
        case .otherNoFrame:
            let id = fixture.machine.life.connectionID + 1
            return line(fixture.machine.receivedViolation(.undecodable(""), over: id, now: now))
        case .offered, .offeredWithoutRoom: return ""
        case .sendingFailed: return line(fixture.machine.sendingFailed())
        case .hello: return receive(.hello(.test()))
        case .welcomeNew: return receive(.welcome(.test(.test(2), frameLimit: 80)))
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
        case .gap: return receive(.ordinary(next + 1, .push(5), acknowledging: (processed, 0)))
        case .urgentGap: return receive(.urgent(.max, .blank))
        case .urgentPush: return receive(.urgent(1, .push(5)))
        case .unplacedResponse: return receive(.message(nil, SessionAcknowledgement(), .response(5, serial: 1)))
        case .acknowledged: return receive(.acknowledgement(processed))
        case .acknowledgedTooMuch: return receive(.acknowledgement(.max))
        case .goodbyeClosed: return goodbye(.closed)
        case .goodbyeDraining: return goodbye(.draining)
        case .goodbyeReplaced: return goodbye(.replaced)
        case .goodbyeRefused: return goodbye(.refused)
        case .goodbyeVersion: return goodbye(.version)
        case .goodbyeViolation: return goodbye(.violation)
        case .goodbyeFull: return goodbye(.full)
        case .goodbyeUnknown: return goodbye(nil)
        case .sendPush, .sendLarge, .sendAtMostOnce:
            let delivery = event == .sendAtMostOnce ? SessionDelivery.atMostOnce : .reliable
            let content = TestContent(number: 5, byteCount: event == .sendLarge ? 950 : 10)
            let (offer, actions) = fixture.machine.push(content, delivery, isObserved: true, now: now)
            return "\(offer)" + line(actions)
        case .sendPart:
            guard let incoming = fixture.incoming else { return "" }
            let (offer, actions) = fixture.machine.push(content, of: incoming, isObserved: true, now: now)
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
            let (offer, actions) = fixture.machine.respond(to: incoming, content, now: now)
            return "\(offer) " + line(actions)
        case .respondTooMuch:
            guard let incoming = fixture.incoming else { return "" }
            let content = TestContent(number: 5, byteCount: 2_000)
            let (offer, actions) = fixture.machine.respond(to: incoming, content, now: now)
            return "\(offer) " + line(actions)
        case .finish:
            if let receipt = fixture.receipt { fixture.machine.finish(receipt, now: now) }
            return ""
        case .withdraw:
            let (isWithdrawn, actions) = fixture.machine.withdraw(fixture.push, now: now)
            return (isWithdrawn ? "withdrawn " : "") + line(actions)
        case .timer, .laterTimer, .lateTimer: return line(fixture.machine.timerFired(now: Self.timers[event] ?? now))
        case .noFrame: return line(fixture.machine.receivedViolation(.undecodable(""), now: now))
        case .drain, .drainLater:
            fixture.machine.drain(pause: .seconds(1), by: event == .drain ? .ms(900) : .ms(1_100))
            return ""
        case .drainByNow:
            fixture.machine.drain(pause: .seconds(1), by: now)
            return line(fixture.machine.timerFired(now: now))
        case .close: return line(fixture.machine.close(now: now))
        case .closeSoon: return line(fixture.machine.close(by: .ms(900), now: now))
        case .closeByNow: return line(fixture.machine.close(by: now, now: now))
        case .abandon: return line(fixture.machine.end(.abandoned, now: now))
        case .expire: return line(fixture.machine.end(.expired, now: now))
        case .makeWay: return line(fixture.machine.end(.madeWay, now: now))
        case .shutDown: return line(fixture.machine.end(.shutDown, now: now))
        case .misconfigure:
            let error = ConnectionError(code: .invalidConfiguration, message: "")
            return line(fixture.machine.end(.misconfigured(error), now: now))
        }
    }

    /// Where a session stands, when something happens by itself, and the bytes that it keeps. Where messages have an
    /// earlier deadline, that of the connections and of the end stands behind it.
    private static func state(_ machine: TestMachine) -> String {
        let life = machine.life
        let stage =
            switch life.stage {
            case .active: ""
            case .closing: "closing "
            case .ended: "over "
            }
        let drain =
            switch life.drain {
            case .none: ""
            case .waiting: " draining"
            case .said: " drained"
            }
        func milliseconds(_ time: MonotonicTime) -> Int64 { (time - .ms(0)).wholeMilliseconds }
        var deadline = machine.nextDeadline.map { " until \(milliseconds($0))" } ?? ""
        if let own = life.nextDeadline, own != machine.nextDeadline { deadline += " (\(milliseconds(own)))" }
        let kept = machine.keptByteCount == 0 ? "" : " keeps \(machine.keptByteCount)"
        return stage + "\(life.connection)".prefix { $0 != "(" } + drain + deadline + kept
    }

    /// What becomes of those that are busy when their session is lost, and when it ends; and what they send when it
    /// goes on.
    private func abbreviated(_ result: String) -> String {
        result
            .replacing("fail 101 sessionLost, cancel 7, #2 inDoubt, #3 inDoubt", with: "<lost>")
            .replacing(
                "fail 101 sessionLost, fail 102 notSent, cancel 7, #2 inDoubt, #3 inDoubt, #4 unsent, ended",
                with: "<over>"
            )
            .replacing(
                "o2 push 2 ack 1/0, o3 push 3 ack 1/0, o4 push 4 ack 1/0, o5 request 2 6 ack 1/0",
                with: "<again>"
            )
    }

    /// What is done in a situation, what is said then, and where the session stands.
    func result(of event: Event, in fixture: Fixture, isServer: Bool) throws -> String {
        var fixture = fixture
        let actions = try apply(event, to: &fixture, isServer: isServer)
        if let now = Self.timers[event] {
            // Or it would ring again at once, for as long as there is no room for frames.
            #expect(fixture.machine.nextDeadline.map { $0 > now } ?? true)
        }
        let offered = fixture.machine.settle(hasRoom: event != .offeredWithoutRoom, now: .ms(10))
        return abbreviated(actions + offered) + " => " + Self.state(fixture.machine)
    }

    @Test(arguments: Event.allCases) func everyPair(event: Event) throws {
        var results: [(situations: String, result: String)] = []
        for situation in Situation.allCases {
            let result = try result(of: event, in: fixture(situation), isServer: situation.isServer)
            if let same = results.firstIndex(where: { $0.result == result }) {
                results[same].situations += " \(situation)"
            } else {
                results.append(("\(situation)", result))
            }
        }
        #expect(results.map { "\($0.situations): \($0.result)" } == Self.expected[event])
    }
}

extension TestMachine {
    /// Takes out everything that can be sent, and says so. Returns the frames, and what becomes of connections.
    mutating func settle(hasRoom: Bool = true, now: MonotonicTime) -> String {
        var lines: [String] = []
        while let (frame, actions) = nextFrame(hasRoom: hasRoom, now: now) {
            lines.append(line(frame) + (actions.isEmpty ? "" : " (\(line(actions)))"))
        }
        let closing = line(offeredFrames(hasRoom: hasRoom, now: now))
        return (lines.isEmpty ? "" : " [\(lines.joined(separator: ", "))]") + (closing.isEmpty ? "" : " \(closing)")
    }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }
}
