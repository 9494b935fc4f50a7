import Lifeline
import Testing

// Acknowledgements, deadlines, and requests across cuts.
extension SessionMachineTests {
    // MARK: Acknowledgements

    @Test func acknowledgementsTravelWithMessagesOrAloneAfterAWhile() {
        var client = TestMachine.openClient()
        var actions = client.received(.ordinary(1, .push(1)), now: .ms(0))
        actions += client.received(.ordinary(2, .push(2)), now: .ms(0))
        #expect(client.nextDeadline == nil && client.frames(now: .ms(100)) == "")
        client.finish(receipts(actions)[0], now: .ms(0))
        #expect(client.nextDeadline == .ms(20) && client.frames(now: .ms(19)) == "")
        #expect(client.frames(now: .ms(20)) == "blank ack 1/0" && client.nextDeadline == nil)
        client.finish(receipts(actions)[1], now: .ms(30))
        _ = client.push(content(3), now: .ms(31))
        #expect(client.frames(now: .ms(31)) == "o1 push 3 ack 2/0" && client.nextDeadline == nil)
        // Responses and cancellations are processed as they come.
        _ = client.received(.urgent(1, .response(1, serial: 5)), now: .ms(40))
        #expect(client.frames(now: .ms(60)) == "blank ack 2/1")
        // The hello says it, too.
        actions = client.received(.ordinary(3, .push(4)), now: .ms(70))
        client.finish(receipts(actions)[0], now: .ms(70))
        _ = client.disconnected(now: .ms(71))
        #expect(client.nextDeadline == nil)
        _ = client.connected(now: .ms(72))
        guard case .hello(let hello)? = client.nextFrame(now: .ms(72))?.0 else { return #expect(Bool(false)) }
        #expect(hello.progress == .at(3, urgent: 1, received: 3))
        _ = client.received(.welcome(.test(isResumed: true)), now: .ms(73))
        #expect(client.nextDeadline == nil && client.frames(now: .ms(500)) == "o1 push 3 ack 3/1")
    }

    /// A client leaves a server that goes away only when that has none of them.
    @Test func requestsAreCountedAsSentWhileThePeerMayHaveSeenThem() throws {
        var pair = SessionPair()
        func ask(_ number: Int) throws -> TestMachine.RequestID {
            try pair.client.request(content(number), number, deadline: .ms(100 * Int64(number)), now: .ms(1))
        }
        func counts() -> [Int] { [pair.client.requestCount, pair.client.sentRequestCount] }
        let ids = try (1...5).map(ask)
        #expect(counts() == [5, 0])
        _ = pair.client.cancelRequest(ids[0], now: .ms(1))
        #expect(counts() == [4, 0])
        pair.exchange(now: .ms(2))
        #expect(counts() == [4, 4])
        // A cut changes nothing of it; what comes meanwhile is not sent.
        pair.cut(now: .ms(3))
        _ = try ask(6)
        #expect(counts() == [5, 4])
        pair.connect(isResumed: true, now: .ms(4))
        #expect(counts() == [5, 5])
        let begun = incoming(pair.toldServer)
        _ = pair.server.respond(to: begun[0], content(7), now: .ms(5))
        pair.exchange(now: .ms(5))
        _ = pair.client.cancelRequest(ids[2], now: .ms(6))
        #expect(counts() == [3, 3])
        // One is answered before it is asked.
        let early = TestMachine.serial(of: try ask(7))
        #expect(counts() == [4, 3])
        _ = pair.client.received(.urgent(2, .response(9, serial: early)), now: .ms(7))
        #expect(counts() == [3, 3])
        // One comes to its deadline.
        _ = try ask(8)
        #expect(counts() == [4, 3])
        _ = pair.client.timerFired(now: .ms(400))
        #expect(counts() == [3, 2])
        // A session that is lost takes along what was sent.
        pair.cut(now: .ms(401))
        _ = pair.client.connected(now: .ms(402))
        _ = pair.client.nextFrame(now: .ms(402))
        _ = pair.client.received(.welcome(.test(isResumed: false)), now: .ms(403))
        #expect(counts() == [1, 0])
        _ = pair.client.end(.abandoned, now: .ms(0))
        #expect(counts() == [0, 0])
    }

    @Test func aSenderThatKeepsLittleIsToldInTime() {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: 64, byteCount: 256 << 10)
        for byteCount in [1, 65_536] {
            var server = TestMachine.openServer()
            var client = TestMachine.openClient(
                options,
                welcome: .test(window: SessionOptions().inboundWindow, frameLimit: 1 << 20)
            )
            for number in 1...200 { _ = client.push(content(number, byteCount), now: .ms(0)) }
            var count = 0
            // Without the time passing: nobody waits for the delay.
            while true {
                if let (frame, _) = client.nextFrame(now: .ms(0)) {
                    for receipt in receipts(server.received(frame, now: .ms(0))) {
                        server.finish(receipt, now: .ms(0))
                        count += 1
                    }
                } else if let (frame, _) = server.nextFrame(now: .ms(0)) {
                    _ = client.received(frame, now: .ms(0))
                } else {
                    break
                }
            }
            #expect(count == 200)
        }
    }

    @Test func receiptsOfALostSessionChangeNothing() {
        var client = TestMachine.openClient()
        let placed = receipts(client.received(.ordinary(1, .push(1)), now: .ms(0)))
        let unplaced = receipts(client.received(.message(nil, .init(), .push(2)), now: .ms(0)))
        _ = client.disconnected(now: .ms(0))
        _ = client.connected(now: .ms(0))
        #expect(line(client.received(.welcome(.test(.test(2))), now: .ms(0))) == "sessionLost forgotten, opened 2")
        _ = client.received(.ordinary(1, .push(3)), now: .ms(0))
        for receipt in placed + unplaced { client.finish(receipt, now: .ms(0)) }
        #expect(client.nextDeadline == nil && client.inbound.progress == .at(0, received: 1))
    }

    @Test func aSessionIsUsedWhenSomethingOfItHasCome() {
        var server = TestMachine.openServer()
        // Pings, and acknowledgements of nothing.
        _ = server.received(.acknowledgement(0), now: .ms(0))
        _ = server.push(content(1), now: .ms(0))
        #expect(server.frames(now: .ms(0)) == "o1 push 1" && !server.isUsed)
        _ = server.disconnected(now: .ms(0))
        #expect(!server.isUsed)
        for frame in [TestFrame.ordinary(1, .push(1)), .urgent(1, .cancel(serial: 1)), .acknowledgement(1)] {
            var server = server
            let hello = SessionHello.test(.test(1), attempt: 2)
            _ = server.opened(by: hello, .test(1), isResumed: true, now: .ms(0))
            #expect(!server.isUsed)
            _ = server.received(frame, now: .ms(0))
            #expect(server.isUsed)
            _ = server.disconnected(now: .ms(0))
            #expect(server.isUsed)
        }
    }

    // MARK: Deadlines

    @Test func requestsEndAtTheirDeadlinesOnBothSides() throws {
        var pair = SessionPair()
        _ = try pair.client.request(content(1), 1, deadline: .ms(10), now: .ms(0))
        pair.exchange(now: .ms(0))
        // One that cannot be sent is withdrawn.
        pair.cut(now: .ms(1))
        _ = try pair.client.request(content(2), 2, deadline: .ms(10), now: .ms(1))
        let begun = incoming(pair.take().server)
        #expect(pair.client.nextDeadline == .ms(10) && pair.server.nextDeadline == .ms(10))
        #expect(line(pair.client.timerFired(now: .ms(9))) == "")
        #expect(line(pair.client.timerFired(now: .ms(10))) == "fail 1 timedOut, fail 2 timedOut")
        #expect(line(pair.server.timerFired(now: .ms(10))) == "cancel 1")
        #expect(pair.client.nextDeadline == nil && pair.server.nextDeadline == nil)
        pair.connect(isResumed: true, now: .ms(11))
        // The cancellation came, and changes nothing.
        #expect(line(pair.take().server) == "opened 1 again" && pair.client.outbound.keptSize.frameCount == 1)
        #expect(pair.server.push(content(3), of: begun[0], now: .ms(12)).0 == .dropped)
        #expect(pair.server.respond(to: begun[0], content(1), now: .ms(12)).0 == .notWaitedFor)
    }

    @Test func everythingThatIsDueAtOnceIsToldBeforeTheEnd() throws {
        var client = TestMachine.openClient(welcome: .test(window: SessionWindow(frameCount: 1, byteCount: 100)))
        // The first is sent and processed, the second waits.
        _ = try client.request(content(1), 1, deadline: .ms(10), now: .ms(0))
        _ = try client.request(content(2), 2, deadline: .ms(10), now: .ms(0))
        #expect(client.frames(now: .ms(0)) == "o1 request 1 1")
        #expect(line(client.close(now: .ms(0))) == "")
        #expect(line(client.timerFired(now: .ms(10))) == "fail 1 timedOut, fail 2 timedOut")
        #expect(client.frames(now: .ms(10)) == "u1 cancel 1")
        #expect(line(client.received(.acknowledgement(1, 1), now: .ms(11))) == "ended closed")
    }

    // MARK: Bytes

    @Test func requestsThatWaitHaveALimitOfBytes() throws {
        var options = SessionOptions()
        // 75 ordinary bytes, and as many for those that have no room.
        options.outboundLimit = SessionWindow(frameCount: 100, byteCount: 100)
        var client = TestMachine(role: .client, options: options)
        let first = try client.request(content(1, 60), 1, deadline: nil, now: .ms(0))
        _ = try client.request(content(2, 60), 2, deadline: nil, now: .ms(0))
        let third = try client.request(content(3, 15), 3, deadline: nil, now: .ms(0))
        #expect(throws: RequestError.self) {
            try client.request(content(4, 1), 4, deadline: nil, now: .ms(0))
        }
        // A push lines up behind them.
        #expect(client.push(content(5, 1), now: .ms(0)).0 == .accepted(4, isAdmitted: false))
        _ = client.cancelRequest(third, now: .ms(0))
        _ = try client.request(content(6, 15), 6, deadline: nil, now: .ms(0))
        let (waiter, actions) = client.cancelRequest(first, now: .ms(0))
        #expect(waiter == 1 && line(actions) == "admitted #4", "with the second; the last has no room yet")
        #expect(client.outbound.unadmittedCount == 1)
        _ = client.connected(now: .ms(0))
        _ = client.frames(now: .ms(0))
        _ = client.received(.welcome(.test()), now: .ms(0))
        #expect(client.frames(now: .ms(0)) == "o1 request 2 2, o2 push 5")
        #expect(client.frames(now: .ms(0)) == "" && line(client.received(.acknowledgement(2), now: .ms(0))) == "")
        #expect(client.frames(now: .ms(0)) == "o3 request 4 6")
    }

    @Test func responsesThatFindNoRoomHaveALimitOfBytes() {
        let largeWindow = SessionWindow(frameCount: 100, byteCount: 10_000)
        var options = SessionOptions()
        // 2,500 bytes for urgent messages, 5,000 for what has no room.
        options.outboundLimit = SessionWindow(frameCount: 100, byteCount: 10_000)
        var server = TestMachine.openServer(options, hello: .test(window: largeWindow, frameLimit: 10_000))
        var begun: [IncomingRequest] = []
        for number in UInt64(1)...11 {
            begun += incoming(server.received(.ordinary(number, .request(1, serial: UInt32(number))), now: .ms(0)))
        }
        var taken: [Bool] = []
        for request in begun {
            let (offer, _) = server.respond(to: request, content(1, 2000), now: .ms(0))
            taken.append(offer == .accepted)
            if offer == .accepted { continue }
            #expect(offer == .refused(.tooManyResponses), "a status takes its place, and always has room")
            #expect(server.respond(to: request, content(1), now: .ms(0)).0 == .notWaitedFor)
        }
        // One is admitted, and two wait.
        #expect(taken == [true, true, true] + [Bool](repeating: false, count: 8))
        #expect(server.outbound.unadmittedResponseSize.byteCount == 12_000)
        // While they wait, requests are refused, and their places withheld.
        let actions = server.received(.ordinary(12, .request(1, serial: 12)), now: .ms(0))
        #expect(line(actions) == "begin 12 1")
        _ = server.frames(now: .ms(20))
        #expect(server.inbound.progress.processed.ordinary == 11)
        // A response that the peer takes in no frame is refused, but for the status in its place.
        let last = incoming(actions)[0]
        #expect(server.respond(to: last, content(1, 10_001), now: .ms(20)).0 == .refused(.responseTooLarge))
        #expect(server.outbound.unadmittedResponseSize.byteCount == 13_000 && server.runningCount == 0)
    }

    @Test func aRequestThatIsNotProcessedHasAStatusWhateverThePeerTakes() {
        var server = TestMachine.openServer(hello: .test(frameLimit: 100))
        let begun = incoming(server.received(.ordinary(1, .request(1, serial: 1)), now: .ms(0)))[0]
        #expect(line(server.refuse(begun, .serverHandlers, now: .ms(0))) == "")
        #expect(server.frames(now: .ms(0)) == "u1 response 1 -1 ack 1/0" && server.runningCount == 0)
        // A handler may outlive its session.
        let other = incoming(server.received(.ordinary(2, .request(1, serial: 2)), now: .ms(0)))[0]
        _ = server.end(.abandoned, now: .ms(0))
        #expect(line(server.refuse(other, .serverHandlers, now: .ms(0))) == "")
    }

    // MARK: Requests over cuts

    @Test func partsComeBeforeTheirResponseAcrossACut() throws {
        var pair = SessionPair()
        let id = try pair.client.request(content(1), 1, deadline: nil, now: .ms(0))
        pair.exchange(now: .ms(0))
        let begun = incoming(pair.take().server)[0]
        _ = pair.server.push(content(10), of: begun, now: .ms(0))
        _ = pair.server.push(content(11), of: begun, .atMostOnce, now: .ms(0))
        _ = pair.server.frames(now: .ms(0))
        pair.cut(now: .ms(1))
        #expect(pair.server.push(content(12), of: begun, .atMostOnce, now: .ms(1)).0 == .dropped)
        _ = pair.server.respond(to: begun, content(13), now: .ms(1))
        pair.connect(isResumed: true, now: .ms(2))
        let serial = TestMachine.serial(of: id)
        #expect(line(pair.take().client) == "opened 1 again, push 10 of \(serial), complete 1 13")
    }

    @Test func requestsInTheQueueOutliveTheirSession() throws {
        var client = TestMachine.openClient(welcome: .test(window: SessionWindow(frameCount: 1, byteCount: 100)))
        _ = try client.request(content(1), 1, deadline: nil, now: .ms(0))
        _ = try client.request(content(2), 2, deadline: nil, now: .ms(0))
        _ = client.push(content(3), now: .ms(0))
        _ = client.frames(now: .ms(0))
        _ = client.connected(now: .ms(1))
        _ = client.frames(now: .ms(1))
        let actions = client.received(.welcome(.test(.test(2))), now: .ms(1))
        #expect(line(actions) == "sessionLost forgotten, fail 1 sessionLost, opened 2")
        #expect(client.frames(now: .ms(1)) == "o1 request 2 2, o2 push 3")
        #expect(line(client.received(.urgent(1, .response(4, serial: 2)), now: .ms(1))) == "complete 2 4")
    }

    @Test func aViolationLosesTheSessionAndTheNextConnectionBeginsAnew() throws {
        var client = TestMachine.openClient()
        _ = client.received(.ordinary(9, .blank), now: .ms(0))
        _ = client.push(content(1), now: .ms(0))
        #expect(client.frames(now: .ms(0)) == "goodbye violation")
        _ = client.disconnected(now: .ms(1))
        _ = client.connected(now: .ms(2))
        #expect(client.frames(now: .ms(2)) == "hello")
        #expect(line(client.received(.welcome(.test(.test(2))), now: .ms(2))) == "opened 2")
        #expect(client.frames(now: .ms(2)) == "o1 push 1")
        // So does the peer's word that this side broke them.
        #expect(
            line(client.received(.goodbye(SessionGoodbye(.violation)), now: .ms(3)))
                == "sessionLost accused, #1 inDoubt, accused violation"
        )
        #expect(line(client.received(.ordinary(1, .push(2)), now: .ms(3))) == "", "the connection is of no use")
        #expect(
            client.frames(now: .ms(3)) == "" && line(client.connected(now: .ms(4))) == ""
                && client.frames(now: .ms(4)) == "hello"
        )
    }
}
