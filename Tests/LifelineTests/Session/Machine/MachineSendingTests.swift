import LifelineCore
import Testing

@testable import Lifeline

/// Messages on their way: room, credit, keys, times to live, and the order of the lanes.
@Suite struct MachineSendingTests {
    private let now = MonotonicTime.ms(0)

    /// A client whose peer knows the method "m", so that its name costs nothing.
    private func client(frames: Int = 100, bytes: Int = 10_000, window: SessionWindow? = nil) -> MachineMatrixEnd {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: frames, byteCount: bytes)
        let end = MachineMatrixEnd(.client, options)
        var terms = MachineMatrixEnd.largeTerms
        if let window { terms.window = window }
        end.open(terms)
        return end
    }

    /// Loses the connection, and continues over another one.
    private func comeBack(_ end: MachineMatrixEnd, _ progress: OpeningProgress, now: MonotonicTime) -> String {
        end.machine.disconnected(end.machine.connectionID, now: now, into: &end.actions)
        end.connect(now: now)
        end.forget(now: now)
        end.welcome(.test(1), isResumed: true, progress: progress, terms: MachineMatrixEnd.largeTerms, now: now)
        return end.takeLine()
    }

    private func acknowledge(_ end: MachineMatrixEnd, _ place: UInt64, urgent: UInt64 = 0) -> String {
        end.receive(HostileFrame.acknowledgement(place, urgent: urgent), now: now)
        return end.takeLine()
    }

    private func timer(_ end: MachineMatrixEnd, _ milliseconds: Int64) -> String {
        end.machine.timerFired(now: .ms(milliseconds), into: &end.actions)
        return end.takeLine()
    }

    // MARK: Lanes

    @Test func eachLaneHasItsWindow() {
        let end = MachineMatrixEnd(.server)
        var terms = MachineMatrixEnd.terms
        terms.window = SessionWindow(frameCount: 2, byteCount: 8_192)
        end.open(terms)
        for number in 1...3 as ClosedRange<UInt8> { _ = end.push(number, now: now) }
        for serial in 4...6 as ClosedRange<UInt32> { _ = end.answer(serial, now: now) }
        #expect(end.settle(now: now) == "[ack 4/0, u1 response 4 4, u2 response 5 5, o3 push 1, o4 push 2]")
        _ = acknowledge(end, 2, urgent: 1)
        #expect(end.settle(now: now) == "[u3 response 6 6]")
        _ = acknowledge(end, 3, urgent: 1)
        #expect(end.settle(now: now) == "[o5 push 3]")
    }

    @Test func resentFramesGoFirstAndCancelsFollowTheirRequests() {
        let end = client()
        end.request(1, now: now)
        _ = end.push(2, now: now)
        #expect(end.settle(now: now) == "[o3 request 1 1, o4 push 2]")
        _ = end.machine.cancelRequest(end.calls[0], now: now, into: &end.actions)
        #expect(end.settle(now: now) == "[u1 cancel 1]")
        _ = end.push(3, now: now)
        #expect(comeBack(end, OpeningProgress(processed: 2, received: 2, urgent: 0), now: now) == "opened 1 again")
        #expect(end.settle(now: now) == "[o3 request 1 1, o4 push 2, o5 push 3, u1 cancel 1]")
    }

    @Test func aPartSentAtMostOnceGoesBehindItsRequest() {
        let end = client()
        end.request(1, hasParts: true, now: now)
        let content = end.content(2)
        let offer = end.machine.sendPart(of: end.calls[0], content, .atMostOnce, now: now, into: &end.actions)
        #expect(offer == .accepted(number: 0))
        #expect(end.settle(now: now) == "[o3 request 1 with parts, part 2 of 1]")
    }

    @Test func onlySoMuchThatIsSentAtMostOnceWaitsForAnOffer() {
        let end = client()
        let offers = (1...3).map { end.push($0, size: 40_000, .atMostOnce, now: now) }
        #expect(offers == ["accepted #1", "accepted #2", "dropped"])
        #expect(end.settle(now: now) == "[push 1, push 2] (#1 sent, #2 sent)")
        #expect(end.push(4, size: 40_000, .atMostOnce, now: now) == "accepted #3")
    }

    @Test func onlyOpenRequestsContinueWithAPeerThatLeaves() {
        let end = client()
        end.request(1, hasParts: true, now: now)
        end.request(2, now: now)
        for serial in 7...8 as ClosedRange<UInt64> { end.receive(HostileFrame.request(serial), now: now) }
        _ = end.takeLine()
        _ = end.settle(now: now)
        end.receive(HostileFrame.goodbye(2), now: now)
        _ = end.takeLine()
        #expect(end.push(3, now: now) == "waits #1")
        #expect(end.request(4, now: now) == "r3")
        #expect(
            end.machine.sendPart(of: end.calls[0], end.content(5), now: now, into: &end.actions) == .accepted(number: 0)
        )
        #expect(end.machine.endParts(of: end.calls[0], now: now, into: &end.actions))
        _ = end.machine.cancelRequest(end.calls[1], now: now, into: &end.actions)
        #expect(end.sendAnswerPart(6, to: 7, now: now) == "accepted")
        #expect(end.respond(to: 7, 7, now: now) == "accepted" && end.respond(to: 8, 8, now: now) == "accepted")
        #expect(
            end.settle(now: now)
                == "[u1 cancel 2, u2 response 8 8, o5 part 5 of 1, o6 end of 1, o7 answer 6 to 7, o8 response 7 7]"
        )
        let progress = OpeningProgress(processed: 8, received: 8, urgent: 2)
        #expect(comeBack(end, progress, now: now) == "accepted #1, opened 1 again")
        #expect(end.settle(now: now) == "[o9 push 3, o10 request 3 4]")
    }

    @Test func partsOfARequestThatWaitsGoBehindIt() {
        let end = client()
        end.request(1, now: now)
        _ = end.settle(now: now)
        end.receive(HostileFrame.goodbye(2), now: now)
        _ = end.takeLine()
        end.request(2, now: now)
        end.request(3, hasParts: true, now: now)
        let offer = end.machine.sendPart(of: end.calls[2], end.content(5), now: now, into: &end.actions)
        #expect(offer == .waits(number: 3))
        #expect(end.machine.endParts(of: end.calls[2], now: now, into: &end.actions))
        end.request(4, hasParts: true, now: now)
        #expect(end.machine.endParts(of: end.calls[3], now: now, into: &end.actions))
        #expect(end.settle(now: now) == "")
        let progress = OpeningProgress(processed: 3, received: 3, urgent: 0)
        #expect(comeBack(end, progress, now: now) == "accepted #3, opened 1 again")
        #expect(
            end.settle(now: now) == "[o4 request 2 2, o5 request 3 with parts, o6 part 5 of 3, "
                + "o7 request 4 with parts, o8 end of 3, o9 end of 4]"
        )
    }

    @Test(arguments: [true, false]) func aMessageThatWaitsForAnotherConnectionIsNotOvertaken(isObserved: Bool) {
        let end = client()
        end.receive(HostileFrame.goodbye(2), now: now)
        _ = end.takeLine()
        #expect(end.push(1, now: now) == "waits #1")
        end.machine.disconnected(1, now: now, into: &end.actions)
        let content = end.content(2)
        let offer = end.machine.push("m", content, isObserved: isObserved, now: now, into: &end.actions)
        #expect(offer == .waits(number: 2))
        #expect(comeBack(end, end.progress, now: now) == "accepted #1, accepted #2, opened 1 again")
        #expect(end.settle(now: now) == "[o3 push 1, o4 push 2]")
    }

    /// This also holds if the driver asked several times for frames to send.
    @Test func refusedFramesWereNotSent() {
        let end = client()
        for number in 1...2 as ClosedRange<UInt8> {
            _ = end.push(number, now: now)
            _ = end.machine.offer(hasRoom: true, atMost: 1 << 20, now: now, into: &end.actions) { _ in }
        }
        end.machine.sendingFailed(into: &end.actions)
        end.machine.disconnected(1, now: now, into: &end.actions)
        end.connect(now: now)
        end.forget(now: now)
        end.welcome(.test(2), isResumed: false, now: now)
        #expect(end.takeLine() == "sessionLost forgotten, opened 2")
        #expect(end.settle(now: now) == "[o1 method 1 m, o2 push 1, o3 push 2]")
    }

    @Test func aCancelThatAConnectionRefusesWasNotSent() {
        let end = client()
        end.request(1, now: now)
        _ = end.settle(now: now)
        _ = acknowledge(end, 3)
        _ = end.machine.cancelRequest(end.calls[0], now: now, into: &end.actions)
        _ = end.machine.offer(hasRoom: true, atMost: 1 << 20, now: now, into: &end.actions) { _ in }
        end.machine.sendingFailed(into: &end.actions)
        let progress = OpeningProgress(processed: 3, received: 3, urgent: 1)
        #expect(comeBack(end, progress, now: now).hasPrefix("violated unknownAcknowledgement"))
    }

    // MARK: Room

    @Test func sendersWaitForRoomInOrder() {
        let end = client(frames: 3)
        #expect((1...3).map { end.push($0, now: now) } == ["accepted #1", "accepted #2", "accepted #3"])
        #expect((4...6).map { end.push($0, now: now) } == ["waits #4", "waits #5", "waits #6"])
        #expect(!end.machine.withdraw(1, now: now, into: &end.actions), "it was accepted")
        #expect(end.machine.withdraw(5, now: now, into: &end.actions) && end.takeLine() == "")
        #expect(end.settle(now: now) == "[o3 push 1, o4 push 2, o5 push 3]")
        #expect(acknowledge(end, 3) == "#1 processed, accepted #4")
        #expect(end.settle(now: now) == "[o6 push 4]")
        #expect(acknowledge(end, 6) == "#2 processed, #3 processed, #4 processed, accepted #6")
        #expect(!end.machine.withdraw(6, now: now, into: &end.actions))
        #expect(end.machine.waitingCount == 0)
    }

    @Test func roomIsCountedInBytesAndOneMessageMayBeLarger() {
        // Room for two observed messages, and 300 bytes.
        let end = client(bytes: 2 * SessionMachine.detailsOverhead + 300)
        #expect(end.push(1, size: 1_301, now: now) == "accepted #1", "it would wait for ever")
        #expect(end.push(2, now: now) == "waits #2" && end.push(3, method: "n", now: now) == "waits #3")
        // The name has room at once.
        #expect(end.settle(now: now) == "[o3 push 1, o4 method 2 n]")
        // Waiting messages are sent in order, also to another method.
        #expect(acknowledge(end, 3) == "#1 processed, accepted #2, accepted #3")
        #expect(end.settle(now: now) == "[o5 push 2, o6 push 3]")
    }

    @Test func aMessageBehindOneThatIsWithdrawnIsAccepted() {
        let end = client(bytes: 2 * SessionMachine.detailsOverhead + 300)
        _ = end.push(1, size: 150, now: now)
        #expect(end.push(2, size: 150, now: now) == "waits #2" && end.push(3, now: now) == "waits #3")
        #expect(end.machine.withdraw(2, now: now, into: &end.actions) && end.takeLine() == "accepted #3")
    }

    @Test func aMessageBehindOneThatExpiresIsAccepted() {
        let end = client(bytes: 2 * SessionMachine.detailsOverhead + 300)
        _ = end.push(1, size: 150, now: now)
        #expect(end.push(2, size: 150, .expiring(after: .milliseconds(5)), now: now) == "waits #2")
        #expect(end.push(3, now: now) == "waits #3" && timer(end, 5) == "#2 expired, accepted #3")
    }

    @Test func aRequestDoesNotOvertakeOneThatWaitsForRoom() {
        let end = client(bytes: 300)
        _ = end.machine.push("m", end.content(0, size: 400), now: now, into: &end.actions)
        _ = end.settle(now: now)
        end.receive(HostileFrame.goodbye(2), now: now)
        end.request(1, now: now)
        let progress = OpeningProgress(processed: 2, received: 3, urgent: 0)
        #expect(comeBack(end, progress, now: now) == "opened 1 again" && end.machine.waitingCount == 1)
        #expect(end.request(2, now: now) == "r2" && end.settle(now: now) == "")
        _ = acknowledge(end, 3)
        #expect(end.settle(now: now) == "[o4 request 1 1, o5 request 2 2]")
    }

    @Test func aMessageBehindAPartThatIsNeededNoMoreIsAccepted() {
        let end = client(bytes: 2 * SessionMachine.detailsOverhead + 300)
        end.request(1, hasParts: true, now: now)
        _ = end.settle(now: now)
        _ = acknowledge(end, 3)
        _ = end.push(1, size: 150, now: now)
        let large = end.content(2, size: 700)
        let offer = end.machine.sendPart(of: end.calls[0], large, now: now, into: &end.actions)
        #expect(offer == .waits(number: 2) && end.push(3, now: now) == "waits #3")
        end.receive(HostileFrame.response(.urgentResponse), now: now)
        #expect(end.takeLine() == "#2 unsent, accepted #3, complete r1")
    }

    @Test func aMessageThatEndsWhileItWaitsIsToldOnce() {
        let end = client(frames: 2)
        _ = end.push(1, now: now)
        _ = end.machine.push("m", end.content(0), now: now, into: &end.actions)
        #expect(end.push(2, .expiring(after: .milliseconds(5)), now: now) == "waits #2")
        #expect(end.push(3, .replaceable(key: "k"), now: now) == "waits #3")
        #expect(end.push(4, .replaceable(key: "k"), now: now) == "waits #4; #3 replaced")
        #expect(end.push(5, now: now) == "waits #5")
        #expect(end.machine.nextDeadline == .ms(5) && timer(end, 5) == "#2 expired")
        #expect(end.settle(now: now) == "[o3 push 1, o4 push 0]")
        #expect(acknowledge(end, 3) == "#1 processed, accepted #4")
        #expect(end.settle(now: now) == "[o5 push 4]")
        #expect(acknowledge(end, 5) == "#4 processed, accepted #5")
        #expect(end.machine.waitingCount == 0 && end.machine.nextDeadline == nil)
    }

    /// No time passes, so nobody waits for delayed acknowledgements.
    @Test(arguments: [1, 65_536]) func aSenderThatKeepsLittleIsToldInTime(size: Int) {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: 64, byteCount: 256 << 10)
        let pair = MachinePair(options)
        pair.connect()
        pair.exchange()
        for _ in 0..<200 { pair.client.push("t.P/0", size: size, .reliable, isObserved: false, now: pair.now) }
        for _ in 0..<1_000 {
            pair.exchange()
            while !pair.server.unread.isEmpty { pair.server.read(0, now: pair.now) }
        }
        #expect(pair.server.received["t.P/0"]?.count == 200 && pair.failure == nil)
    }

    @Test func acknowledgementsTravelWithMessagesOrAloneAfterAWhile() {
        let end = client()
        end.receive(HostileFrame.push(size: 1), now: now)
        end.receive(HostileFrame.push(size: 2), now: now)
        _ = end.takeLine()
        #expect(end.machine.nextDeadline == nil && end.settle(now: .ms(100)) == "")
        end.machine.finish(end.receipts[0], now: now)
        #expect(end.machine.nextDeadline == .ms(20) && end.settle(now: .ms(19)) == "")
        #expect(end.settle(now: .ms(20)) == "[ack 2/0]" && end.machine.nextDeadline == nil)
        end.machine.finish(end.receipts[1], now: .ms(30))
        _ = end.push(3, now: .ms(31))
        #expect(end.settle(now: .ms(31)) == "[ack 3/0, o3 push 3]" && end.machine.nextDeadline == nil)
        // Urgent frames are processed on arrival.
        end.receive(HostileFrame.response(.urgentResponse, 99), now: .ms(40))
        #expect(end.settle(now: .ms(59)) == "" && end.settle(now: .ms(60)) == "[ack 3/1]")
        // The hello states it, too, so no acknowledgement has to follow.
        end.receive(HostileFrame.of(.blank), now: .ms(70))
        end.machine.disconnected(end.machine.connectionID, now: .ms(71), into: &end.actions)
        #expect(end.machine.nextDeadline == nil)
        end.connect(now: .ms(72))
        #expect(end.settle(now: .ms(72)) == "[hello again at 4/4/1]")
        let progress = OpeningProgress(processed: 3, received: 3, urgent: 0)
        end.welcome(.test(1), isResumed: true, progress: progress, now: .ms(73))
        #expect(end.machine.nextDeadline == nil && end.settle(now: .ms(500)) == "")
    }

    // MARK: Times to live

    @Test func aMessageThatHasExpiredIsNotSent() {
        let end = client()
        for (number, milliseconds) in [(1, 10), (2, 5), (4, -1)] as [(UInt8, Int)] {
            _ = end.push(number, .expiring(after: .milliseconds(milliseconds)), now: now)
            if number == 2 { _ = end.push(3, now: now) }
        }
        #expect(end.machine.nextDeadline == .ms(0) && timer(end, 0) == "#4 expired")
        #expect(end.machine.nextDeadline == .ms(5) && timer(end, 4) == "")
        #expect(timer(end, 20) == "#2 expired, #1 expired" && end.machine.nextDeadline == nil)
        #expect(end.settle(now: .ms(20)) == "[o3 blank, o4 blank, o5 push 3, o6 blank]")
    }

    @Test func aRequestThatIsSentAgainSaysTheTimeItHasLeft() {
        let end = client()
        func sentTimeout(now: MonotonicTime) -> UInt64? {
            var bytes: [UInt8] = []
            _ = end.machine.offer(hasRoom: true, atMost: 1 << 20, now: now, into: &end.actions) {
                bytes.append(contentsOf: $0)
            }
            return bytes.withUnsafeBytes { SessionMachine.parsed($0)?.1.timeoutMilliseconds }
        }
        end.request(1, deadline: .ms(100), now: now)
        #expect(sentTimeout(now: now) == 100)
        #expect(comeBack(end, end.progress, now: .ms(40)) == "opened 1 again")
        #expect(sentTimeout(now: .ms(40)) == 60)
    }

    @Test func aSentMessageIsNotSentAgainAtItsDeadline() {
        let end = client()
        _ = end.push(1, .expiring(after: .milliseconds(10)), now: now)
        _ = end.settle(now: now)
        #expect(comeBack(end, end.progress, now: .ms(10)) == "#1 expired, opened 1 again")
        #expect(end.settle(now: .ms(10)) == "[o3 blank]")
    }

    @Test func nobodyIsToldOfAMessageThatIsNotObserved() {
        let end = client()
        let delivery = SessionDelivery.expiring(after: .seconds(1))
        let offer = end.machine.push("m", end.content(1), delivery, now: now, into: &end.actions)
        #expect(offer == .accepted(number: 1) && end.settle(now: now) == "[o3 push 1]")
        #expect(acknowledge(end, 3) == "" && end.machine.nextDeadline == nil)
    }

    @Test func aSentMessageExpiresWhenItWouldBeSentAgain() {
        let end = client()
        for number in 1...4 as ClosedRange<UInt8> {
            _ = end.push(number, .expiring(after: .milliseconds(number == 3 ? 50 : 10)), now: now)
        }
        _ = end.settle(now: now)
        #expect(timer(end, 30) == "")
        // The first frame arrived.
        let progress = OpeningProgress(processed: 2, received: 3, urgent: 0)
        #expect(comeBack(end, progress, now: .ms(30)) == "#2 expired, #4 expired, opened 1 again")
        #expect(end.settle(now: .ms(30)) == "[o4 blank, o5 push 3, o6 blank]")
        #expect(acknowledge(end, 6) == "#1 processed, #3 processed")
    }

    @Test func aMessageThatHasExpiredGivesItsCreditBack() {
        let end = client(bytes: 1 << 20)
        _ = end.push(1, size: 70_000, .expiring(after: .milliseconds(5)), now: now)
        #expect(end.push(2, now: now) == "waits #2" && timer(end, 5) == "#1 expired, accepted #2")
        #expect(end.settle(now: .ms(5)) == "[o3 blank, o4 push 2]")
    }

    // MARK: Keys

    @Test func ofAKeyOnlyTheNewestIsSent() {
        let end = client()
        #expect(end.push(1, .replaceable(key: "a"), now: now) == "accepted #1")
        #expect(end.push(2, .replaceable(key: "b"), now: now) == "accepted #2")
        #expect(end.push(3, .replaceable(key: "a"), now: now) == "accepted #3; #1 replaced")
        #expect(end.settle(now: now) == "[o3 push 3, o4 push 2]")
        #expect(end.push(4, .replaceable(key: "a"), now: now) == "accepted #4", "the other was sent")
        #expect(end.settle(now: now) == "[o5 push 4]")
        _ = end.push(5, .replaceable(key: "b"), now: now)
        let progress = OpeningProgress(processed: 2, received: 2, urgent: 0)
        #expect(comeBack(end, progress, now: now) == "#3 replaced, #2 replaced, opened 1 again")
        #expect(end.settle(now: now) == "[o3 blank, o4 blank, o5 push 4, o6 push 5]")
    }

    @Test func aKeyIsFreeWhenItsMessageHasEnded() {
        let end = client()
        _ = end.push(1, .replaceable(key: "a", timeToLive: .milliseconds(5)), now: now)
        #expect(timer(end, 5) == "#1 expired")
        #expect(end.push(2, .replaceable(key: "a"), now: now) == "accepted #2")
        #expect(end.settle(now: now) == "[o3 blank, o4 push 2]")
    }

    @Test func aKeyWhoseMessageHasEndedHelpsNoOther() {
        let end = client(bytes: 1 << 20)
        _ = end.push(1, .replaceable(key: "a", timeToLive: .milliseconds(5)), now: now)
        #expect(timer(end, 5) == "#1 expired")
        _ = end.push(2, size: 70_000, now: now)
        #expect(end.push(3, .replaceable(key: "a"), now: now) == "waits #3", "there is no credit")
        #expect(end.machine.withdraw(3, now: now, into: &end.actions) && end.machine.newestByKey.isEmpty)
    }

    @Test func aValueThatReplacesAnotherHasItsOwnTime() {
        let end = client()
        _ = end.push(1, .replaceable(key: "a", timeToLive: .milliseconds(5)), now: now)
        _ = end.push(2, .replaceable(key: "a", timeToLive: .milliseconds(9)), now: now)
        #expect(timer(end, 8) == "" && end.machine.nextDeadline == .ms(9) && timer(end, 9) == "#2 expired")
    }

    @Test func keysAreThoseOfAMethodOrARequest() {
        let end = client()
        for serial in 1...2 { end.receive(HostileFrame.request(UInt64(serial)), now: now) }
        end.request(1, hasParts: true, now: now)
        _ = end.takeLine()
        func send() -> [String] {
            let offers = [
                end.push(1, .replaceable(key: "k"), now: now),
                end.push(2, .replaceable(key: "k"), method: "n", now: now),
                end.sendAnswerPart(3, to: 1, .replaceable(key: "k"), now: now),
                end.sendAnswerPart(4, to: 2, .replaceable(key: "k"), now: now),
            ]
            let offer = end.machine.sendPart(
                of: end.calls[0],
                end.content(5),
                .replaceable(key: "k"),
                now: now,
                into: &end.actions
            )
            return offers + [end.line(offer) + "; " + end.takeLine()]
        }
        #expect(send() == ["accepted #1", "accepted #2", "accepted #3", "accepted #4", "accepted #5; "])
        #expect(
            send() == [
                "accepted #6; #1 replaced", "accepted #7; #2 replaced", "accepted #8; #3 replaced",
                "accepted #9; #4 replaced", "accepted #10; #5 replaced",
            ]
        )
    }

    @Test func aKeyThatChangesFasterThanTheLaneMovesIsSent() {
        let end = client(window: SessionWindow(frameCount: 2, byteCount: 4_096))
        _ = end.push(0, now: now)
        _ = end.push(0, now: now)
        #expect(end.settle(now: now) == "[o3 push 0, o4 push 0]")
        for number in 1...5 as ClosedRange<UInt8> { _ = end.push(number, now: now) }
        _ = end.push(100, .replaceable(key: "a"), now: now)
        var sent: [String] = []
        for place in 3...22 as ClosedRange<UInt64> {
            // When it is accepted, there are always five others before it.
            _ = end.push(UInt8(place) + 98, .replaceable(key: "a"), now: now)
            _ = end.push(UInt8(place) + 3, now: now)
            _ = acknowledge(end, place)
            sent.append(end.settle(now: now))
        }
        #expect(
            sent.prefix(6) == [
                "[o5 push 1]", "[o6 push 2]", "[o7 push 3]", "[o8 push 4]", "[o9 push 5]", "[o10 push 106]",
            ]
        )
        #expect(sent.count { $0.contains("push 1") && $0.count > 11 } >= 2)
    }

    /// A larger value needs additional room, so it goes behind waiting messages, and its place becomes a blank.
    @Test func aValueThatReplacesAnotherHasItsRoomAndNoMore() {
        let end = client(bytes: 2 * SessionMachine.detailsOverhead + 300)
        _ = end.push(1, size: 30, .replaceable(key: "a"), now: now)
        _ = end.push(2, size: 40, now: now)
        #expect(end.push(3, size: 60, now: now) == "waits #3")
        // A value of the same size goes before the waiting message.
        #expect(end.push(4, size: 30, .replaceable(key: "a"), now: now) == "accepted #4; #1 replaced")
        // A value that replaces an accepted one is accepted, although it has to wait. The room goes to the waiting
        // message.
        #expect(
            end.push(5, size: 200, .replaceable(key: "a"), now: now) == "accepted #5; #4 replaced, accepted #3"
        )
        #expect(end.push(6, size: 1, .replaceable(key: "a"), now: now) == "accepted #6; #5 replaced")
        #expect(!end.machine.withdraw(6, now: now, into: &end.actions))
        #expect(end.settle(now: now) == "[o3 blank, o4 push 2, o5 push 3]")
        #expect(acknowledge(end, 4) == "#2 processed")
        #expect(end.settle(now: now) == "[o6 push 6]")
    }

    /// A value that is not larger needs only the credit of the older one, even if others have used more than there is.
    @Test func aValueReplacesAnotherWhereNoCreditIsLeft() {
        let end = client(bytes: 1 << 20)
        _ = end.push(1, size: 30, .replaceable(key: "a"), now: now)
        _ = end.push(2, size: 70_000, now: now)
        #expect(end.push(3, size: 30, .replaceable(key: "a"), now: now) == "accepted #3; #1 replaced")
        #expect(end.settle(now: now) == "[o3 push 3, o4 push 2]")
    }

    @Test func aLargerValueWaitsForCreditBehindOthers() {
        let end = client(bytes: 1 << 20)
        _ = end.push(1, size: 30, .replaceable(key: "a"), now: now)
        _ = end.push(2, size: 70_000, now: now)
        #expect(end.push(3, size: 50, .replaceable(key: "a"), now: now) == "accepted #3; #1 replaced")
        #expect(end.settle(now: now) == "[o3 blank, o4 push 2]")
        end.receive(HostileFrame.credit(1, 1, 1 << 20), now: now)
        #expect(end.takeLine() == "" && end.settle(now: now) == "[o5 push 3]")
    }

    @Test func aValueBehindOneThatWasSentIsNotAcceptedBeforeItsTurn() {
        let end = client(bytes: 1 << 20)
        _ = end.push(1, .replaceable(key: "a"), now: now)
        _ = end.settle(now: now)
        _ = end.push(2, size: 70_000, now: now)
        #expect(end.push(3, .replaceable(key: "a"), now: now) == "waits #3", "there is no credit")
        #expect(end.machine.withdraw(3, now: now, into: &end.actions))
    }

    @Test func ofAKeyThatWaitsOnlyTheNewestIsSent() {
        let end = client(bytes: 1 << 20)
        _ = end.push(1, size: 70_000, now: now)
        #expect(end.push(2, .replaceable(key: "a"), now: now) == "waits #2", "there is no credit")
        #expect(end.push(3, .replaceable(key: "a"), now: now) == "waits #3; #2 replaced")
        #expect(end.push(4, .replaceable(key: "a"), now: now) == "waits #4; #3 replaced")
        end.receive(HostileFrame.credit(1, 1, 1 << 20), now: now)
        #expect(end.takeLine() == "accepted #4" && end.settle(now: now) == "[o3 push 1, o4 push 4]")
    }

    /// Otherwise its call would end without it.
    @Test func aPartThatReplacesAnotherAndHasToWaitIsNotAccepted() throws {
        let end = MachineMatrixEnd(.server)
        end.open(MachineMatrixEnd.largeTerms)
        end.receive(HostileFrame.request(7), now: now)
        _ = end.takeLine()
        let request = try #require(end.running[7])
        func send(_ number: UInt8, size: Int, _ delivery: SessionDelivery) -> String {
            let content = end.content(number, size: size)
            let offer = end.machine.sendPart(
                ofResponseTo: request,
                content,
                delivery,
                now: now,
                into: &end.actions
            )
            return end.line(offer)
        }
        #expect(send(1, size: 1, .replaceable(key: "a")) == "accepted #1")
        #expect(send(2, size: 70_000, .reliable) == "accepted")
        #expect(send(3, size: 50, .replaceable(key: "a")) == "waits #2" && end.takeLine() == "#1 replaced")
    }

    @Test func valuesThatAreReplacedCostNoCredit() {
        let end = client(bytes: 1 << 20)
        for _ in 0..<100 { _ = end.push(1, size: 1_000, .replaceable(key: "a"), now: now) }
        #expect(end.push(2, now: now) == "accepted #101")
        #expect(end.settle(now: now) == "[o3 push 1, o4 push 2]")
    }

    // MARK: Messages that the peer refuses

    @Test func aMethodHasANameOfUpTo256Bytes() {
        let end = client()
        for (length, line) in [(0, "badMethod"), (1, "accepted #1"), (256, "accepted #2"), (257, "badMethod")] {
            #expect(end.push(1, method: String(repeating: "n", count: length), now: now) == line)
        }
    }

    /// Names that look alike but have different bytes belong to different methods.
    @Test func methodsAreToldApartByTheBytesOfTheirNames() {
        let end = client()
        for (number, name) in [(1, "\u{E9}"), (2, "e\u{301}"), (3, "\u{E9}")] as [(UInt8, String)] {
            _ = end.push(number, method: name, now: now)
        }
        let frames = end.settle(now: now)
        #expect(frames == "[o3 method 2 \u{E9}, o4 push 1, o5 method 3 e\u{301}, o6 push 2, o7 push 3]")
    }

    @Test func aMessageThatWaitedForASessionThatDoesNotTakeItIsRefused() throws {
        let end = MachineMatrixEnd(.client)
        #expect(end.push(1, size: 4_900, now: now) == "accepted #1")
        _ = end.machine.push("m", end.content(2, size: 4_900), now: now, into: &end.actions)
        let large = end.content(3, size: 4_900)
        let call = try end.machine.request("m", large, deadline: nil, now: now)
        end.calls.append(call)
        #expect(end.push(4, now: now) == "accepted #2" && end.request(5, now: now) == "r2")
        end.connect(now: now)
        end.forget(now: now)
        end.welcome(.test(1), isResumed: false, now: now)
        #expect(
            end.takeLine() == "#1 refused, left over 1 refused, left over 2 refused, fail r1 messageRefused, opened 1"
        )
        #expect(end.settle(now: now) == "[o1 method 1 m, o2 push 4, o3 request 2 5]")
        #expect(throws: RequestError.self) { try end.machine.request("m", large, deadline: nil, now: now) }
    }

    /// The server's program knows the session before the client has the welcome.
    @Test func aServersMessageThatItsClientDoesNotTakeIsRefused() {
        let end = MachineMatrixEnd(.server)
        for (number, size) in [(1, 4_873), (2, 4_872)] { _ = end.push(UInt8(number), size: size, now: now) }
        _ = end.machine.opened(
            by: .test(terms: MachineMatrixEnd.terms),
            .test(1),
            isResumed: false,
            over: 1,
            now: now,
            into: &end.actions
        )
        #expect(end.takeLine() == "#1 refused, left over 1 refused, opened 1")
        #expect(end.settle(now: now) == "[welcome, o1 method 1 m, o2 push 2]")
    }

    @Test func termsGrowWithinASessionAndDoNotShrink() {
        let end = client(window: SessionWindow(frameCount: 3, byteCount: 8_192))
        var terms = MachineMatrixEnd.terms
        (terms.window, terms.credit) = (SessionWindow(frameCount: 2, byteCount: 9_000), 1 << 20)
        terms.maximumRequestCount = 1
        end.connect(now: now)
        end.forget(now: now)
        end.welcome(.test(1), isResumed: true, progress: end.progress, terms: terms, now: now)
        let expected = SessionTerms(
            window: SessionWindow(frameCount: 3, byteCount: 9_000),
            credit: 64 << 10,
            maximumRequestCount: 1,
            maximumFrameLength: 1 << 20
        )
        #expect(end.machine.peerTerms == expected)
        #expect(end.request(1, now: now) == "r1" && end.request(2, now: now) == "tooManyInFlight")
    }

    // MARK: Memory

    @Test func memoryOfABurstIsGivenBackASecondLater() {
        let end = client(frames: 100, bytes: 1 << 20)
        for number in 1...20 as ClosedRange<UInt8> { _ = end.push(number, size: 1_000, now: now) }
        _ = end.settle(now: now)
        let most = end.machine.ordinary.bytesHeld
        #expect(most > 20_000 && end.machine.nextDeadline == nil)
        _ = acknowledge(end, 22)
        #expect(end.machine.keptSize == SessionSize())
        #expect(end.machine.ordinary.bytesHeld == most && end.machine.nextDeadline == .ms(1_000))
        _ = timer(end, 999)
        #expect(end.machine.ordinary.bytesHeld == most && end.machine.nextDeadline == .ms(1_000))
        _ = timer(end, 1_000)
        #expect(end.machine.ordinary.bytesHeld < 4_096 && end.machine.nextDeadline == nil)
    }
}
