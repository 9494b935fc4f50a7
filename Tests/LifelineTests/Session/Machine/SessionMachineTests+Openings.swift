import Lifeline
import Testing

// What comes in place of a welcome.
extension SessionMachineTests {
    /// A portal of a hotel, or a proxy that answers for a dead server, knows nothing of the session.
    @Test func whatIsNoWelcomeCostsTheConnectionAlone() throws {
        let answers: [(inout TestMachine) -> [TestMachine.Action]] = [
            { $0.receivedViolation(.undecodable("HTTP/1.1 503"), now: .ms(2)) },
            { $0.receivedViolation(.emptyWindow, now: .ms(2)) },
            { $0.received(.ordinary(1, .push(9)), now: .ms(2)) },
            { $0.received(.hello(.test()), now: .ms(2)) },
        ]
        for answer in answers {
            var client = TestMachine.openClient()
            _ = client.push(content(1), isObserved: true, now: .ms(0))
            _ = try client.request(content(2), 2, deadline: nil, now: .ms(0))
            #expect(client.frames(now: .ms(0)) == "o1 push 1, o2 request 1 2")
            _ = client.disconnected(now: .ms(1))
            _ = client.connected(now: .ms(1))
            #expect(client.frames(now: .ms(1)) == "hello again")
            let actions = line(answer(&client))
            #expect(actions.hasPrefix("violated") && !actions.contains(","))
            // A word of violation would end the session where it is known.
            #expect(client.frames(now: .ms(2)) == "" && line(client.disconnected(now: .ms(3))) == "")
            _ = client.connected(now: .ms(4))
            #expect(client.frames(now: .ms(4)) == "hello again")
            #expect(line(client.received(.welcome(.test(isResumed: true)), now: .ms(5))) == "opened 1 again")
            #expect(client.frames(now: .ms(5)) == "o1 push 1, o2 request 1 2")
        }
    }

    /// It would say so again.
    @Test func aWelcomeThatContradictsEndsTheSession() {
        var client = TestMachine.openClient()
        _ = client.push(content(1), now: .ms(0))
        _ = client.frames(now: .ms(0))
        _ = client.disconnected(now: .ms(1))
        _ = client.connected(now: .ms(1))
        _ = client.frames(now: .ms(1))
        #expect(
            line(client.received(.welcome(.test(isResumed: true, progress: .at(2))), now: .ms(2)))
                == "violated unknownAcknowledgement, sessionLost, #1 inDoubt"
        )
        #expect(client.frames(now: .ms(2)) == "goodbye violation")
    }

    // MARK: Cancellations

    /// A peer of one lane may have forgotten the other one's acknowledgements; a hostile one leaves them out.
    @Test func aPeerThatAcknowledgesNoCancellationIsAskedNothingMore() throws {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: 40, byteCount: 4000)
        var client = TestMachine.openClient(options)
        var count = UInt64(0)
        while count < 1000, let id = try? client.request(content(1), 1, deadline: nil, now: .ms(0)) {
            count += 1
            _ = client.frames(now: .ms(0))
            _ = client.cancelRequest(id, now: .ms(0))
            _ = client.frames(now: .ms(0))
            _ = client.received(.acknowledgement(count), now: .ms(0))
        }
        #expect(count == 40 && client.outbound.keptSize.frameCount == 40)
        #expect(throws: RequestError.self) { try client.request(content(1), 1, deadline: nil, now: .ms(0)) }
        _ = client.received(.acknowledgement(count, 1), now: .ms(1))
        _ = try client.request(content(1), 1, deadline: nil, now: .ms(1))
    }
}
