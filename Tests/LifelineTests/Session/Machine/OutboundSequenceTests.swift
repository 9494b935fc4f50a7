import Lifeline
import LifelineTestSupport
import Testing

@Suite struct OutboundSequenceTests {
    let wide = SessionWindow(frameCount: 100, byteCount: 1000)

    func sequence(frames: Int = 100, bytes: Int = 10_000) -> TestSequence {
        TestSequence(limit: SessionWindow(frameCount: frames, byteCount: bytes))
    }

    func connected(_ window: SessionWindow? = nil, frames: Int = 100, bytes: Int = 10_000) throws
        -> TestSequence
    {
        var outbound = sequence(frames: frames, bytes: bytes)
        _ = try outbound.resume(.at(0), window: window ?? wide, now: .ms(0))
        return outbound
    }

    /// What would be sent, without the rest of the messages.
    func sent(_ outbound: inout TestSequence, beginsNothing: Bool = false) -> String {
        var lines: [String] = []
        while let (place, message, ended) = outbound.next(beginsNothing: beginsNothing) {
            lines.append(
                line(.message(place, SessionAcknowledgement(), message)) + (ended.map { " \($0.outcome)" } ?? "")
            )
        }
        return lines.joined(separator: ", ")
    }

    @discardableResult
    func accept(
        _ outbound: inout TestSequence,
        _ message: MachineMessage,
        _ delivery: SessionDelivery = .reliable,
        now: MonotonicTime = .ms(0)
    ) -> String {
        let (number, isAdmitted, replaced) = outbound.accept(message, delivery, isObserved: true, now: now)
        return "#\(number)\(isAdmitted ? "" : " waits")\(replaced.map { ", #\($0.number) \($0.outcome)" } ?? "")"
    }

    func text(_ ended: [TestSequence.Ended]) -> String {
        ended.map { "#\($0.number) \($0.outcome)" }.joined(separator: ", ")
    }

    @Test func messagesGoInOrderAndAreKeptUntilTheyAreProcessed() throws {
        var outbound = sequence()
        for number in 1...3 { accept(&outbound, .push(number)) }
        #expect(sent(&outbound) == "", "there is no connection")
        _ = try outbound.resume(.at(0), window: wide, now: .ms(0))
        #expect(sent(&outbound) == "o1 push 1, o2 push 2, o3 push 3")
        #expect(try text(outbound.acknowledge(.init(ordinary: 2))) == "#1 processed, #2 processed")
        // One that is behind says nothing.
        #expect(try text(outbound.acknowledge(.init(ordinary: 1))) == "")
        #expect(outbound.keptSize == SessionSize(frameCount: 1, byteCount: 10) && outbound.acknowledged.ordinary == 2)
        _ = outbound.disconnect()
        #expect(sent(&outbound) == "")
        #expect(try text(outbound.resume(.at(2), window: wide, now: .ms(0))) == "")
        #expect(sent(&outbound) == "o3 push 3")
        // It came, and is not processed.
        _ = outbound.disconnect()
        _ = try outbound.resume(.at(2, received: 3), window: wide, now: .ms(0))
        #expect(sent(&outbound) == "")
        #expect(try text(outbound.acknowledge(.init(ordinary: 3))) == "#3 processed")
        #expect(outbound.keptSize == SessionSize() && keptPlaceCount(in: outbound) == 0)
    }

    @Test func impossibleProgressIsRefusedAndChangesNothing() throws {
        var outbound = try connected()
        for number in 1...3 { accept(&outbound, .push(number)) }
        accept(&outbound, .cancel(serial: 1))
        _ = sent(&outbound)
        _ = try outbound.acknowledge(.init(ordinary: 2))
        let far = UInt64.max
        for (progress, violation) in [
            (SessionProgress.at(1), SessionViolation.acknowledgementWentBack(SessionPlace(.ordinary, 1))),
            (.at(4), .unknownAcknowledgement(SessionPlace(.ordinary, 4))),
            (.at(far), .unknownAcknowledgement(SessionPlace(.ordinary, far))),
            (.at(2, received: 4), .unknownAcknowledgement(SessionPlace(.ordinary, 4))),
            (.at(2, received: far), .unknownAcknowledgement(SessionPlace(.ordinary, far))),
            (.at(3, urgent: 2), .unknownAcknowledgement(SessionPlace(.urgent, 2))),
            (.at(3, urgent: far), .unknownAcknowledgement(SessionPlace(.urgent, far))),
        ] {
            #expect(throws: violation) { try outbound.resume(progress, window: wide, now: .ms(0)) }
        }
        #expect(throws: SessionViolation.unknownAcknowledgement(SessionPlace(.urgent, 2))) {
            try outbound.acknowledge(.init(ordinary: 3, urgent: 2))
        }
        #expect(throws: SessionViolation.unknownAcknowledgement(SessionPlace(.ordinary, 4))) {
            try outbound.acknowledge(.init(ordinary: 4, urgent: 1))
        }
        #expect(outbound.acknowledged == SessionAcknowledgement(ordinary: 2))
        #expect(try text(outbound.acknowledge(.init(ordinary: 3, urgent: 1))) == "#3 processed")
        #expect(throws: SessionViolation.acknowledgementWentBack(SessionPlace(.urgent, 0))) {
            try outbound.resume(.at(3), window: wide, now: .ms(0))
        }
    }

    /// What was sent under the larger one is sent again nevertheless.
    @Test func aSmallerWindowHoldsBackWhatIsNew() throws {
        var outbound = try connected(SessionWindow(frameCount: 4, byteCount: 1000))
        for number in 1...6 { accept(&outbound, .push(number)) }
        #expect(sent(&outbound) == "o1 push 1, o2 push 2, o3 push 3, o4 push 4")
        _ = outbound.disconnect()
        _ = try outbound.resume(.at(1), window: SessionWindow(frameCount: 2, byteCount: 1000), now: .ms(0))
        #expect(sent(&outbound) == "o2 push 2, o3 push 3, o4 push 4")
        _ = try outbound.acknowledge(SessionAcknowledgement(ordinary: 3))
        #expect(sent(&outbound) == "o5 push 5")
        _ = outbound.disconnect()
        _ = try outbound.resume(.at(3), window: wide, now: .ms(0))
        #expect(sent(&outbound) == "o4 push 4, o5 push 5, o6 push 6")
    }

    @Test func eachLaneHasItsWindow() throws {
        var outbound = try connected(SessionWindow(frameCount: 2, byteCount: 1000))
        for number in 1...3 { accept(&outbound, .push(number)) }
        for number in 4...6 { accept(&outbound, .response(number, serial: UInt32(number))) }
        #expect(sent(&outbound) == "o1 push 1, o2 push 2, u1 response 4 4, u2 response 5 5")
        _ = try outbound.acknowledge(.init(urgent: 1))
        #expect(sent(&outbound) == "u3 response 6 6")
        _ = try outbound.acknowledge(.init(ordinary: 1, urgent: 1))
        #expect(sent(&outbound) == "o3 push 3")
    }

    @Test func neitherLaneGoesFirstWithoutNeed() throws {
        var outbound = try connected()
        accept(&outbound, .push(1))
        accept(&outbound, .response(2, serial: 2))
        accept(&outbound, .push(3))
        accept(&outbound, .cancel(serial: 4))
        accept(&outbound, .response(serial: 5, endsPushes: true, TestContent(number: 5)))
        #expect(sent(&outbound) == "o1 push 1, u1 response 2 2, o2 push 3, u2 cancel 4, o3 response 5 5")
    }

    @Test func theWindowCountsBytesAndLetsOnePass() throws {
        var outbound = try connected(SessionWindow(frameCount: 10, byteCount: 25))
        accept(&outbound, .push(serial: 0, TestContent(number: 1, byteCount: 100)))
        for number in 2...4 { accept(&outbound, .push(number)) }
        #expect(sent(&outbound) == "o1 push 1")
        _ = try outbound.acknowledge(.init(ordinary: 1))
        #expect(sent(&outbound) == "o2 push 2, o3 push 3")
        _ = try outbound.resume(.at(1), window: SessionWindow(frameCount: 0, byteCount: 1000), now: .ms(0))
        #expect(sent(&outbound) == "o2 push 2, o3 push 3", "a window of nothing takes only what was sent before")
    }

    @Test func whatIsSentAgainGoesFirstCancellationsAfterTheirRequests() throws {
        var outbound = try connected()
        accept(&outbound, .request(1, serial: 1))
        accept(&outbound, .push(2))
        _ = sent(&outbound)
        accept(&outbound, .cancel(serial: 1))
        _ = sent(&outbound)
        accept(&outbound, .cancel(serial: 9))
        accept(&outbound, .push(4))
        _ = outbound.disconnect()
        _ = try outbound.resume(.at(0), window: wide, now: .ms(0))
        #expect(sent(&outbound) == "o1 request 1 1, o2 push 2, u1 cancel 1, u2 cancel 9, o3 push 4")
    }

    @Test func nothingIsBegunWithAPeerThatLeaves() throws {
        var outbound = try connected()
        accept(&outbound, .part(1, of: 5))
        accept(&outbound, .response(serial: 5, endsPushes: true, TestContent(number: 2)))
        accept(&outbound, .push(3))
        accept(&outbound, .cancel(serial: 7))
        accept(&outbound, .part(4, of: 6))
        #expect(sent(&outbound, beginsNothing: true) == "o1 push 1 of 5, o2 response 5 2, u1 cancel 7")
        #expect(sent(&outbound) == "o3 push 3, o4 push 4 of 6")
    }

    @Test func whatIsProcessedMeanwhileIsNotSentAgain() throws {
        var outbound = try connected()
        for number in 1...4 { accept(&outbound, .push(number)) }
        _ = sent(&outbound)
        _ = try outbound.resume(.at(0), window: wide, now: .ms(0))
        #expect(outbound.next()?.place == SessionPlace(.ordinary, 1))
        #expect(try text(outbound.acknowledge(.init(ordinary: 3))) == "#1 processed, #2 processed, #3 processed")
        #expect(sent(&outbound) == "o4 push 4")
    }

    // MARK: Room

    @Test func whoPushesWaitsForRoomInOrder() throws {
        // Three ordinary ones and one urgent.
        var outbound = sequence(frames: 4, bytes: 80)
        #expect((1...3).map { accept(&outbound, .push($0)) } == ["#1", "#2", "#3"])
        #expect((4...6).map { accept(&outbound, .push($0)) } == ["#4 waits", "#5 waits", "#6 waits"])
        #expect(accept(&outbound, .response(7, serial: 1)) == "#7", "it has room of its own")
        #expect(accept(&outbound, .response(8, serial: 2)) == "#8 waits")
        #expect(accept(&outbound, .request(9, serial: 1)) == "#9 waits", "it lines up")
        #expect(accept(&outbound, .cancel(serial: 9)) == "#10")
        #expect(outbound.unadmittedCount == 5 && outbound.unadmittedResponseSize.frameCount == 1)
        #expect(outbound.takeAdmitted() == [])
        #expect(outbound.withdraw(1) && outbound.takeAdmitted() == [4])
        #expect(outbound.withdraw(5) && outbound.takeAdmitted() == [], "nothing more is told of it")
        #expect(outbound.withdraw(2) && outbound.takeAdmitted() == [6])
        // Of requests and responses nobody hears.
        #expect(outbound.withdraw(3) && outbound.takeAdmitted() == [])
        #expect(outbound.withdraw(7) && outbound.withdraw(10) && outbound.takeAdmitted() == [])
        #expect(outbound.unadmittedCount == 0 && outbound.unadmittedResponseSize.frameCount == 0)
        #expect(!outbound.withdraw(7) && !outbound.withdraw(99))
        #expect(outbound.admittedSize(.ordinary).frameCount == 3 && outbound.admittedSize(.urgent).frameCount == 1)
    }

    @Test func roomIsCountedInBytesAndOneMayBeLarger() throws {
        // 60 ordinary bytes, 20 urgent ones.
        var outbound = sequence(frames: 100, bytes: 80)
        #expect(accept(&outbound, .push(serial: 0, TestContent(number: 1, byteCount: 61))) == "#1")
        #expect(accept(&outbound, .push(serial: 0, TestContent(number: 2, byteCount: 0))) == "#2 waits")
        #expect(outbound.withdraw(1) && outbound.takeAdmitted() == [2])
        #expect(accept(&outbound, .push(serial: 0, TestContent(number: 3, byteCount: 60))) == "#3")
        #expect(accept(&outbound, .push(serial: 0, TestContent(number: 4, byteCount: 1))) == "#4 waits")
        // Though it would fit, it is not its turn.
        #expect(!outbound.hasRoom(for: .push(serial: 0, TestContent(number: 5, byteCount: 0))))
        #expect(
            accept(&outbound, .response(serial: 1, endsPushes: false, TestContent(number: 6, byteCount: 20))) == "#5"
        )
        #expect(
            accept(&outbound, .response(serial: 2, endsPushes: false, TestContent(number: 7, byteCount: 1)))
                == "#6 waits"
        )
    }

    @Test func whatIsSentOrEndsWithoutRoomIsToldOnce() throws {
        // Two ordinary ones.
        var outbound = sequence(frames: 3, bytes: 1000)
        for number in 1...2 { accept(&outbound, .push(number)) }
        accept(&outbound, .push(3), .expiring(after: .milliseconds(5)))
        accept(&outbound, .push(4), .replaceable(key: "a"))
        #expect(accept(&outbound, .push(5), .replaceable(key: "a")) == "#5 waits, #4 replaced")
        accept(&outbound, .push(6))
        for serial in UInt32(7)...8 { accept(&outbound, .request(7, serial: serial)) }
        #expect(text(outbound.timerFired(now: .ms(5))) == "#3 expired" && outbound.unadmittedCount == 4)
        _ = try outbound.resume(.at(0), window: wide, now: .ms(5))
        #expect(sent(&outbound) == "o1 push 1, o2 push 2")
        _ = try outbound.acknowledge(.init(ordinary: 1))
        // Before anybody has asked who has room.
        #expect(sent(&outbound) == "o3 push 5")
        #expect(outbound.takeAdmitted() == [5] && outbound.takeAdmitted() == [])
        _ = try outbound.acknowledge(.init(ordinary: 3))
        #expect(sent(&outbound) == "o4 push 6, o5 request 7 7" && outbound.takeAdmitted() == [6])
        #expect(outbound.unadmittedCount == 1 && outbound.admittedSize(.ordinary).frameCount == 2)
    }

    @Test func aPeerThatTakesEverythingGetsNoMoreThanIsKept() throws {
        let everything = SessionWindow(frameCount: .max, byteCount: .max)
        // Three ordinary ones and one urgent, or 75 bytes and 25.
        for (limit, size) in [((4, 1000), 1), ((100, 100), 25)] {
            var outbound = sequence(frames: limit.0, bytes: limit.1)
            _ = try outbound.resume(.at(0), window: everything, now: .ms(0))
            for number in 1...5 {
                accept(&outbound, .push(serial: 0, TestContent(number: number, byteCount: size)))
                let response = TestContent(number: number, byteCount: size)
                accept(&outbound, .response(serial: UInt32(number), endsPushes: false, response))
            }
            #expect(sent(&outbound) == "o1 push 1, u1 response 1 1, o2 push 2, o3 push 3")
        }
    }

    @Test func everyRoomHasAtLeastOnePlace() {
        var outbound = sequence(frames: 0, bytes: 0)
        #expect(accept(&outbound, .push(1)) == "#1" && accept(&outbound, .push(2)) == "#2 waits")
        #expect(accept(&outbound, .response(3, serial: 1)) == "#3")
        #expect(accept(&outbound, .response(3, serial: 1)) == "#4 waits")
    }

    // MARK: Deliveries

    @Test func whatIsSentAtMostOnceHasNoPlace() throws {
        var outbound = try connected()
        accept(&outbound, .push(1), .atMostOnce)
        accept(&outbound, .push(2))
        accept(&outbound, .push(3), .atMostOnce)
        #expect(sent(&outbound) == "push 1 sent, o1 push 2, push 3 sent")
        #expect(outbound.keptSize.frameCount == 1 && outbound.admittedSize(.ordinary).frameCount == 1)
        accept(&outbound, .push(4), .atMostOnce)
        accept(&outbound, .push(5))
        #expect(text(outbound.disconnect()) == "#4 dropped")
        _ = try outbound.resume(.at(0), window: wide, now: .ms(0))
        #expect(sent(&outbound) == "o1 push 2, o2 push 5")
    }

    @Test func whatHasExpiredIsNotSent() throws {
        var outbound = sequence()
        accept(&outbound, .push(1), .expiring(after: .milliseconds(10)))
        accept(&outbound, .push(2), .expiring(after: .milliseconds(5)))
        accept(&outbound, .push(3))
        accept(&outbound, .push(4), .expiring(after: .milliseconds(-1)))
        #expect(outbound.nextDeadline == .ms(0))
        #expect(text(outbound.timerFired(now: .ms(0))) == "#4 expired" && outbound.nextDeadline == .ms(5))
        #expect(text(outbound.timerFired(now: .ms(4))) == "")
        #expect(text(outbound.timerFired(now: .ms(20))) == "#2 expired, #1 expired" && outbound.nextDeadline == nil)
        _ = try outbound.resume(.at(0), window: wide, now: .ms(20))
        #expect(sent(&outbound) == "o1 push 3")
    }

    @Test func whatWasSentExpiresWhenItWouldBeSentAgain() throws {
        var outbound = try connected()
        for number in 1...4 { accept(&outbound, .push(number), .expiring(after: .milliseconds(number == 3 ? 50 : 10))) }
        _ = sent(&outbound)
        #expect(outbound.nextDeadline == nil && outbound.timerFired(now: .ms(30)) == [])
        _ = outbound.disconnect()
        // The first came.
        #expect(try text(outbound.resume(.at(0, received: 1), window: wide, now: .ms(10))) == "#2 expired, #4 expired")
        #expect(sent(&outbound) == "o2 blank, o3 push 3, o4 blank")
        #expect(try text(outbound.acknowledge(.init(ordinary: 4))) == "#1 processed, #3 processed")
    }

    @Test func ofAKeyOnlyTheNewestIsSent() throws {
        var outbound = try connected()
        #expect(accept(&outbound, .push(1), .replaceable(key: "a")) == "#1")
        #expect(accept(&outbound, .push(2), .replaceable(key: "b")) == "#2")
        #expect(accept(&outbound, .push(3), .replaceable(key: "a")) == "#3, #1 replaced")
        #expect(sent(&outbound) == "o1 push 3, o2 push 2")
        #expect(accept(&outbound, .push(4), .replaceable(key: "a")) == "#4", "the other was sent")
        #expect(sent(&outbound) == "o3 push 4")
        accept(&outbound, .push(5), .replaceable(key: "b"))
        _ = outbound.disconnect()
        #expect(try text(outbound.resume(.at(0), window: wide, now: .ms(0))) == "#3 replaced, #2 replaced")
        #expect(sent(&outbound) == "o1 blank, o2 blank, o3 push 4, o4 push 5")
        // Told once.
        #expect(text(outbound.forget()) == "#4 inDoubt, #5 inDoubt")
    }

    @Test func aKeyIsFreeWhenItsMessageHasEnded() throws {
        var outbound = sequence()
        accept(&outbound, .push(1), .replaceable(key: "a", timeToLive: .milliseconds(5)))
        _ = outbound.timerFired(now: .ms(5))
        #expect(accept(&outbound, .push(2), .replaceable(key: "a")) == "#2" && outbound.withdraw(2))
        #expect(accept(&outbound, .push(3), .replaceable(key: "a")) == "#3")
    }

    // MARK: The end of sessions, and stores

    @Test func aLostSessionLeavesInDoubtWhatWasSent() throws {
        var outbound = try connected(SessionWindow(frameCount: 2, byteCount: 100))
        accept(&outbound, .push(1))
        accept(&outbound, .request(2, serial: 1))
        accept(&outbound, .push(3))
        accept(&outbound, .part(4, of: 5))
        accept(&outbound, .request(5, serial: 2))
        accept(&outbound, .response(serial: 5, endsPushes: true, TestContent(number: 6)))
        accept(&outbound, .response(7, serial: 6))
        accept(&outbound, .response(8, serial: 7))
        accept(&outbound, .response(9, serial: 8))
        _ = sent(&outbound)
        #expect(text(outbound.forget()) == "#1 inDoubt, #4 unsent")
        #expect(sent(&outbound) == "" && outbound.isWaiting(3) && !outbound.isWaiting(9))
        _ = try outbound.resume(.at(0), window: wide, now: .ms(0))
        #expect(sent(&outbound) == "o1 push 3, o2 request 2 5", "places begin anew")
        accept(&outbound, .push(10))
        #expect(text(outbound.end()) == "#3 inDoubt, #10 unsent")
        #expect(outbound.keptSize == SessionSize() && outbound.admittedSize(.ordinary) == SessionSize())
        #expect(outbound.admittedSize(.urgent) == SessionSize() && keptPlaceCount(in: outbound) == 0)
    }

    @Test func memoryFollowsWhatIsKeptThoughTheFirstStays() throws {
        var outbound = try connected(SessionWindow(frameCount: 1, byteCount: 100))
        for number in 1...3 { accept(&outbound, .push(number), .expiring(after: .seconds(1))) }
        _ = sent(&outbound)
        for number in 4...20_000 {
            accept(&outbound, .push(number), .replaceable(key: "a", timeToLive: .seconds(5)))
            accept(&outbound, .response(number, serial: UInt32(number)))
            _ = sent(&outbound)
            _ = try outbound.acknowledge(.init(urgent: UInt64(number) - 3))
        }
        #expect(outbound.keptSize.frameCount == 4 && keptPlaceCount(in: outbound) <= 45)
    }
}

extension SessionProgress {
    static func at(_ processed: UInt64, urgent: UInt64 = 0, received: UInt64 = 0) -> SessionProgress {
        SessionProgress(processed: SessionAcknowledgement(ordinary: processed, urgent: urgent), received: received)
    }
}
