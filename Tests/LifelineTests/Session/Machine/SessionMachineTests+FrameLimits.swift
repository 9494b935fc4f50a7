import Lifeline
import Testing

// Frames that the peer does not take.
extension SessionMachineTests {
    @Test func eachSideSaysWhatFramesItTakes() {
        var options = SessionOptions()
        options.maximumFrameLength = 500
        var pair = SessionPair(options)
        #expect(pair.client.peerFrameLimit == 500 && pair.server.peerFrameLimit == 500)
        pair.cut(now: .ms(1))
        pair.connect(isResumed: true, now: .ms(2))
        #expect(pair.client.peerFrameLimit == 500 && pair.server.peerFrameLimit == 500)
    }

    @Test func whatThePeerDoesNotTakeIsRefusedAtTheCall() throws {
        for var machine in [TestMachine.openClient(), .openServer()] {
            // The limit is 1,000, of which 64 are for the frame.
            #expect(machine.push(content(1, 937), now: .ms(0)).0 == .tooLong(limit: 1000))
            #expect(machine.push(content(1, 937), .atMostOnce, now: .ms(0)).0 == .tooLong(limit: 1000))
            #expect(throws: RequestError.self) { try machine.request(content(2, 937), 2, deadline: nil, now: .ms(0)) }
            #expect(machine.frames(now: .ms(0)) == "" && machine.outbound.keptSize == SessionSize())
            #expect(machine.push(content(3, 936), now: .ms(0)).0 == .accepted(1, isAdmitted: true))
            #expect(machine.frames(now: .ms(0)) == "o1 push 3")
        }
    }

    @Test func whatWaitedForASessionThatDoesNotTakeItIsToldSo() throws {
        var client = TestMachine(role: .client, options: SessionOptions())
        _ = client.push(content(1, 937), now: .ms(0))
        _ = try client.request(content(2, 937), 2, deadline: nil, now: .ms(0))
        _ = client.push(content(3), now: .ms(0))
        _ = try client.request(content(4), 4, deadline: nil, now: .ms(0))
        _ = client.connected(now: .ms(0))
        _ = client.frames(now: .ms(0))
        #expect(
            line(client.received(.welcome(.test()), now: .ms(0))) == "fail 2 messageRefused, #1 refused, opened 1"
        )
        #expect(client.frames(now: .ms(0)) == "o1 push 3, o2 request 2 4")
        // The next session is with a peer that takes less still. What was sent is in doubt; what waits is looked at again.
        _ = client.disconnected(now: .ms(1))
        _ = client.push(content(5, 100), now: .ms(1))
        _ = client.connected(now: .ms(1))
        _ = client.frames(now: .ms(1))
        #expect(
            line(client.received(.welcome(.test(.test(2), frameLimit: 150)), now: .ms(2)))
                == "sessionLost forgotten, fail 4 sessionLost, #3 inDoubt, #5 refused, opened 2"
        )
        #expect(client.frames(now: .ms(2)) == "")
    }

    /// A server's session is known to its users before its client has the welcome.
    @Test func whatWasAcceptedBeforeTheClientWasKnownIsToldSo() {
        var server = TestMachine(role: .server, options: SessionOptions())
        for (number, length) in [(1, 937), (2, 936)] { _ = server.push(content(number, length), now: .ms(0)) }
        #expect(
            line(server.opened(by: .test(), .test(1), isResumed: false, now: .ms(0))) == "#1 refused, opened 1"
        )
        #expect(server.frames(now: .ms(0)) == "welcome, o1 push 2")
    }

    @Test func aFrameThatCannotBeTakenEndsTheSession() {
        var pair = SessionPair()
        _ = pair.client.push(content(1), isObserved: true, now: .ms(0))
        _ = pair.client.frames(now: .ms(0))
        let violation = SessionViolation.undecodable("It has 5 MiB.")
        #expect(line(pair.server.receivedViolation(violation, now: .ms(0))) == "violated undecodable, ended violated")
        guard case .goodbye(let goodbye)? = pair.server.nextFrame(now: .ms(0))?.0 else { return #expect(Bool(false)) }
        #expect(goodbye.message == "A frame cannot be taken: It has 5 MiB.")
        #expect(
            line(pair.client.received(.goodbye(goodbye), now: .ms(0)))
                == "sessionLost accused, #1 inDoubt, accused violation"
        )
    }
}
