import LifelineCore
import Testing

@testable import Lifeline

/// Messages that are sent only if they can be accepted at once.
@Suite struct MachinePlainTests {
    private let now = MonotonicTime.ms(0)

    private func push(_ end: MachineMatrixEnd, _ number: UInt8, size: Int = 1, method: String = "m") -> Bool {
        end.machine.pushPlain(method, end.content(number, size: size))
    }

    private func part(_ end: MachineMatrixEnd, _ number: UInt8, of call: SessionMachine.RequestID) -> Bool {
        end.machine.sendPlainPart(of: call, end.content(number))
    }

    private func part(_ end: MachineMatrixEnd, _ number: UInt8, to request: IncomingRequest) -> Bool {
        end.machine.sendPlainPart(ofResponseTo: request, end.content(number))
    }

    @Test func aPlainPushIsOneThatIsAcceptedAtOnce() {
        let end = MachineMatrixEnd(.server)
        end.open()
        #expect(!push(end, 1, method: "n"), "its method has no number")
        #expect(!push(end, 1, size: 4_873), "no frame is so long")
        #expect(push(end, 2, size: 4_872))
        #expect(end.settle(now: now) == "[o3 push 2]")
        let kept = end.machine.keptByteCount
        end.machine.allowance.byteCount = kept + 73
        #expect(!push(end, 3, size: 10), "the server keeps as much as it may")
        end.machine.allowance.byteCount = kept + 74
        #expect(push(end, 4, size: 10))
        end.machine.allowance = .unlimited
        end.machine.close(now: now, into: &end.actions)
        #expect(!push(end, 5), "nothing new is taken")
    }

    @Test func aPlainPartOfARequestIsOneThatIsAcceptedAtOnce() {
        let end = MachineMatrixEnd(.client)
        end.open(MachineMatrixEnd.largeTerms)
        end.request(1, hasParts: true, now: now)
        end.request(2, now: now)
        #expect(part(end, 3, of: end.calls[0]))
        #expect(!part(end, 4, of: end.calls[1]), "it has no parts")
        #expect(end.machine.endParts(of: end.calls[0], now: now, into: &end.actions))
        #expect(!part(end, 5, of: end.calls[0]), "no part follows")
        #expect(end.settle(now: now) == "[o3 request 1 with parts, o4 request 2 2, o5 part 3 of 1, o6 end of 1]")
        end.request(6, hasParts: true, now: now)
        end.machine.disconnected(1, now: now, into: &end.actions)
        #expect(!part(end, 7, of: end.calls[2]), "there is no connection")
    }

    @Test func aPlainPartOfAResponseIsOneThatIsAcceptedAtOnce() throws {
        let end = MachineMatrixEnd(.server)
        end.open(MachineMatrixEnd.largeTerms)
        end.receive(HostileFrame.request(7), now: now)
        // This credit makes the stream known, but no part of it was sent yet.
        end.receive(HostileFrame.credit(3, 7, 1 << 20), now: now)
        #expect(end.takeLine() == "begin 7")
        let request = try #require(end.running[7])
        #expect(!part(end, 1, to: request), "the first one decides the lane of the response")
        #expect(end.sendAnswerPart(2, to: 7, now: now) == "accepted" && part(end, 3, to: request))
        end.machine.drain(SessionDrain(deadline: .ms(5)))
        #expect(!part(end, 4, to: request), "the server goes away")
        #expect(end.respond(to: 7, 5, now: now) == "accepted" && !part(end, 6, to: request))
        #expect(
            end.settle(now: now)
                == "[ack 2/0, o3 answer 2 to 7, o4 answer 3 to 7, o5 response 7 5, goodbye draining]"
        )
    }
}
