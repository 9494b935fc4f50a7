import Lifeline
import Testing

extension SessionMachineTests {
    /// Else server and client could wait for one another for ever: it for memory, the client for room.
    @Test func aServerThatSendsItsClientAwayTakesWhatFreesMemory() throws {
        var server = TestMachine.openServer()
        _ = try server.request(TestContent(number: 1), 7, deadline: nil, now: .ms(0))
        #expect(server.frames(now: .ms(0)) == "o1 request 1 1")
        server.allowance = .none
        (server.allowance.byteCount, server.allowance.pause) = (10, .milliseconds(50))
        #expect(line(server.received(.ordinary(1, .push(2)), now: .ms(1))) == "")
        #expect(server.frames(now: .ms(1)) == "goodbye draining for 0.05 seconds")
        #expect(line(server.offeredFrames(hasRoom: true, now: .ms(1))) == "close 1 inOrder")
        // What it has no memory for comes again, but tells how far the client is.
        #expect(server.keptByteCount == 10)
        #expect(line(server.received(.ordinary(2, .push(3), acknowledging: (1, 0)), now: .ms(2))) == "")
        #expect(server.keptByteCount == 0)
        #expect(line(server.received(.urgent(1, .response(4, serial: 1)), now: .ms(2))) == "complete 7 4")
        #expect(line(server.received(.urgent(2, .cancel(serial: 9)), now: .ms(2))) == "")
        #expect(line(server.received(.ordinary(3, .request(5, serial: 8)), now: .ms(3))) == "")
        #expect(line(server.received(.urgent(3, .cancel(serial: 8)), now: .ms(3))) == "")
        let progress = server.inbound.progress
        #expect(progress.received == 0 && progress.processed == SessionAcknowledgement(ordinary: 0, urgent: 3))
        // The request that was cancelled comes again, and is not begun; another one of its serial is.
        server.allowance = .unlimited
        _ = server.disconnected(now: .ms(4))
        let clientProgress = SessionProgress(processed: SessionAcknowledgement(ordinary: 1, urgent: 0), received: 1)
        _ = server.opened(by: .test(.test(1), progress: clientProgress), .test(1), isResumed: true, now: .ms(5))
        #expect(line(server.received(.ordinary(1, .push(2)), now: .ms(5))) == "push 2")
        #expect(line(server.received(.ordinary(2, .push(3)), now: .ms(5))) == "push 3")
        #expect(line(server.received(.ordinary(3, .request(5, serial: 8)), now: .ms(5))) == "")
        #expect(line(server.received(.ordinary(4, .request(6, serial: 8)), now: .ms(5))) == "begin 8 6")
    }

    @Test func aClientThatIsNotWelcomedTriesAgain() {
        var client = TestMachine(role: .client, options: SessionOptions())
        _ = client.push(content(1), now: .ms(0))
        _ = client.connected(now: .ms(5))
        #expect(client.frames(now: .ms(5)) == "hello" && client.nextDeadline == .ms(10_005))
        #expect(line(client.timerFired(now: .ms(10_004))) == "")
        #expect(line(client.timerFired(now: .ms(10_005))) == "not welcomed" && client.nextDeadline == nil)
        #expect(line(client.received(.welcome(.test()), now: .ms(10_005))) == "", "too late")
        _ = client.disconnected(now: .ms(10_006))
        _ = client.connected(now: .ms(10_007))
        #expect(client.frames(now: .ms(10_007)) == "hello")
        #expect(line(client.received(.welcome(.test()), now: .ms(10_008))) == "opened 1")
        #expect(client.nextDeadline == nil && client.frames(now: .ms(30_000)) == "o1 push 1")
    }

    // MARK: Draining and closing

    @Test func aDrainingServerFinishesWhatWasBegun() throws {
        var pair = SessionPair()
        _ = try pair.client.request(content(1), 1, deadline: nil, now: .ms(0))
        pair.exchange(now: .ms(0))
        let begun = incoming(pair.take().server)[0]
        pair.server.drain(pause: .seconds(3), by: .ms(1_000))
        pair.exchange(now: .ms(1))
        #expect(line(pair.take().client) == "leaving for 3.0 seconds")
        _ = pair.client.push(content(2), now: .ms(2))
        _ = pair.server.respond(to: begun, content(3), now: .ms(2))
        pair.exchange(now: .ms(2))
        let told = pair.take()
        #expect(line(told.client) == "complete 1 3" && line(told.server) == "", "nothing is begun")
        pair.cut(now: .ms(3))
        pair.connect(isResumed: true, now: .ms(4))
        let again = pair.take()
        #expect(line(again.server) == "opened 1 again, push 2")
        #expect(line(again.client).hasSuffix("leaving for 3.0 seconds"), "it is told on each connection")
    }

    @Test func aDrainIsSaidOnTheNextConnectionWhereItWasSaidToNobody() {
        // It has none when the server goes away.
        var server = TestMachine.openServer()
        _ = server.disconnected(now: .ms(0))
        server.drain(pause: .seconds(3), by: .ms(1_000))
        #expect(server.nextDeadline == nil, "there is nobody to tell")
        let hello = SessionHello.test(.test(1), attempt: 2)
        _ = server.opened(by: hello, .test(1), isResumed: true, now: .ms(2_000))
        #expect(server.frames(now: .ms(2_000)) == "welcome again, goodbye draining for 3.0 seconds")
        #expect(server.frames(now: .ms(2_000)) == "", "once on each")
        // Another connection takes the session while it is said on the older one.
        _ = server.opened(by: hello, .test(1), isResumed: true, now: .ms(2_001))
        #expect(server.frames(now: .ms(2_001)) == "welcome again, goodbye draining for 3.0 seconds")
    }

    @Test func closingFinishesWhatIsAcceptedAndTellsThePeerWhatWasProcessed() throws {
        var pair = SessionPair()
        _ = pair.client.push(content(1), isObserved: true, now: .ms(0))
        _ = try pair.server.request(content(2), 2, deadline: nil, now: .ms(0))
        _ = pair.server.push(content(3), isObserved: true, now: .ms(0))
        pair.exchange(now: .ms(0))
        let told = pair.take()
        #expect(line(pair.client.close(now: .ms(0))) == "" && line(pair.client.close(now: .ms(0))) == "")
        #expect(pair.client.push(content(4), now: .ms(1)).0 == .closed)
        #expect(throws: RequestError.self) { try pair.client.request(content(5), 5, deadline: nil, now: .ms(1)) }
        // What runs may go on to the end, parts and all; nothing more is begun.
        _ = try pair.server.request(content(6), 6, deadline: nil, now: .ms(1))
        pair.exchange(now: .ms(1))
        let refused = pair.take().client
        #expect(line(refused) == "refuse 2 6 closing")
        _ = pair.client.respond(to: incoming(refused)[0], content(7), now: .ms(1))
        let begun = incoming(told.client)[0]
        #expect(pair.client.push(content(8), of: begun, now: .ms(1)).0 == .accepted(3, isAdmitted: true))
        #expect(pair.client.respond(to: begun, content(9), now: .ms(1)).0 == .accepted)
        pair.exchange(now: .ms(1))
        let finishing = receipts(told.server + pair.toldServer)
        #expect(line(pair.take().server) == "complete 6 7, push 8 of 1, complete 2 9")
        pair.client.finish(receipts(told.client)[0], now: .ms(2))
        for receipt in finishing { pair.server.finish(receipt, now: .ms(2)) }
        // Before the 20 ms are over.
        _ = pair.server.push(content(10), now: .ms(3))
        pair.exchange(now: .ms(3))
        #expect(line(pair.take().server) == "#2 processed, #4 inDoubt, ended closed by peer")
    }

    @Test func closingWaitsForEverythingThatIsLeft() throws {
        // A request of this side's that is sent and processed.
        var client = TestMachine.openClient()
        _ = try client.request(content(1), 1, deadline: nil, now: .ms(0))
        _ = client.frames(now: .ms(0))
        _ = client.received(.acknowledgement(1), now: .ms(0))
        #expect(line(client.close(now: .ms(0))) == "")
        #expect(line(client.received(.urgent(1, .response(2, serial: 1)), now: .ms(0))) == "complete 1 2, ended closed")
        #expect(client.frames(now: .ms(0)) == "blank ack 0/1, goodbye closed")
        // One of the peer's, even if nobody waits for it.
        client = .openClient()
        let begun = incoming(client.received(.ordinary(1, .request(1, serial: 1)), now: .ms(0)))
        #expect(line(client.close(now: .ms(0))) == "")
        #expect(line(client.received(.urgent(1, .cancel(serial: 1)), now: .ms(0))) == "cancel 1")
        #expect(line(client.respond(to: begun[0], content(1), now: .ms(0)).1) == "ended closed")
        // A message.
        client = .openClient()
        _ = client.push(content(1), now: .ms(0))
        #expect(line(client.close(now: .ms(0))) == "" && client.frames(now: .ms(0)) == "o1 push 1")
        #expect(line(client.received(.acknowledgement(1), now: .ms(0))) == "ended closed")
        // The word to a client. A client, for its part, makes no connection only to say goodbye.
        var server = TestMachine.openServer()
        _ = server.disconnected(now: .ms(0))
        #expect(line(server.close(now: .ms(0))) == "")
        client = .openClient()
        _ = client.disconnected(now: .ms(0))
        #expect(line(client.close(now: .ms(0))) == "ended closed")
    }

    @Test func aConnectionTakesItsFramesWithIt() {
        var client = TestMachine(role: .client, options: SessionOptions())
        _ = client.connected(now: .ms(0))
        _ = client.disconnected(now: .ms(0))
        #expect(client.frames(now: .ms(0)) == "")
        var server = TestMachine(role: .server, options: SessionOptions())
        _ = server.opened(by: .test(), .test(1), isResumed: false, now: .ms(0))
        server.drain(pause: .zero, by: .ms(1_000))
        _ = server.disconnected(now: .ms(0))
        #expect(server.frames(now: .ms(0)) == "")
    }

    @Test func closingEndsWithWhatTheConnectionTakesWithIt() {
        var client = TestMachine.openClient(welcome: .test(window: SessionWindow(frameCount: 0, byteCount: 1000)))
        _ = client.push(content(1), .atMostOnce, now: .ms(0))
        _ = client.close(now: .ms(0))
        #expect(line(client.received(.ordinary(9, .blank), now: .ms(0))) == "violated gap, sessionLost")
        #expect(line(client.disconnected(now: .ms(0))) == "#1 dropped, ended closed")
    }

    @Test func aNewSessionHasNoProgress() {
        var client = TestMachine(role: .client, options: SessionOptions())
        _ = client.push(content(1), now: .ms(0))
        _ = client.connected(now: .ms(0))
        _ = client.frames(now: .ms(0))
        let progress = SessionProgress.at(7, urgent: 7, received: 7)
        #expect(line(client.received(.welcome(.test(progress: progress)), now: .ms(0))) == "opened 1")
        #expect(client.frames(now: .ms(0)) == "o1 push 1")
        var server = TestMachine(role: .server, options: SessionOptions())
        let hello = SessionHello.test(.test(9), progress: progress)
        #expect(line(server.opened(by: hello, .test(1), isResumed: false, now: .ms(0))) == "opened 1")
    }

    @Test func atMostOnceTakesRoomOrIsDropped() {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: 2, byteCount: 1000)
        var client = TestMachine.openClient(options)
        _ = client.push(content(1), now: .ms(0))
        #expect(client.push(content(2), .atMostOnce, isObserved: true, now: .ms(0)).0 == .dropped)
        _ = client.frames(now: .ms(0))
        #expect(client.push(content(3), .atMostOnce, isObserved: true, now: .ms(0)).0 == .dropped)
        _ = client.received(.acknowledgement(1), now: .ms(0))
        #expect(client.push(content(4), .atMostOnce, now: .ms(0)).0 == .accepted(2, isAdmitted: true))
        #expect(client.frames(now: .ms(0)) == "push 4", "of what nobody observes it is not told that it was sent")
    }

    @Test func whatWasProcessedIsNotInDoubtWhenTheOtherSideCloses() {
        var pair = SessionPair()
        _ = pair.server.push(content(1), isObserved: true, now: .ms(0))
        pair.exchange(now: .ms(0))
        pair.client.finish(receipts(pair.take().client)[0], now: .ms(1))
        #expect(line(pair.client.close(now: .ms(0))) == "ended closed")
        pair.exchange(now: .ms(1))
        #expect(line(pair.take().server) == "#1 processed, ended closed by peer")
    }

    @Test func closingWithoutAConnectionWaitsForTheNext() {
        var client = TestMachine.openClient()
        _ = client.push(content(1), now: .ms(0))
        _ = client.disconnected(now: .ms(0))
        #expect(line(client.close(now: .ms(0))) == "" && line(client.connected(now: .ms(1))) == "")
        #expect(client.frames(now: .ms(1)) == "hello again")
        #expect(line(client.received(.welcome(.test(isResumed: true)), now: .ms(1))) == "opened 1 again")
        #expect(client.frames(now: .ms(1)) == "o1 push 1")
        #expect(line(client.received(.acknowledgement(1), now: .ms(1))) == "ended closed")
        #expect(client.frames(now: .ms(1)) == "goodbye closed")
        // A session that the peer never knew needs nobody.
        var fresh = TestMachine(role: .client, options: SessionOptions())
        _ = fresh.push(content(1), .expiring(after: .milliseconds(5)), now: .ms(0))
        _ = fresh.connected(now: .ms(0))
        #expect(line(fresh.close(now: .ms(0))) == "" && line(fresh.disconnected(now: .ms(1))) == "")
        #expect(line(fresh.timerFired(now: .ms(5))) == "#1 expired, ended closed")
    }

    @Test func aClosingClientEndsWithItsLastMessage() {
        var client = TestMachine.openClient()
        _ = client.push(content(1), .atMostOnce, isObserved: true, now: .ms(0))
        #expect(line(client.close(now: .ms(0))) == "")
        #expect(client.frames(now: .ms(0)) == "push 1 (#1 sent, ended closed), goodbye closed")
        var opening = TestMachine(role: .client, options: SessionOptions())
        _ = opening.connected(now: .ms(0))
        #expect(line(opening.end(.abandoned, now: .ms(0))) == "ended abandoned")
        #expect(opening.frames(now: .ms(0)) == "hello, goodbye closed")
    }

    @Test func aClosingClientWhoseConnectionFailsNeedsNoOther() {
        var client = TestMachine(role: .client, options: SessionOptions())
        _ = client.connected(now: .ms(0))
        let (offer, _) = client.push(content(1), now: .ms(0))
        #expect(offer == .accepted(1, isAdmitted: true) && line(client.close(now: .ms(0))) == "")
        #expect(line(client.withdraw(1, now: .ms(0)).1) == "ended closed")
    }

    /// Its pings are to be answered before its session has heard of it, and not after the session is done with it.
    @Test func aConnectionThatIsNotReportedYetIsNotDone() {
        var client = TestMachine.openClient()
        #expect(!client.isDone(with: 1) && !client.isDone(with: 2))
        #expect(line(client.received(.ordinary(1, .push(1)), over: 2, now: .ms(0))) == "", "it has no meaning yet")
        _ = client.connected(over: 2, now: .ms(0))
        #expect(client.isDone(with: 1) && !client.isDone(with: 2))
        _ = client.received(.goodbye(SessionGoodbye(.closed)), over: 2, now: .ms(0))
        #expect(client.isDone(with: 2) && !client.isDone(with: 3))
    }

    @Test func aSessionThatWasNeverOpenedEndsUnheard() {
        var server = TestMachine(role: .server, options: SessionOptions())
        _ = server.end(.expired, now: .ms(0))
        #expect(!server.wasOpened)
        server = TestMachine(role: .server, options: SessionOptions())
        var hello = SessionHello.test()
        hello.minimumVersion = 2
        #expect(line(server.opened(by: hello, .test(1), isResumed: false, now: .ms(0))).hasPrefix("violated"))
        #expect(!server.wasOpened, "its client is not welcomed")
        server = .openServer()
        _ = server.end(.expired, now: .ms(0))
        #expect(server.wasOpened)
        var client = TestMachine(role: .client, options: SessionOptions())
        _ = client.connected(now: .ms(0))
        #expect(!client.wasOpened && TestMachine.openClient().wasOpened)
    }

    @Test func aServerThatIsClosedSaysWelcomeFirst() {
        var server = TestMachine(role: .server, options: SessionOptions())
        _ = server.opened(by: .test(), .test(1), isResumed: false, now: .ms(0))
        _ = server.end(.abandoned, now: .ms(0))
        #expect(server.frames(now: .ms(0)) == "welcome, goodbye closed")
        // The versions that it does not speak are the registry's business; it makes no sense of them itself.
        var other = TestMachine(role: .server, options: SessionOptions())
        var hello = SessionHello.test()
        hello.minimumVersion = 2
        #expect(
            line(other.opened(by: hello, .test(1), isResumed: false, now: .ms(0)))
                == "violated version, ended violated"
        )
    }
}
