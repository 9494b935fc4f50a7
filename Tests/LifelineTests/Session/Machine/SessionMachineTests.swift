import Lifeline
import LifelineTestSupport
import Testing

/// What a session's machine promises beyond single events.
@Suite struct SessionMachineTests {
    // MARK: What must not wait for itself

    @Test func aPushHandlerGetsResponsesWhilePushesFillTheWindow() throws {
        var options = SessionOptions()
        options.inboundWindow = SessionWindow(frameCount: 8, byteCount: 100)
        options.outboundLimit = SessionWindow(frameCount: 16, byteCount: 300)
        var pair = SessionPair(options)
        for number in 1...100 { _ = pair.server.push(content(number), now: .ms(0)) }
        pair.exchange(now: .ms(0))
        #expect(
            pair.server.outbound.unprocessedSize(.ordinary).frameCount == 8 && pair.server.outbound.unadmittedCount > 50
        )
        // The handler of the first asks for much more than all windows and limits hold, one after another.
        _ = pair.take()
        for number in 1...200 {
            _ = try pair.client.request(content(number), number, deadline: nil, now: .ms(0))
            pair.exchange(now: .ms(0))
            for request in incoming(pair.take().server) {
                _ = pair.server.respond(to: request, content(number, 50), now: .ms(0))
            }
            pair.exchange(now: .ms(0))
            #expect(line(pair.take().client) == "complete \(number) \(number)")
        }
        #expect(pair.server.outbound.unprocessedSize(.ordinary).frameCount == 8)
    }

    @Test func sidesWhoseResponsesStandBehindPushesDoNotWaitForOneAnother() throws {
        var options = SessionOptions()
        // Three ordinary messages.
        options.outboundLimit = SessionWindow(frameCount: 4, byteCount: 1000)
        options.maximumRunningCount = 1
        options.acknowledgementBatchSize = 1
        var pair = SessionPair(options)
        let first = try pair.client.request(content(1), 1, deadline: nil, now: .ms(0))
        let second = try pair.server.request(content(2), 2, deadline: nil, now: .ms(0))
        pair.exchange(now: .ms(0))
        let begun = pair.take()
        // While nothing comes, both fill their ordinary lane, and their responses, which end parts, find no room.
        func fill(_ machine: inout TestMachine, _ begun: [TestMachine.Action], cancelling id: TestMachine.RequestID)
            throws
        {
            _ = machine.cancelRequest(id, now: .ms(0))
            _ = try machine.request(content(3), 3, deadline: nil, now: .ms(0))
            for number in 4...5 { _ = machine.push(content(number), of: incoming(begun)[0], now: .ms(0)) }
            #expect(machine.respond(to: incoming(begun)[0], content(6), now: .ms(0)).0 == .accepted)
            #expect(machine.outbound.unadmittedResponseSize.frameCount == 1)
        }
        try fill(&pair.client, begun.client, cancelling: first)
        try fill(&pair.server, begun.server, cancelling: second)
        // What they send crosses on its way.
        var (toServer, toClient): ([TestFrame], [TestFrame]) = ([], [])
        while let (frame, _) = pair.client.nextFrame(now: .ms(0)) { toServer.append(frame) }
        while let (frame, _) = pair.server.nextFrame(now: .ms(0)) { toClient.append(frame) }
        for frame in toServer { pair.toldServer += pair.server.received(frame, now: .ms(0)) }
        for frame in toClient { pair.told += pair.client.received(frame, now: .ms(0)) }
        let told = pair.take()
        #expect(line(told.client) == "refuse 2 3" && line(told.server) == "refuse 2 3")
        for request in incoming(told.client) { _ = pair.client.respond(to: request, content(7), now: .ms(0)) }
        for request in incoming(told.server) { _ = pair.server.respond(to: request, content(8), now: .ms(0)) }
        for time in [MonotonicTime.ms(0), .ms(20), .ms(40)] {
            _ = pair.client.timerFired(now: time)
            _ = pair.server.timerFired(now: time)
            pair.exchange(now: time)
        }
        let ended = pair.take()
        #expect(line(ended.client) == "complete 3 8" && line(ended.server) == "complete 3 7")
        for machine in [pair.client, pair.server] {
            #expect(machine.outbound.keptSize == SessionSize() && machine.nextDeadline == nil)
        }
    }

    @Test func aRequestIsCancelledAlthoughPushesFillTheWindow() throws {
        var options = SessionOptions()
        options.inboundWindow = SessionWindow(frameCount: 4, byteCount: 1000)
        var pair = SessionPair(options)
        let id = try pair.client.request(content(1), 1, deadline: nil, now: .ms(0))
        for number in 2...20 { _ = pair.client.push(content(number), now: .ms(0)) }
        pair.exchange(now: .ms(0))
        let begun = incoming(pair.take().server)
        #expect(pair.client.cancelRequest(id, now: .ms(0)).0 == 1)
        pair.exchange(now: .ms(0))
        #expect(line(pair.take().server) == "cancel 1")
        #expect(pair.server.respond(to: begun[0], content(1), now: .ms(0)).0 == .notWaitedFor)
        pair.exchange(now: .ms(0))
        #expect(line(pair.take().client) == "")
    }

    @Test func whoeverWaitsBehindAWithdrawnMessageIsTold() throws {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: 8, byteCount: 40)
        var machine = TestMachine(role: .client, options: options)
        _ = machine.push(content(1, 20), now: .ms(0))
        #expect(machine.push(content(2, 20), now: .ms(0)).0 == .accepted(2, isAdmitted: false))
        #expect(machine.push(content(3, 10), now: .ms(0)).0 == .accepted(3, isAdmitted: false))
        let (isWithdrawn, actions) = machine.withdraw(2, now: .ms(0))
        #expect(isWithdrawn && line(actions) == "admitted #3")
        // It was admitted meanwhile, and can be withdrawn still; not when it was sent.
        #expect(machine.withdraw(3, now: .ms(0)).0 && machine.withdraw(3, now: .ms(0)).0 == false)
    }

    // MARK: What a peer cannot do

    @Test func cancelledRequestsCountUntilTheirHandlersAreDone() {
        var options = SessionOptions()
        options.maximumRunningCount = 3
        var server = TestMachine.openServer(options)
        var actions: [TestMachine.Action] = []
        for number in UInt64(1)...5 {
            actions += server.received(.ordinary(number, .request(Int(number), serial: 1)), now: .ms(0))
            actions += server.received(.urgent(number, .cancel(serial: 1)), now: .ms(0))
        }
        #expect(
            line(actions) == "begin 1 1, cancel 1, begin 1 2, cancel 1, begin 1 3, cancel 1, refuse 1 4, cancel 1, "
                + "refuse 1 5, cancel 1"
        )
        for request in incoming(actions) {
            #expect(server.respond(to: request, content(0), now: .ms(0)).0 == .notWaitedFor)
        }
        #expect(line(server.received(.ordinary(6, .request(6, serial: 1)), now: .ms(0))) == "begin 1 6")
    }

    /// - Parameter hasParts: whether responses end parts, and stand in the ordinary lane with them.
    @Test(arguments: [false, true]) func aPeerThatAcknowledgesNothingGetsNoEndOfRefusals(hasParts: Bool) {
        var options = SessionOptions()
        options.maximumRunningCount = 3
        options.inboundWindow = SessionWindow(frameCount: 10, byteCount: 1000)
        options.outboundLimit = SessionWindow(frameCount: 8, byteCount: 1000)
        var server = TestMachine.openServer(options)
        var (number, violation) = (UInt64(0), "")
        while violation.isEmpty, number < 1000 {
            number += 1
            let actions = server.received(.ordinary(number, .request(1, serial: UInt32(number))), now: .ms(0))
            if line(actions).contains("violated") { violation = line(actions) }
            for request in incoming(actions) {
                if hasParts, line(actions).hasPrefix("begin") {
                    _ = server.push(content(2), of: request, now: .ms(0))
                }
                _ = server.respond(to: request, content(1), now: .ms(0))
            }
            _ = server.frames(now: .ms(0))
            // Refusals that have room, and as many as may run, and the window.
            let refusalCount = server.outbound.keptSize.frameCount - (hasParts ? 6 + 2 * 3 : 0)
            #expect(refusalCount <= 2 + 3 + 10)
            // With parts as many begin as have room, and as many as may run.
            #expect(server.inbound.progress.processed.ordinary <= 2 + 3 + (hasParts ? 3 + 3 : 0))
        }
        #expect(violation.hasPrefix("violated windowExceeded, ") && violation.hasSuffix("ended violated"))
        #expect(number == 2 + 3 + 10 + 1 + (hasParts ? 3 + 3 : 0))
    }

    @Test func refusalsAreProcessedWhenResponsesHaveRoomAgain() {
        var options = SessionOptions()
        options.maximumRunningCount = 1
        options.outboundLimit = SessionWindow(frameCount: 4, byteCount: 1000)
        var server = TestMachine.openServer(options)
        for number in UInt64(1)...4 {
            let actions = server.received(.ordinary(number, .request(1, serial: UInt32(number))), now: .ms(0))
            #expect(line(actions).hasPrefix(number <= 2 ? "begin" : "refuse"))
            for request in incoming(actions) { _ = server.respond(to: request, content(1), now: .ms(0)) }
        }
        // One response has room, one waits: that is as much as may run.
        #expect(server.inbound.progress.processed.ordinary == 2)
        _ = server.disconnected(now: .ms(1))
        let again = SessionHello.test(.test(1))
        _ = server.opened(by: again, .test(1), isResumed: true, now: .ms(1))
        #expect(server.frames(now: .ms(1)) == "welcome again, u1 response 1 1 ack 2/0")
        for place in UInt64(1)...4 {
            _ = server.received(.acknowledgement(0, place), now: .ms(1))
            #expect(server.inbound.progress.processed.ordinary == (place < 3 ? 2 : 4))
            _ = server.frames(now: .ms(1))
        }
        #expect(server.outbound.keptSize == SessionSize() && keptPlaceCount(in: server.inbound) == 0)
    }

    @Test func aRequestHasASerialAndAFrameOnePlace() throws {
        var server = TestMachine.openServer()
        #expect(line(server.received(.ordinary(1, .request(1, serial: 0)), now: .ms(0))).hasPrefix("violated noSerial"))
        #expect(try SessionPlace.read(sequence: 0, urgentSequence: 0) == nil)
        #expect(try SessionPlace.read(sequence: 3, urgentSequence: 0) == SessionPlace(.ordinary, 3))
        #expect(try SessionPlace.read(sequence: 0, urgentSequence: .max) == SessionPlace(.urgent, .max))
        #expect(throws: SessionViolation.wrongPlace) { try SessionPlace.read(sequence: 1, urgentSequence: 1) }
        var client = TestMachine.openClient()
        #expect(line(client.receivedViolation(.wrongPlace, now: .ms(0))) == "violated wrongPlace, sessionLost")
        #expect(client.frames(now: .ms(0)) == "goodbye violation")
        #expect(line(client.receivedViolation(.wrongPlace, now: .ms(0))) == "")
    }

    @Test func requestsThatRunTakeNoMoreBytesThanTheWindow() {
        var options = SessionOptions()
        options.inboundWindow = SessionWindow(frameCount: 100, byteCount: 100)
        var server = TestMachine.openServer(options)
        func request(_ number: UInt64, _ byteCount: Int) -> [TestMachine.Action] {
            let message = MachineMessage.request(serial: UInt32(number), deadline: nil, content(Int(number), byteCount))
            return server.received(.ordinary(number, message), now: .ms(0))
        }
        var actions = request(1, 50) + request(2, 50)
        actions += request(3, 1)
        #expect(line(actions) == "begin 1 1, begin 2 2, refuse 3 3")
        // However long they run, what comes behind them is acknowledged.
        #expect(server.inbound.progress.processed.ordinary == 3)
        let running = incoming(actions)
        for request in running[1...] { _ = server.respond(to: request, content(1), now: .ms(0)) }
        #expect(line(request(4, 50)) == "begin 4 4" && line(request(5, 1)) == "refuse 5 5")
        // Also alone none is larger.
        server = .openServer(options)
        #expect(line(request(1, 101)) == "violated windowExceeded, ended violated")
    }

    @Test func responsesThatHaveNoRoomCountAsRequestsThatRun() {
        var options = SessionOptions()
        options.inboundWindow = SessionWindow(frameCount: 100, byteCount: 100)
        options.outboundLimit = SessionWindow(frameCount: 100, byteCount: 400)
        var server = TestMachine.openServer(options)
        var refused = 0
        for number in UInt64(1)...10 {
            let actions = server.received(.ordinary(number, .request(1, serial: UInt32(number))), now: .ms(0))
            if line(actions).hasPrefix("refuse") { refused += 1; continue }
            for request in incoming(actions) { _ = server.respond(to: request, content(1, 60), now: .ms(0)) }
        }
        // One has room in the urgent lane's quarter, two wait: half of the limit is 200.
        #expect(refused == 7 && server.outbound.keptSize.byteCount == 180)
    }

    @Test func pushesWithoutAPlaceAreDroppedWhenTheyAreTooMany() {
        var options = SessionOptions()
        options.inboundWindow = SessionWindow(frameCount: 3, byteCount: 1000)
        var client = TestMachine.openClient(options)
        var actions: [TestMachine.Action] = []
        for number in 1...5 { actions += client.received(.message(nil, .init(), .push(number)), now: .ms(0)) }
        #expect(line(actions) == "push 1, push 2, push 3" && client.droppedPushCount == 2)
        // Twice is once.
        for _ in 0..<2 { client.finish(receipts(actions)[1], now: .ms(0)) }
        for number in 6...7 { actions += client.received(.message(nil, .init(), .push(number)), now: .ms(0)) }
        #expect(line(actions) == "push 1, push 2, push 3, push 6" && client.droppedPushCount == 3)
        #expect(client.nextDeadline == nil && client.inbound.progress.received == 0)
        // Late ones take no room.
        _ = client.received(.message(nil, .init(), .part(8, of: 99)), now: .ms(0))
        #expect(client.lateMessageCount == 1 && client.droppedPushCount == 3)
    }

    @Test func whatAFrameAcknowledgesIsToldThoughItBreaksTheRules() {
        var client = TestMachine.openClient()
        _ = client.push(content(1), isObserved: true, now: .ms(0))
        _ = client.frames(now: .ms(0))
        let actions = client.received(.ordinary(9, .blank, acknowledging: (1, 0)), now: .ms(0))
        #expect(line(actions) == "#1 processed, violated gap, sessionLost")
    }

    @Test func aResponseBeforeItsRequestWasSentTakesItsPlace() throws {
        var client = TestMachine.openClient(welcome: .test(window: SessionWindow(frameCount: 0, byteCount: 1000)))
        _ = try client.request(content(1), 1, deadline: nil, now: .ms(0))
        #expect(line(client.received(.urgent(1, .response(2, serial: 1)), now: .ms(0))) == "complete 1 2")
        #expect(client.outbound.keptSize == SessionSize())
        #expect(
            line(client.received(.urgent(2, .response(2, serial: 1)), now: .ms(0))) == ""
                && client.lateMessageCount == 1
        )
    }

    @Test func thePeersLimitOfRequestsCounts() throws {
        for var machine in [TestMachine.openClient(), .openServer()] {
            for number in 1...10 { _ = try machine.request(content(number), number, deadline: nil, now: .ms(0)) }
            #expect(throws: RequestError.self) { try machine.request(content(11), 11, deadline: nil, now: .ms(0)) }
        }
        var welcome = SessionWelcome.test()
        welcome.maximumRequestCount = 0
        var client = TestMachine.openClient(welcome: welcome)
        _ = try client.request(content(1), 1, deadline: nil, now: .ms(0))
        #expect(throws: RequestError.self) { try client.request(content(2), 2, deadline: nil, now: .ms(0)) }
        var hello = SessionHello.test()
        hello.maximumRequestCount = 0
        var server = TestMachine.openServer(hello: hello)
        _ = try server.request(content(1), 1, deadline: nil, now: .ms(0))
        #expect(throws: RequestError.self) { try server.request(content(2), 2, deadline: nil, now: .ms(0)) }
    }
}
