import LifelineCore
import Testing

@testable import Lifeline

/// The life of a session beyond single events: opening, closing, and the end of a connection.
@Suite struct MachineLifeTests {
    private let now = MonotonicTime.ms(0)

    private func opened(_ role: SessionRole) -> MachineMatrixEnd {
        let end = MachineMatrixEnd(role)
        end.open()
        return end
    }

    // MARK: Openings

    @Test func aClientThatIsNotWelcomedTriesAgain() {
        let client = MachineMatrixEnd(.client)
        _ = client.push(1, now: now)
        client.connect(now: .ms(5))
        #expect(client.settle(now: .ms(5)) == "[hello]")
        let deadline = client.machine.nextDeadline
        #expect(deadline == .ms(10_005))
        client.machine.timerFired(now: .ms(10_004), into: &client.actions)
        #expect(client.takeLine() == "")
        client.machine.timerFired(now: .ms(10_005), into: &client.actions)
        #expect(client.takeLine() == "not welcomed")
        client.welcome(.test(1), isResumed: false, now: .ms(10_005))
        #expect(client.takeLine() == "", "too late")
        client.machine.disconnected(1, now: .ms(10_006), into: &client.actions)
        client.connect(now: .ms(10_007))
        #expect(client.settle(now: .ms(10_007)) == "[hello]")
        client.welcome(.test(1), isResumed: false, now: .ms(10_008))
        #expect(client.takeLine() == "opened 1")
        let next = client.machine.nextDeadline
        #expect(next == nil && client.settle(now: .ms(30_000)) == "[o1 method 1 m, o2 push 1]")
    }

    @Test func aNewSessionHasNoProgress() {
        let progress = OpeningProgress(processed: 7, received: 7, urgent: 7)
        let client = MachineMatrixEnd(.client)
        _ = client.push(1, now: now)
        client.connect(now: now)
        client.forget(now: now)
        client.welcome(.test(1), isResumed: false, progress: progress, now: now)
        #expect(client.takeLine() == "opened 1" && client.settle(now: now) == "[o1 method 1 m, o2 push 1]")
        let server = MachineMatrixEnd(.server)
        let refusal = server.machine.opened(
            by: .test(.test(9), progress: progress),
            .test(1),
            isResumed: false,
            over: 1,
            now: now,
            into: &server.actions
        )
        #expect(refusal == nil && server.takeLine() == "opened 1")
    }

    /// Openings and goodbyes that were not offered are discarded with their connection.
    @Test func aConnectionTakesItsOpeningAndItsGoodbyeWithIt() {
        let client = MachineMatrixEnd(.client)
        client.connect(now: now)
        client.machine.disconnected(1, now: now, into: &client.actions)
        #expect(client.settle(now: now) == "")
        let server = MachineMatrixEnd(.server)
        _ = server.machine.opened(by: .test(), .test(1), isResumed: false, over: 1, now: now, into: &server.actions)
        server.machine.drain(SessionDrain(deadline: now))
        server.machine.timerFired(now: now, into: &server.actions)
        server.machine.disconnected(1, now: now, into: &server.actions)
        #expect(server.settle(now: now) == "")
    }

    @Test func aConnectionThatRefusesFramesIsToldNothingMore() {
        let server = opened(.server)
        server.machine.drain(SessionDrain(deadline: now))
        server.machine.timerFired(now: now, into: &server.actions)
        server.machine.sendingFailed(into: &server.actions)
        #expect(server.settle(now: now) == "")
    }

    @Test func aNewSessionBeginsWithoutTheProgressOfTheOlderOne() {
        let client = opened(.client)
        func goOn(received: UInt64) -> String {
            client.machine.disconnected(client.machine.connectionID, now: now, into: &client.actions)
            client.connect(now: now)
            client.forget(now: now)
            let progress = OpeningProgress(processed: 1, received: received, urgent: 0)
            client.welcome(.test(1), isResumed: received > 0, progress: progress, now: now)
            return client.takeLine()
        }
        for number in 1...2 as ClosedRange<UInt8> { _ = client.push(number, now: now) }
        client.forget(now: now)
        client.receive(HostileFrame.acknowledgement(2), now: now)
        client.machine.disconnected(1, now: now, into: &client.actions)
        client.connect(now: now)
        client.forget(now: now)
        let progress = OpeningProgress(processed: 2, received: 4, urgent: 0)
        client.welcome(.test(1), isResumed: true, progress: progress, now: now)
        client.receive(HostileFrame.goodbye(6), now: now)
        _ = client.takeLine()
        #expect(goOn(received: 0) == "opened 1")
        _ = client.push(3, now: now)
        client.forget(now: now)
        #expect(goOn(received: 1) == "opened 1 again" && client.settle(now: now) == "[o2 push 3]")
    }

    @Test func anEndThatIsClosedAtOnceSaysItsOpeningFirst() {
        let client = MachineMatrixEnd(.client)
        client.connect(now: now)
        client.machine.end(.abandoned, now: now, into: &client.actions)
        #expect(client.settle(now: now) == "[hello, goodbye closed] close 1 byOwner")
        let server = MachineMatrixEnd(.server)
        _ = server.machine.opened(by: .test(), .test(1), isResumed: false, over: 1, now: now, into: &server.actions)
        server.machine.end(.abandoned, now: now, into: &server.actions)
        #expect(server.settle(now: now) == "[welcome, goodbye closed] close 1 inOrder")
    }

    /// Pings of a connection are answered before its session knows of it, but not after the session is done with it.
    @Test func aConnectionThatIsNotReportedYetIsNotDone() {
        func done(_ end: MachineMatrixEnd) -> [Bool] { [1, 2, 3].map { end.machine.isDone(with: $0) } }
        let client = opened(.client)
        #expect(done(client) == [false, false, false])
        client.receive(HostileFrame.of(.ping), over: 2, now: now)
        #expect(client.takeLine() == "", "it has no meaning yet")
        client.connect(now: now)
        #expect(done(client) == [true, false, false])
        client.receive(HostileFrame.goodbye(1), now: now)
        #expect(done(client) == [true, true, false])
    }

    @Test func aSessionIsOpenedWhenItsClientIsWelcomed() {
        func wasOpened(_ end: MachineMatrixEnd) -> Bool { end.machine.wasOpened }
        let server = MachineMatrixEnd(.server)
        server.machine.end(.expired, now: now, into: &server.actions)
        #expect(!wasOpened(server))
        let other = MachineMatrixEnd(.server)
        var hello = ClientOpening.test()
        (hello.minimumVersion, hello.maximumVersion) = (2, 2)
        _ = other.machine.opened(by: hello, .test(1), isResumed: false, over: 1, now: now, into: &other.actions)
        #expect(other.takeLine() == "violated version, ended violated" && !wasOpened(other))
        let client = MachineMatrixEnd(.client)
        client.connect(now: now)
        #expect(!wasOpened(client) && wasOpened(opened(.client)) && wasOpened(opened(.server)))
    }

    @Test func aSessionIsUsedWhenSomethingOfItHasCome() {
        func isUsed(_ end: MachineMatrixEnd) -> Bool { end.machine.isUsed }
        for frame in [HostileFrame.method(1, "p"), HostileFrame.ending(.cancel), HostileFrame.acknowledgement(1)] {
            let end = MachineMatrixEnd(.server)
            _ = end.machine.opened(by: .test(), .test(1), isResumed: false, over: 1, now: now, into: &end.actions)
            end.receive(HostileFrame.acknowledgement(0), now: now)
            _ = end.push(1, now: now)
            #expect(end.settle(now: now) == "[welcome, o1 method 1 m, o2 push 1]" && !isUsed(end))
            end.receive(frame, now: now)
            #expect(isUsed(end))
            end.machine.disconnected(1, now: now, into: &end.actions)
            #expect(isUsed(end))
        }
    }

    @Test func aRequestThatIsNextToBeSentOutlivesItsSession() {
        let client = opened(.client)
        client.request(1, now: now)
        client.receive(HostileFrame.goodbye(6), now: now)
        #expect(client.takeLine() == "sessionLost accused, accused violation")
        #expect(client.settle(now: now) == "close 1 inOrder")
        client.machine.disconnected(1, now: now, into: &client.actions)
        client.connect(now: now)
        client.forget(now: now)
        client.welcome(.test(2), isResumed: false, now: now)
        #expect(client.takeLine() == "opened 2" && client.settle(now: now) == "[o1 method 1 m, o2 request 1 1]")
    }

    // MARK: Draining

    @Test func aDrainingServerFinishesWhatWasBegun() {
        let pair = MachinePair(SessionOptions())
        pair.connect()
        pair.exchange()
        pair.exchange()
        pair.client.ask("both", parts: 2, size: 10, timeout: nil, now: pair.now)
        for _ in 0..<3 { pair.exchange() }
        pair.server.machine.drain(SessionDrain(pause: .seconds(3), deadline: pair.now + .seconds(1)))
        pair.exchange()
        #expect(pair.client.machine.life.isLeaving)
        pair.client.push("t.P/0", size: 10, .reliable, isObserved: true, now: pair.now)
        for _ in 0..<10 {
            for request in pair.client.calls.keys.sorted() { pair.client.goOnAsking(request, size: 10, now: pair.now) }
            for end in pair.ends { while !end.unread.isEmpty { end.read(0, now: pair.now) } }
            for index in pair.server.work.indices.reversed() {
                pair.server.goOnAnswering(index, size: 10, now: pair.now)
            }
            for end in pair.ends where pair.isConnected {
                while pair.offer(end) {}
                pair.offered(end)
            }
            pair.deliver()
            pair.pass(.milliseconds(25))
        }
        #expect(pair.client.endedCallCount == 1 && pair.server.received.isEmpty, "nothing is begun")
        #expect(pair.client.closings.map(\.1) == [.inOrder], "it has left")
        pair.closeIfAsked()
        pair.finish()
        #expect(pair.server.received["t.P/0"]?.count == 1)
        #expect(pair.failure == nil && pair.check() == nil)
    }

    @Test func aClientLeavesWhenItsResponsesAreProcessed() {
        let client = opened(.client)
        client.receive(HostileFrame.request(7), now: now)
        client.receive(HostileFrame.goodbye(2), now: now)
        #expect(client.takeLine() == "begin 7, leaving for 0.0 seconds")
        #expect(client.settle(now: .ms(20)) == "[ack 2/0]" && client.settle(now: .ms(20)) == "", "it still runs")
        #expect(client.respond(to: 7, 7, now: .ms(20)) == "accepted")
        #expect(client.settle(now: .ms(20)) == "[u1 response 7 7]" && client.settle(now: .ms(20)) == "")
        client.receive(HostileFrame.acknowledgement(0, urgent: 1), now: .ms(20))
        #expect(client.settle(now: .ms(20)) == "close 1 inOrder")
    }

    @Test func aClientLeavesWhenThePeerKnowsWhatWasProcessed() {
        let client = opened(.client)
        client.request(1, now: now)
        _ = client.settle(now: now)
        client.receive(HostileFrame.acknowledgement(3), now: now)
        client.receive(HostileFrame.goodbye(2), now: now)
        client.receive(HostileFrame.response(.urgentResponse), now: now)
        #expect(client.takeLine() == "leaving for 0.0 seconds, complete r1")
        #expect(client.settle(now: .ms(19)) == "" && client.settle(now: .ms(20)) == "[ack 1/1] close 1 inOrder")
    }

    @Test func aClientLeavesThoughARequestWaitsForAnotherConnection() {
        let client = opened(.client)
        client.request(1, now: now)
        _ = client.settle(now: now)
        client.receive(HostileFrame.acknowledgement(3), now: now)
        client.receive(HostileFrame.goodbye(2), now: now)
        client.request(2, now: now)
        #expect(client.settle(now: now) == "")
        client.receive(HostileFrame.response(.urgentResponse), now: now)
        #expect(client.settle(now: .ms(20)) == "[ack 1/1] close 1 inOrder")
    }

    @Test func aDrainingServerSaysSoBehindAMessageThatWaitsForCredit() {
        let server = MachineMatrixEnd(.server)
        server.open(MachineMatrixEnd.largeTerms)
        #expect(server.push(1, size: 70_000, now: now) == "accepted #1")
        _ = server.settle(now: now)
        #expect(server.push(2, now: now) == "waits #2")
        server.machine.drain(SessionDrain(deadline: .ms(100)))
        #expect(server.settle(now: now) == "")
        server.receive(HostileFrame.credit(1, 1, 1 << 20), now: now)
        #expect(server.takeLine() == "accepted #2")
        #expect(server.settle(now: now) == "[o4 push 2, goodbye draining]")
    }

    @Test func aDrainingServerWaitsForTheTurnOfItsClient() {
        let server = opened(.server)
        server.machine.drain(SessionDrain(start: .ms(50), deadline: .ms(100)))
        #expect(server.settle(now: now) == "" && server.machine.nextDeadline == .ms(50))
        #expect(server.push(1, now: now) == "accepted #1")
        #expect(server.settle(now: .ms(49)) == "[o3 push 1]")
        server.machine.timerFired(now: .ms(50), into: &server.actions)
        #expect(server.settle(now: .ms(50)) == "[goodbye draining]")
    }

    @Test func aDrainingServerWaitsForItsMessagesUntilTheDeadline() {
        let server = MachineMatrixEnd(.server)
        server.open(MachineMatrixEnd.largeTerms)
        #expect(server.push(1, size: 70_000, now: now) == "accepted #1")
        _ = server.settle(now: now)
        #expect(server.push(2, now: now) == "waits #2")
        server.machine.drain(SessionDrain(start: .ms(50), deadline: .ms(100)))
        server.machine.timerFired(now: .ms(50), into: &server.actions)
        #expect(server.settle(now: .ms(50)) == "" && server.machine.life.nextDeadline == .ms(100))
        server.machine.timerFired(now: .ms(100), into: &server.actions)
        #expect(server.settle(now: .ms(100)) == "[goodbye draining]")
    }

    @Test func ofTwoDrainsTheEarlierTimesCount() {
        let server = opened(.server)
        server.machine.drain(SessionDrain(start: .ms(50), deadline: .ms(100)))
        server.machine.drain(SessionDrain(start: .ms(70), deadline: .ms(90)))
        #expect(server.machine.nextDeadline == .ms(50))
        server.machine.drain(SessionDrain(deadline: .ms(200)))
        #expect(server.machine.nextDeadline == .ms(90))
        #expect(server.settle(now: now) == "[goodbye draining]")
    }

    // MARK: Closing

    @Test func closingFinishesWhatWasAcceptedAndTellsThePeerWhatWasProcessed() {
        let end = opened(.client)
        _ = end.push(1, now: now)
        end.receive(HostileFrame.request(7), now: now)
        end.receive(HostileFrame.push(size: 1), now: now)
        _ = end.takeLine()
        for _ in 0..<2 { end.machine.close(now: now, into: &end.actions) }
        #expect(end.takeLine() == "" && end.push(2, now: now) == "closed")
        #expect(end.request(3, now: now) == "notSent")
        // Running requests may continue to their end, with their parts. No other request begins.
        end.receive(HostileFrame.request(8), now: now)
        #expect(end.takeLine() == "refuse 8 closing")
        #expect(end.settle(now: now) == "[ack 2/0 4-4, o3 push 1]")
        #expect(end.sendAnswerPart(4, to: 7, now: now) == "accepted")
        #expect(end.respond(to: 7, 5, now: now) == "accepted")
        #expect(end.settle(now: now) == "[o4 answer 4 to 7, o5 response 7 5]")
        end.machine.finish(end.receipts[0], now: now)
        // The refused request counts until it has a response.
        end.receive(HostileFrame.acknowledgement(5), now: now)
        #expect(end.takeLine() == "#1 processed")
    }

    @Test func closingWaitsForEverythingThatIsLeft() {
        // A request of this side, sent and processed.
        var end = opened(.client)
        end.request(1, now: now)
        _ = end.settle(now: now)
        end.receive(HostileFrame.acknowledgement(3), now: now)
        end.machine.close(now: now, into: &end.actions)
        #expect(end.takeLine() == "")
        end.receive(HostileFrame.response(.urgentResponse), now: now)
        #expect(end.takeLine() == "complete r1, ended closed")
        #expect(end.settle(now: now) == "[ack 1/1, goodbye closed] close 1 byOwner")
        // A message.
        end = opened(.client)
        _ = end.push(1, now: now)
        end.machine.close(now: now, into: &end.actions)
        #expect(end.takeLine() == "" && end.settle(now: now) == "[o3 push 1]")
        end.receive(HostileFrame.acknowledgement(3), now: now)
        #expect(end.takeLine() == "#1 processed, ended closed")
        // A server says goodbye to a client. A client makes no connection only to say goodbye.
        for (role, line) in [(SessionRole.server, ""), (.client, "ended closed")] {
            let end = opened(role)
            end.machine.disconnected(1, now: now, into: &end.actions)
            end.machine.close(now: now, into: &end.actions)
            #expect(end.takeLine() == line)
        }
    }

    @Test func closingEndsWhenTheLastMessageThatWaitsIsWithdrawn() {
        let end = MachineMatrixEnd(.client)
        end.open(MachineMatrixEnd.largeTerms)
        #expect(end.push(1, size: 70_000, now: now) == "accepted #1")
        _ = end.settle(now: now)
        end.receive(HostileFrame.acknowledgement(3), now: now)
        #expect(end.takeLine() == "#1 processed" && end.push(2, now: now) == "waits #2", "there is no credit")
        end.machine.close(now: now, into: &end.actions)
        #expect(end.takeLine() == "")
        #expect(end.machine.withdraw(2, now: now, into: &end.actions) && end.takeLine() == "ended closed")
    }

    @Test func aServerThatHasNothingLeftToDoEndsWhenItsClientComesBack() {
        let end = opened(.server)
        end.machine.disconnected(1, now: now, into: &end.actions)
        end.machine.close(now: now, into: &end.actions)
        #expect(end.takeLine() == "")
        let hello = ClientOpening.test(.test(1), attempt: 2, progress: end.progress)
        _ = end.machine.opened(by: hello, .test(1), isResumed: true, over: 2, now: now, into: &end.actions)
        #expect(end.takeLine() == "opened 1 again, ended closed")
    }

    @Test func closingWaitsForResponsesToBeProcessed() {
        let end = opened(.client)
        #expect(end.answer(7, now: now) == "accepted" && end.settle(now: now) == "[ack 2/0, u1 response 7 7]")
        end.machine.close(now: now, into: &end.actions)
        #expect(end.takeLine() == "")
        end.receive(HostileFrame.acknowledgement(0, urgent: 1), now: now)
        #expect(end.takeLine() == "ended closed")
    }

    @Test func closingEndsWhenTheLastRequestThatWaitsIsCancelled() {
        let end = opened(.client)
        end.receive(HostileFrame.goodbye(2), now: now)
        end.request(1, now: now)
        end.machine.close(now: now, into: &end.actions)
        _ = end.takeLine()
        #expect(end.machine.cancelRequest(end.calls[0], now: now, into: &end.actions))
        #expect(end.takeLine() == "ended closed" && end.machine.waitingCount == 0)
    }

    @Test func closingWithoutAConnectionWaitsForTheNext() {
        let end = opened(.client)
        _ = end.push(1, now: now)
        end.machine.disconnected(1, now: now, into: &end.actions)
        end.machine.close(now: now, into: &end.actions)
        end.connect(now: .ms(1))
        #expect(end.takeLine() == "" && end.settle(now: .ms(1)) == "[hello again at 1/1/0]")
        end.welcome(.test(1), isResumed: true, progress: end.progress, now: .ms(1))
        #expect(end.takeLine() == "opened 1 again" && end.settle(now: .ms(1)) == "[o3 push 1]")
        end.receive(HostileFrame.acknowledgement(3), now: .ms(1))
        #expect(end.takeLine() == "#1 processed, ended closed")
    }

    /// No connection is made for blanks and method names: without messages, they mean nothing to the peer.
    @Test func closingDoesNotWaitForFillers() {
        // Three cases: a session that the peer never knew; one that it knows, without a connection; and one with a
        // connection.
        for stage in 0..<3 {
            let end = stage == 0 ? MachineMatrixEnd(.client) : opened(.client)
            if stage == 1 { end.machine.disconnected(1, now: now, into: &end.actions) }
            #expect(end.push(1, .atMostOnce, method: "n", now: now) == (stage == 2 ? "accepted #1" : "dropped"))
            end.request(2, deadline: .ms(5), now: now)
            _ = end.push(3, .expiring(after: .milliseconds(5)), now: now)
            if stage == 2 { _ = end.settle(hasRoom: false, now: now) }
            end.machine.close(now: now, into: &end.actions)
            #expect(end.takeLine() == "", "\(stage)")
            end.machine.timerFired(now: .ms(5), into: &end.actions)
            let number = stage == 2 ? 2 : 1
            let line = "#\(number) expired, fail r1 timedOut" + (stage == 2 ? "" : ", ended closed")
            #expect(end.takeLine() == line, "\(stage)")
            // The method name and the push that is sent at most once are sent, and then nothing is left.
            if stage == 2 {
                #expect(
                    end.settle(now: .ms(5))
                        == "[o3 method 2 n, o4 blank, o5 blank, push 1] (#1 sent) ended closed"
                )
                #expect(end.settle(now: .ms(5)) == "[goodbye closed] close 1 byOwner")
            }
        }
    }

    @Test func anObservedPartThatWasSentIsInDoubtWhenItsSessionIsLost() {
        let client = opened(.client)
        client.request(1, hasParts: true, now: now)
        let content = client.content(2)
        let offer = client.machine.sendPart(
            of: client.calls[0],
            content,
            isObserved: true,
            now: now,
            into: &client.actions
        )
        #expect(offer == .accepted(number: 1))
        #expect(client.settle(now: now) == "[o3 request 1 with parts, o4 part 2 of 1]")
        client.receive(HostileFrame.goodbye(6), now: now)
        #expect(client.takeLine() == "sessionLost accused, fail r1 sessionLost, #1 inDoubt, accused violation")
    }

    // MARK: Outcomes of pushes

    /// When an accepted push ends, it is reported with its content, also if a caller waits until it is processed.
    @Test func anObservedPushThatEndsIsToldOfWhole() throws {
        // Pushes that are sent, unsent, and accepted behind others; one that is not observed; and one that was not
        // accepted.
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: 5, byteCount: 10_000)
        for isLost in [true, false] {
            let end = MachineMatrixEnd(.client, options)
            end.open()
            #expect(end.push(1, now: now) == "accepted #1")
            _ = end.machine.push("m", end.content(2), now: now, into: &end.actions)
            _ = end.settle(now: now)
            #expect(end.push(3, now: now) == "accepted #2")
            _ = end.machine.push("m", end.content(4), now: now, into: &end.actions)
            #expect(end.push(5, .replaceable(key: "k"), now: now) == "accepted #3")
            #expect(end.push(6, now: now) == "waits #4")
            let sent = "#1 inDoubt, left over 1 inDoubt, left over 2 inDoubt"
            if isLost {
                end.receive(HostileFrame.goodbye(6), now: now)
                #expect(end.takeLine().hasPrefix("sessionLost accused, \(sent)"))
                #expect(end.takeLine() == "")
            }
            end.machine.end(.abandoned, now: now, into: &end.actions)
            let rest =
                "#2 unsent, left over 3 unsent, left over 4 unsent, #3 unsent, left over 5 unsent, #4 unsent"
            let line = end.takeLine()
            if isLost {
                // It was accepted meanwhile: the method name takes a place, and two messages no longer have one.
                #expect(line == "\(rest), left over 6 unsent, ended abandoned")
            } else {
                #expect(line == "\(sent), \(rest), ended abandoned")
            }
        }
    }
}
