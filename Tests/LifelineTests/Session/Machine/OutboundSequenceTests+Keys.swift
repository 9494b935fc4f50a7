import Lifeline
import Testing

// Messages that replace others.
extension OutboundSequenceTests {
    @Test func aKeyThatChangesFasterThanTheQueueMovesIsSent() throws {
        var outbound = try connected(SessionWindow(frameCount: 1, byteCount: 100))
        accept(&outbound, .push(0))
        #expect(sent(&outbound) == "o1 push 0")
        for number in 1...5 { accept(&outbound, .push(number)) }
        accept(&outbound, .push(100), .replaceable(key: "a"))
        var all: [String] = []
        for place in UInt64(1)...20 {
            // There are always five others before it when it is accepted.
            accept(&outbound, .push(Int(place) + 100), .replaceable(key: "a"))
            accept(&outbound, .push(Int(place) + 5))
            _ = try outbound.acknowledge(.init(ordinary: place))
            all.append(sent(&outbound))
        }
        #expect(all.prefix(6) == ["o2 push 1", "o3 push 2", "o4 push 3", "o5 push 4", "o6 push 5", "o7 push 106"])
        #expect(all.filter { (try? /push 1\d\d/.firstMatch(in: $0)) ?? nil != nil }.count >= 2)
    }

    @Test func keysAreThoseOfAMethodOrARequest() throws {
        var outbound = try connected()
        let messages: [MachineMessage] = [
            .push(serial: 0, TestContent(number: 1, method: "a")),
            .push(serial: 0, TestContent(number: 2, method: "b")),
            .part(3, of: 1), .part(4, of: 2),
        ]
        for (index, message) in messages.enumerated() {
            #expect(accept(&outbound, message, .replaceable(key: "k")) == "#\(index + 1)")
        }
        for (index, message) in messages.enumerated() {
            #expect(accept(&outbound, message, .replaceable(key: "k")) == "#\(index + 5), #\(index + 1) replaced")
        }
        #expect(sent(&outbound) == "o1 push 1, o2 push 2, o3 push 3 of 1, o4 push 4 of 2")
        // What was sent, and is not known to have come, too.
        _ = outbound.disconnect()
        accept(&outbound, messages[2], .replaceable(key: "k"))
        #expect(try text(outbound.resume(.at(0), window: wide, now: .ms(0))) == "#7 replaced")
    }

    @Test func whatStandsInThePlaceOfAnotherCannotBeWithdrawn() throws {
        var outbound = sequence()
        accept(&outbound, .push(1), .replaceable(key: "a"))
        accept(&outbound, .push(2))
        for number in 3...4 { accept(&outbound, .push(number), .replaceable(key: "a")) }
        #expect(!outbound.isWaiting(1) && !outbound.isWaiting(3) && outbound.isWaiting(4))
        #expect(!outbound.withdraw(1) && !outbound.withdraw(3) && !outbound.withdraw(4))
        #expect(outbound.withdraw(2) == true)
        accept(&outbound, .push(5), .replaceable(key: "b"))
        #expect(outbound.withdraw(5) && !outbound.withdraw(5))
        _ = try outbound.resume(.at(0), window: wide, now: .ms(0))
        #expect(sent(&outbound) == "o1 push 4")
    }

    /// Whoever brings it and stops to wait for room would take the older one with it, which was accepted.
    @Test func whatNeedsRoomInThePlaceOfAnotherIsSentThoughNobodyWaits() throws {
        // 75 bytes are for ordinary ones.
        var outbound = sequence(frames: 100, bytes: 100)
        accept(&outbound, .push(1), .replaceable(key: "a"))
        accept(&outbound, .push(serial: 0, TestContent(number: 2, byteCount: 65)))
        let newer = MachineMessage.push(serial: 0, TestContent(number: 3, byteCount: 20))
        let (number, isAdmitted, replaced) = outbound.accept(
            newer,
            .replaceable(key: "a"),
            isObserved: true,
            now: .ms(0)
        )
        #expect(!isAdmitted && replaced?.outcome == .replaced && !outbound.withdraw(number))
        _ = try outbound.resume(.at(0), window: wide, now: .ms(0))
        #expect(sent(&outbound).hasPrefix("o1 push 3"))
    }

    @Test func whatTookTheContentFromASentOneCannotBeWithdrawn() throws {
        var outbound = sequence()
        accept(&outbound, .push(1), .replaceable(key: "a"))
        _ = try outbound.resume(.at(0), window: wide, now: .ms(0))
        #expect(sent(&outbound) == "o1 push 1")
        _ = outbound.disconnect()
        accept(&outbound, .push(2), .replaceable(key: "a", timeToLive: .milliseconds(5)))
        let narrow = SessionWindow(frameCount: 1, byteCount: 1000)
        let ended = try outbound.resume(.at(0), window: narrow, now: .ms(1))
        #expect(text(ended) == "#1 replaced")
        #expect(sent(&outbound) == "o1 blank" && !outbound.withdraw(2))
        // Its own time is its own: what has expired would not have been sent before either.
        #expect(text(outbound.timerFired(now: .ms(5))) == "#2 expired")
    }

    @Test func itsDeadlineIsItsOwn() throws {
        var outbound = sequence()
        accept(&outbound, .push(1), .replaceable(key: "a", timeToLive: .milliseconds(5)))
        accept(&outbound, .push(2), .replaceable(key: "a", timeToLive: .milliseconds(9)))
        #expect(outbound.nextDeadline == .ms(9) && text(outbound.timerFired(now: .ms(8))) == "")
        #expect(text(outbound.timerFired(now: .ms(9))) == "#2 expired" && outbound.keptSize == SessionSize())
    }

    @Test func whatReplacesHasTheRoomOfTheOlderOneAndNoMore() throws {
        // 75 bytes are for ordinary ones.
        var outbound = sequence(frames: 100, bytes: 100)
        accept(&outbound, .push(serial: 0, content(1, 30)), .replaceable(key: "a"))
        accept(&outbound, .push(serial: 0, content(2, 40)))
        #expect(accept(&outbound, .push(serial: 0, content(3, 10))) == "#3 waits")
        // Of the same size it goes before the one that waits; a larger one waits behind it.
        #expect(accept(&outbound, .push(serial: 0, content(4, 35)), .replaceable(key: "a")) == "#4, #1 replaced")
        #expect(accept(&outbound, .push(serial: 0, content(5, 60)), .replaceable(key: "a")) == "#5 waits, #4 replaced")
        #expect(outbound.admittedSize(.ordinary).byteCount == 40)
        #expect(outbound.takeAdmitted() == [3] && outbound.admittedSize(.ordinary).byteCount == 50)
        #expect(accept(&outbound, .push(serial: 0, content(6, 5)), .replaceable(key: "a")) == "#6, #5 replaced")
        #expect(outbound.unadmittedCount == 0 && outbound.keptSize == SessionSize(frameCount: 3, byteCount: 55))
        _ = try outbound.resume(.at(0), window: wide, now: .ms(0))
        #expect(sent(&outbound) == "o1 push 6, o2 push 2, o3 push 3")
    }

    @Test func whatReplacesOneThatWaitsForRoomWaitsToo() {
        var outbound = sequence(frames: 100, bytes: 100)
        accept(&outbound, .push(serial: 0, content(1, 70)))
        #expect(accept(&outbound, .push(serial: 0, content(2, 20))) == "#2 waits")
        accept(&outbound, .push(serial: 0, content(3, 30)), .replaceable(key: "a"))
        // It has room, but is not the first that waits for it.
        #expect(accept(&outbound, .push(serial: 0, content(4, 5)), .replaceable(key: "a")) == "#4 waits, #3 replaced")
        #expect(outbound.takeAdmitted() == [] && outbound.withdraw(2) && outbound.takeAdmitted() == [4])
    }
}
