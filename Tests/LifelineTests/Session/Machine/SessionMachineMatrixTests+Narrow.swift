import Lifeline
import Testing

// Situations in which a single thing decides.
extension SessionMachineMatrixTests {
    /// What is left out of the table of all pairs: only the events to which the one thing matters are looked at.
    enum NarrowSituation: String, CaseIterable, Sendable {
        /// A client with one thing under way: request 1, which the peer has processed and which ends at 500 ms; a push
        /// that was sent; push 71 of the peer's, which is not processed, and which is, but is not reported.
        case awaiting, sent, unprocessed, unreported
        /// A client with a push that was not offered.
        case unsent
        /// The peer has just said that it goes away, and nothing is under way.
        case toLeave
        /// Closing, with one thing left: a push to be sent at most once; a request that was not sent, which ends at 500
        /// ms; request 7 of the peer's, for which it does not wait.
        case closingPush, closingRequest, closingRunning
        /// A client's second session, in which push 72 has come, with the receipt of push 71 of the first one.
        case renewed
        /// As `serverBusy`, where the server's sessions keep as much as they may; and with 10 bytes more, but no
        /// request.
        case serverFull, serverNearlyFull
        /// The client is about to be sent away for that; and has been.
        case serverSendingAway, serverSentAway
        /// One request may run, and one response has no room.
        case serverWithoutRoom

        var isServer: Bool { rawValue.hasPrefix("server") }
    }

    private func fixture(_ situation: NarrowSituation) throws -> Fixture {
        if situation.isServer { return try serverFixture(situation) }
        var fixture = Fixture(machine: .openClient(welcome: .test(requestLimit: 1)), push: 1)
        let now = MonotonicTime.ms(0)
        switch situation {
        case .awaiting, .closingRequest:
            fixture.request = try fixture.machine.request(content(1), 101, deadline: .ms(500), now: now)
            if situation == .closingRequest { break }
            _ = fixture.machine.frames(now: now)
            _ = fixture.machine.received(.acknowledgement(1), now: now)
            (fixture.sentCount, fixture.processedCount) = (1, 1)
        case .unsent, .sent, .closingPush:
            let delivery = situation == .closingPush ? SessionDelivery.atMostOnce : .reliable
            _ = fixture.machine.push(content(1), delivery, isObserved: true, now: now)
            if situation == .sent {
                _ = fixture.machine.frames(now: now)
                fixture.sentCount = 1
            }
        case .unprocessed, .unreported, .renewed:
            fixture.receipt = receipts(fixture.machine.received(.ordinary(1, .push(71)), now: now)).first
            fixture.next = 2
            if situation == .unreported, let receipt = fixture.receipt { fixture.machine.finish(receipt, now: now) }
            if situation == .renewed {
                _ = fixture.machine.connected(now: now)
                _ = fixture.machine.frames(now: now)
                _ = fixture.machine.received(.welcome(.test(.test(2))), now: now)
                _ = fixture.machine.received(.ordinary(1, .push(72)), now: now)
            }
        case .closingRunning:
            fixture.incoming = incoming(fixture.machine.received(.ordinary(1, .request(70, serial: 7)), now: now)).first
            _ = fixture.machine.received(.urgent(1, .cancel(serial: 7)), now: now)
            fixture.next = 2
        case .toLeave:
            _ = fixture.machine.received(.goodbye(SessionGoodbye(.draining)), now: now)
        case .serverFull, .serverNearlyFull, .serverSendingAway, .serverSentAway, .serverWithoutRoom: break
        }
        if situation.rawValue.hasPrefix("closing") { _ = fixture.machine.close(now: now) }
        return fixture
    }

    /// The peer's limits are such that it takes the largest response, and no more requests.
    private func serverFixture(_ situation: NarrowSituation) throws -> Fixture {
        if situation == .serverWithoutRoom { return fixtureWithoutRoom() }
        let window = SessionWindow(frameCount: 2, byteCount: 3_000)
        var fixture = try busy(.openServer(hello: .test(window: window, frameLimit: 3_000, requestLimit: 2)))
        let isNearlyFull = situation == .serverNearlyFull
        fixture.machine.allowance.byteCount = fixture.machine.keptByteCount + (isNearlyFull ? 10 : 0)
        if isNearlyFull { fixture.machine.allowance.handlerCount = 1 }
        fixture.machine.allowance.pause = .milliseconds(700)
        if situation == .serverSendingAway || situation == .serverSentAway {
            _ = fixture.machine.received(.ordinary(3, .push(72)), now: .ms(1))
        }
        if situation == .serverSentAway { _ = fixture.machine.settle(now: .ms(1)) }
        return fixture
    }

    private func fixtureWithoutRoom() -> Fixture {
        var options = SessionOptions()
        options.maximumRunningCount = 1
        options.outboundLimit = SessionWindow(frameCount: 4, byteCount: 1_000)
        let window = SessionWindow(frameCount: 1, byteCount: 1_000)
        var fixture = Fixture(machine: .openServer(options, hello: .test(window: window)), next: 3)
        for number in 1...2 as ClosedRange<UInt64> {
            let request = TestFrame.ordinary(number, .request(70, serial: UInt32(number)))
            for begun in incoming(fixture.machine.received(request, now: .ms(0))) {
                _ = fixture.machine.respond(to: begun, content(5), now: .ms(0))
            }
        }
        _ = fixture.machine.frames(now: .ms(0))
        return fixture
    }

    @Test(arguments: NarrowSituation.allCases) func everyNarrowPair(situation: NarrowSituation) throws {
        for line in try #require(Self.expectedOfNarrow[situation]) {
            let event = try #require(Event(rawValue: String(line.prefix { $0 != ":" })), "\(line)")
            let result = try result(of: event, in: fixture(situation), isServer: situation.isServer)
            #expect("\(event): \(result)" == line)
        }
    }

    /// As in the table of all pairs, with the event in front.
    private static let expectedOfNarrow: [NarrowSituation: [String]] = [
        .awaiting: [
            "goodbyeDraining: leaving for 0.0 seconds => leaving until 500",
            "close:  => closing open until 500",
            "sendRequest: tooManyInFlight => open until 500",
            "response: complete 101 5 => open until 30",
            "cancelRequest: of 101  [u1 cancel 1] => open",
            "timer: fail 101 timedOut [u1 cancel 1] => open",
        ],
        .sent: [
            "goodbyeDraining: leaving for 0.0 seconds => leaving keeps 10",
            "close:  => closing open keeps 10",
            "acknowledged: #1 processed => open",
        ],
        .unprocessed: [
            "goodbyeDraining: leaving for 0.0 seconds => leaving keeps 10",
            "close: ended closed [goodbye closed] close 1 byOwner => over closed keeps 10",
            "finish:  => open until 30",
        ],
        .unreported: [
            "goodbyeDraining: leaving for 0.0 seconds => leaving until 20",
            "close: ended closed [blank ack 1/0, goodbye closed] close 1 byOwner => over closed",
            "sendPush: accepted(1, isAdmitted: true) [o1 push 5 ack 1/0] => open keeps 10",
        ],
        .unsent: [
            "offered:  [o1 push 1] => open keeps 10",
            "offeredWithoutRoom:  => open keeps 10",
            "goodbyeDraining: leaving for 0.0 seconds close 1 inOrder => left keeps 10",
            "close:  [o1 push 1] => closing open keeps 10",
            "withdraw: withdrawn  => open",
        ],
        .toLeave: [
            "offered:  close 1 inOrder => left",
            "offeredWithoutRoom:  => leaving",
            "sendPush: accepted(1, isAdmitted: true) close 1 inOrder => left keeps 10",
            "push: push 5 => leaving keeps 10",
        ],
        .closingPush: [
            "offered:  [push 1 (#1 sent, ended closed), goodbye closed] close 1 byOwner => over closed",
            "offeredWithoutRoom:  => closing open keeps 10",
            "connected: #1 dropped, ended closed, close 2 inOrder => over none",
            "disconnected: #1 dropped, ended closed => over none",
            "withdraw: withdrawn ended closed [goodbye closed] close 1 byOwner => over closed",
        ],
        .closingRequest: [
            "offered:  [o1 request 1 1] => closing open until 500 keeps 10",
            "response: complete 101 5, ended closed [blank ack 0/1, goodbye closed] close 1 byOwner => over closed",
            "cancelRequest: of 101 ended closed [goodbye closed] close 1 byOwner => over closed",
            "timer: fail 101 timedOut, ended closed [goodbye closed] close 1 byOwner => over closed",
        ],
        .closingRunning: [
            "offered:  => closing open until 20 keeps 10",
            "sendPart: dropped => closing open until 20 keeps 10",
            "respond: notWaitedFor ended closed [blank ack 1/1, goodbye closed] close 1 byOwner => over closed",
        ],
        .renewed: [
            "finish:  => open keeps 10"
        ],
        .serverFull: [
            "push:  [goodbye draining for 0.7 seconds] close 1 inOrder => closed until 500 keeps 70",
            "duplicate:  => open until 500 keeps 70",
            "atMostOncePush:  => open until 500 keeps 70",
            "request: refuse 8 5 serverMemory => open until 500 keeps 80",
            "response: complete 101 5 => open until 30 keeps 70",
            "sendPush: exhausted => open until 500 keeps 70",
            "sendAtMostOnce: dropped => open until 500 keeps 70",
            "sendPart: exhausted => open until 500 keeps 70",
            "sendRequest: tooManyInFlight => open until 500 keeps 70",
            "respond: accepted  [u1 response 7 5 ack 1/0] => open until 500 keeps 70",
            "respondTooMuch: refused(Lifeline.RequestRefusal.serverMemory)  [u1 response 7 -1 ack 1/0] => open until 500 keeps 1060",
        ],
        .serverNearlyFull: [
            "push: push 5 => open until 500 keeps 80",
            "atMostOncePush: push 5 => open until 500 keeps 80",
            "request: refuse 8 5 serverHandlers => open until 500 keeps 80",
            "sendPush: accepted(6, isAdmitted: true) => open until 500 keeps 80",
            "sendAtMostOnce: accepted(6, isAdmitted: true) => open until 500 keeps 80",
        ],
        .serverSendingAway: [
            "offered:  [goodbye draining for 0.7 seconds] close 1 inOrder => closed until 500 keeps 70",
            "offeredWithoutRoom:  [goodbye draining for 0.7 seconds] close 1 endSending => closed until 500 (2010) keeps 70",
            "sendingFailed: close 1 inOrder => closed until 500 keeps 70",
            "disconnected:  => none until 500 keeps 70",
            "resumedAgain: say replaced on 1, close 1 endSending, opened 1 again [welcome again, <again>] => open until 500 (2010) keeps 70",
            "push:  [goodbye draining for 0.7 seconds] close 1 inOrder => closed until 500 keeps 70",
            "goodbyeClosed: <over> closed by peer [goodbye draining for 0.7 seconds] close 1 inOrder => over closed keeps 20",
            "drainByNow:  [goodbye draining for 0.7 seconds] close 1 inOrder => closed draining until 500 keeps 70",
            "close:  [goodbye draining for 0.7 seconds] close 1 inOrder => closing closed until 500 keeps 70",
            "abandon: <over> abandoned [goodbye draining for 0.7 seconds] close 1 inOrder => over closed keeps 20",
            "shutDown: <over> shutDown => over none keeps 20",
        ],
        .serverSentAway: [
            "disconnected:  => none until 500 keeps 70",
            "resumedAgain: opened 1 again [welcome again, <again>] => open until 500 keeps 70",
            "push:  => closed until 500 keeps 70",
            "sendPush: exhausted => closed until 500 keeps 70",
            "drainByNow:  => closed draining until 500 keeps 70",
            "abandon: <over> abandoned => over closed keeps 20",
        ],
        .serverWithoutRoom: [
            "push: push 5 => open keeps 30",
            "request: refuse 8 5 => open keeps 30",
        ],
    ]
}
