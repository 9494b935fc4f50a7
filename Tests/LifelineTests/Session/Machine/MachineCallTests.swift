import LifelineCore
import Testing

@testable import Lifeline

/// Requests and their limits, of both sides.
@Suite struct MachineCallTests {
    private let now = MonotonicTime.ms(0)

    private func opened(_ role: SessionRole, _ change: (inout SessionOptions) -> Void = { _ in }) -> MachineMatrixEnd {
        var options = SessionOptions()
        change(&options)
        let end = MachineMatrixEnd(role, options)
        end.open(MachineMatrixEnd.largeTerms)
        return end
    }

    private func feed(_ end: MachineMatrixEnd, _ frames: [UInt8]...) -> String {
        for frame in frames { end.receive(frame, now: now) }
        return end.takeLine()
    }

    // MARK: Calls that must not wait for themselves

    @Test func aPushHandlerGetsResponsesWhilePushesFillTheWindow() {
        var options = SessionOptions()
        options.inboundWindow = SessionWindow(frameCount: 8, byteCount: 4_096)
        options.outboundLimit = SessionWindow(frameCount: 16, byteCount: 4_096)
        let pair = MachinePair(options)
        pair.connect()
        for _ in 0..<3 { pair.exchange() }
        for _ in 0..<100 { pair.server.push("t.P/0", size: 10, .reliable, isObserved: false, now: pair.now) }
        for _ in 0..<3 {
            pair.pass(.milliseconds(25))
            pair.exchange()
        }
        #expect(pair.server.machine.waitingCount > 50)
        let unread = pair.client.unread.count
        #expect(unread == 8)
        // The handler of the first call makes calls one after another, in all much more than all windows and limits
        // hold.
        for number in 1...200 {
            pair.client.ask("unary", parts: 0, size: 50, timeout: nil, now: pair.now)
            pair.exchange()
            for index in pair.server.work.indices.reversed() {
                pair.server.goOnAnswering(index, size: 50, now: pair.now)
            }
            pair.exchange()
            #expect(pair.client.endedCallCount == number)
        }
        #expect(pair.client.unread.count == unread && pair.failure == nil)
    }

    @Test func aRequestIsCancelledAlthoughPushesFillTheWindow() {
        let end = opened(.client)
        end.request(1, now: now)
        _ = end.settle(now: now)
        for number in 2...200 as ClosedRange<UInt8> { _ = end.push(number, now: now) }
        _ = end.settle(now: now)
        #expect(end.machine.ordinary.nextToSend < end.machine.ordinary.next)
        #expect(end.machine.cancelRequest(end.calls[0], now: now, into: &end.actions))
        #expect(end.settle(now: now) == "[u1 cancel 1]")
    }

    @Test func partsComeBeforeTheirResponseAcrossACut() {
        let end = opened(.server)
        _ = feed(end, HostileFrame.request(7))
        #expect(end.sendAnswerPart(10, to: 7, now: now) == "accepted")
        #expect(end.sendAnswerPart(11, to: 7, .atMostOnce, now: now) == "accepted")
        #expect(end.settle(now: now) == "[ack 2/0, answer 11 to 7, o3 answer 10 to 7]")
        end.machine.disconnected(1, now: now, into: &end.actions)
        #expect(end.sendAnswerPart(12, to: 7, .atMostOnce, now: now) == "dropped")
        #expect(end.respond(to: 7, 13, now: now) == "accepted")
        let hello = ClientOpening.test(.test(1), attempt: 2, progress: end.progress)
        _ = end.machine.opened(by: hello, .test(1), isResumed: true, over: 2, now: now, into: &end.actions)
        #expect(end.settle(now: now) == "[welcome again at 2/2/0, o3 answer 10 to 7, o4 response 7 13]")
    }

    @Test func atMostOnceMessagesNeedNoCredit() {
        for role in [SessionRole.client, .server] {
            let end = opened(role) { $0.inboundCredit = 64 << 10 }
            end.request(1, now: now)
            _ = end.settle(now: now)
            _ = feed(end, HostileFrame.request(1, hasParts: true))
            for kind in [FrameKind.unplacedResponsePart, .unplacedRequestPart, .unplacedPush] {
                for _ in 0..<3 {
                    let isPush = kind == .unplacedPush
                    let frame =
                        isPush ? HostileFrame.push(size: 40_000, kind: kind) : HostileFrame.part(kind, size: 40_000)
                    #expect(!feed(end, frame).contains("violated"), "\(kind.rawValue)")
                    if let receipt = end.receipts.last { end.machine.finish(receipt, now: now) }
                    end.receipts = []
                }
            }
        }
    }

    @Test func creditMayComeBeforeTheFirstPartOfAResponse() throws {
        let end = opened(.server)
        #expect(feed(end, HostileFrame.request(7), HostileFrame.credit(3, 7, 1 << 20)) == "begin 7")
        let request = try #require(end.running[7])
        let large = end.content(1, size: 70_000)
        let offer = end.machine.sendPart(ofResponseTo: request, large, now: now, into: &end.actions)
        #expect(offer == .accepted(number: 0) && end.sendAnswerPart(2, to: 7, now: now) == "accepted")
    }

    @Test func noCreditIsToldBehindTheEndOfParts() {
        for hasEnded in [false, true] {
            let end = opened(.server) { $0.inboundCredit = 64 << 10 }
            _ = feed(end, HostileFrame.request(8, hasParts: true), HostileFrame.part(.requestPart, 8, size: 40_000))
            if hasEnded { _ = feed(end, HostileFrame.ending(.requestEnd, 8)) }
            end.machine.finish(end.receipts[0], now: now)
            #expect(end.settle(now: now).contains("credit") != hasEnded)
        }
    }

    @Test func aPartOfAnEndedRequestGivesNoCreditToTheNextOneWithItsSerial() {
        let end = opened(.server) { $0.inboundCredit = 64 << 10 }
        let (request, part) = (
            HostileFrame.request(8, hasParts: true), HostileFrame.part(.requestPart, 8, size: 40_000)
        )
        _ = feed(end, request, part, HostileFrame.ending(.cancel, 8), request, part)
        end.machine.finish(end.receipts[0], now: now)
        #expect(!end.settle(now: now).contains("credit"))
        end.machine.finish(end.receipts[1], now: now)
        #expect(end.settle(now: now).contains("credit"))
    }

    @Test func noCreditIsToldAgainBehindTheEndOfParts() {
        for hasEnded in [false, true] {
            let end = opened(.server) { $0.inboundCredit = 64 << 10 }
            _ = feed(end, HostileFrame.request(8, hasParts: true), HostileFrame.part(.requestPart, 8, size: 40_000))
            end.machine.finish(end.receipts[0], now: now)
            #expect(end.settle(now: now).contains("credit"))
            if hasEnded { _ = feed(end, HostileFrame.ending(.requestEnd, 8)) }
            end.machine.disconnected(1, now: now, into: &end.actions)
            let hello = ClientOpening.test(.test(1), attempt: 2, progress: end.progress)
            _ = end.machine.opened(by: hello, .test(1), isResumed: true, over: 2, now: now, into: &end.actions)
            #expect(end.settle(now: now).contains("credit") != hasEnded)
        }
    }

    // MARK: The end of requests

    @Test func requestsEndAtTheirDeadlinesOnBothSides() {
        let end = opened(.client)
        end.request(1, deadline: .ms(10), now: now)
        #expect(end.settle(now: now) == "[o3 request 1 1]")
        // A request that cannot be sent is withdrawn.
        end.machine.disconnected(1, now: now, into: &end.actions)
        end.request(2, deadline: .ms(10), now: now)
        #expect(end.machine.nextDeadline == .ms(10))
        end.machine.timerFired(now: .ms(9), into: &end.actions)
        #expect(end.takeLine() == "")
        end.machine.timerFired(now: .ms(10), into: &end.actions)
        #expect(end.takeLine() == "fail r1 timedOut, fail r2 timedOut")
        #expect(end.machine.nextDeadline == nil)
        let server = opened(.server)
        #expect(feed(server, HostileFrame.request(7, HostileFrame.number(1, 10))) == "begin 7")
        #expect(server.machine.nextDeadline == .ms(10))
        server.machine.timerFired(now: .ms(10), into: &server.actions)
        #expect(server.takeLine() == "cancel 7" && server.machine.nextDeadline == .ms(20), "that is the report's")
        #expect(server.sendAnswerPart(3, to: 7, now: .ms(12)) == "dropped")
        #expect(server.respond(to: 7, 1, now: .ms(12)) == "notWaitedFor")
        #expect(feed(server, HostileFrame.ending(.cancel, 7)) == "", "it came too late")
    }

    @Test func nothingIsSentOfARequestThatIsCancelledBefore() {
        let end = opened(.client)
        end.request(1, hasParts: true, now: now)
        _ = end.machine.sendPart(of: end.calls[0], end.content(2), now: now, into: &end.actions)
        #expect(end.machine.endParts(of: end.calls[0], now: now, into: &end.actions))
        end.request(3, hasParts: true, now: now)
        #expect(end.machine.endParts(of: end.calls[1], now: now, into: &end.actions))
        #expect(end.machine.cancelRequest(end.calls[0], now: now, into: &end.actions))
        #expect(
            end.settle(now: now) == "[o3 blank, o4 blank, o5 blank, o6 request 2 with parts, o7 end of 2]"
        )
    }

    @Test func partsThatWaitEndAtTheDeadlineOfTheirRequest() throws {
        let end = opened(.server)
        #expect(feed(end, HostileFrame.request(7, HostileFrame.number(1, 10))) == "begin 7")
        let request = try #require(end.running[7])
        let large = end.content(1, size: 70_000)
        let offer = end.machine.sendPart(ofResponseTo: request, large, now: now, into: &end.actions)
        #expect(offer == .accepted(number: 0) && end.sendAnswerPart(2, to: 7, now: now) == "waits #1")
        end.machine.timerFired(now: .ms(10), into: &end.actions)
        #expect(end.takeLine() == "#1 unsent, cancel 7" && end.machine.waitingCount == 0)
    }

    @Test func aRequestIsWaitedForUntilItHasEnded() throws {
        let end = opened(.server)
        func isWaitedFor(_ request: IncomingRequest) -> Bool { end.machine.isWaitedFor(request) }
        #expect(feed(end, HostileFrame.request(1), HostileFrame.request(2)) == "begin 1, begin 2")
        let first = try #require(end.running[1])
        let second = try #require(end.running[2])
        #expect(isWaitedFor(first) && isWaitedFor(second))
        #expect(end.respond(to: 1, 1, now: now) == "accepted" && !isWaitedFor(first) && isWaitedFor(second))
        #expect(feed(end, HostileFrame.ending(.cancel, 2)) == "cancel 2" && !isWaitedFor(second))
        // A new request has the serial of one that has ended.
        #expect(feed(end, HostileFrame.request(1)) == "begin 1" && !isWaitedFor(first))
        let third = try #require(end.running[1])
        #expect(isWaitedFor(third))
        // A refused response does not end the request.
        #expect(end.respond(to: 1, 1, size: 2 << 20, now: now) == "refused(responseTooLarge)" && isWaitedFor(third))
        end.machine.disconnected(1, now: now, into: &end.actions)
        #expect(isWaitedFor(third), "the connection may come back")
        end.machine.end(.abandoned, now: now, into: &end.actions)
        #expect(!isWaitedFor(third))
    }

    @Test func everyRequestThatIsDueEndsBeforeTheSession() {
        let end = opened(.client)
        for number in 1...2 as ClosedRange<UInt8> { end.request(number, deadline: .ms(10), now: now) }
        _ = end.settle(now: now)
        end.machine.close(now: now, into: &end.actions)
        end.machine.timerFired(now: .ms(10), into: &end.actions)
        #expect(end.takeLine() == "fail r1 timedOut, fail r2 timedOut")
        #expect(end.settle(now: .ms(10)) == "[u1 cancel 1, u2 cancel 2]")
        #expect(feed(end, HostileFrame.acknowledgement(4, urgent: 2)) == "ended closed")
    }

    @Test func partsThatHaveEndedStayEndedInTheNextSession() {
        let end = MachineMatrixEnd(.client)
        end.request(1, hasParts: true, now: now)
        #expect(end.machine.endParts(of: end.calls[0], now: now, into: &end.actions))
        end.connect(now: now)
        end.forget(now: now)
        end.welcome(.test(1), isResumed: false, now: now)
        #expect(end.takeLine() == "opened 1")
        let offer = end.machine.sendPart(of: end.calls[0], end.content(2), now: now, into: &end.actions)
        #expect(offer == .dropped && !end.machine.endParts(of: end.calls[0], now: now, into: &end.actions))
        #expect(end.settle(now: now) == "[o1 method 1 m, o2 request 1 with parts, o3 end of 1]")
    }

    @Test func partsThatHaveNotEndedGoOnInTheNextSession() {
        let end = MachineMatrixEnd(.client)
        end.request(1, hasParts: true, now: now)
        end.connect(now: now)
        end.forget(now: now)
        end.welcome(.test(1), isResumed: false, now: now)
        #expect(end.takeLine() == "opened 1")
        let offer = end.machine.sendPart(of: end.calls[0], end.content(2), now: now, into: &end.actions)
        #expect(offer == .accepted(number: 0))
        #expect(end.machine.endParts(of: end.calls[0], now: now, into: &end.actions))
        #expect(
            end.settle(now: now) == "[o1 method 1 m, o2 request 1 with parts, o3 part 2 of 1, o4 end of 1]"
        )
    }

    /// A response to it is dropped, and its caller may call again.
    @Test func aRequestThatWaitsForAnotherConnectionWasNotSent() {
        let end = opened(.client)
        _ = feed(end, HostileFrame.goodbye(2))
        end.request(1, now: now)
        #expect(feed(end, HostileFrame.response(.urgentResponse)) == "" && end.machine.lateMessageCount == 1)
        end.machine.end(.abandoned, now: now, into: &end.actions)
        #expect(end.takeLine() == "fail r1 notSent, ended abandoned")
    }

    // MARK: Limits

    @Test func cancelledRequestsCountUntilTheirHandlersAreDone() {
        let end = opened(.server) { $0.maximumRunningCount = 3 }
        var lines: [String] = []
        var running: [IncomingRequest] = []
        for _ in 1...5 {
            end.receive(HostileFrame.request(1), now: now)
            end.receive(HostileFrame.ending(.cancel, 1), now: now)
            lines.append(end.takeLine())
            if let request = end.running.removeValue(forKey: 1) { running.append(request) }
        }
        let refused = "refuse 1 tooManyRunning, cancel 1"
        #expect(lines == Array(repeating: "begin 1, cancel 1", count: 3) + [refused, refused])
        let content = end.content(0)
        for request in running {
            #expect(end.machine.respond(to: request, content, now: now, into: &end.actions) == .notWaitedFor)
        }
        // Refused requests also count until they have a response.
        #expect(feed(end, HostileFrame.request(1)) == "begin 1")
    }

    @Test func requestsThatRunTakeNoMoreBytesThanTheWindow() {
        let end = opened(.server) { $0.inboundWindow = SessionWindow(frameCount: 100, byteCount: 4_096) }
        func request(_ serial: UInt64, _ size: Int) -> String { feed(end, HostileFrame.request(serial, size: size)) }
        #expect(request(1, 1_900) == "begin 1" && request(2, 1_900) == "begin 2")
        #expect(request(3, 200) == "refuse 3 tooManyRunning")
        // Frames behind running requests are acknowledged, however long those run.
        #expect(end.machine.inbound.processed == 4)
        #expect(end.respond(to: 2, 1, now: now) == "accepted")
        #expect(request(4, 1_900) == "begin 4" && request(5, 200) == "refuse 5 tooManyRunning")
        // A single request must not be larger either.
        #expect(request(6, 5_000) == "violated windowExceeded, cancel 1, cancel 3, cancel 4, cancel 5, ended violated")
    }

    @Test(arguments: [SessionRole.client, .server]) func thePeersLimitOfRequestsCounts(role: SessionRole) {
        let end = opened(role)
        for number in 1...10 as ClosedRange<UInt8> { #expect(end.request(number, now: now) == "r\(number)") }
        #expect(end.request(11, now: now) == "tooManyInFlight")
        #expect(end.machine.cancelRequest(end.calls[0], now: now, into: &end.actions))
        #expect(end.request(11, now: now) == "r11")
    }

    @Test func requestsThatWaitHaveALimitOfBytes() throws {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: 100, byteCount: 1_000)
        let end = MachineMatrixEnd(.client, options)
        func ask(_ size: Int) -> Bool {
            let content = end.content(1, size: size)
            guard let id = try? end.machine.request("m", content, deadline: nil, now: now) else { return false }
            end.calls.append(id)
            return true
        }
        // The limit is twice the kept size.
        #expect(ask(900) && ask(700) && !ask(200) && ask(10) && !ask(200))
        // A push waits behind them for room.
        #expect(end.push(5, now: now) == "waits #1")
        for call in end.calls.prefix(2) { _ = end.machine.cancelRequest(call, now: now, into: &end.actions) }
        #expect(end.takeLine() == "accepted #1", "blanks cost little")
        #expect(ask(200))
    }

    @Test func aSmallResponseAlwaysHasRoom() {
        let end = opened(.server) { $0.outboundLimit = SessionWindow(frameCount: 100, byteCount: 10_000) }
        var offers: [String] = []
        for serial in 1...11 as ClosedRange<UInt32> {
            _ = feed(end, HostileFrame.request(UInt64(serial)))
            let offer = end.respond(to: serial, 1, size: 4_000, now: now)
            offers.append(offer)
            if offer != "accepted" { #expect(end.respond(to: serial, 1, size: 1_024, now: now) == "accepted") }
        }
        // Responses have half as many bytes in addition to the limit of the ordinary lane.
        #expect(offers.prefix(3).allSatisfy { $0 == "accepted" })
        #expect(offers.dropFirst(3).allSatisfy { $0 == "refused(tooManyResponses)" })
        // A request that has ended, or whose session has ended, needs no response.
        #expect(end.respond(to: 1, 1, size: 4_000, now: now) == "notWaitedFor")
        _ = feed(end, HostileFrame.request(12))
        end.machine.end(.abandoned, now: now, into: &end.actions)
        _ = end.takeLine()
        #expect(end.respond(to: 12, 1, now: now) == "notWaitedFor" && end.machine.runningCount == 0)
    }

    @Test func aLargeResponseHasRoomWhereNothingElseIsKept() {
        let end = opened(.server) { $0.outboundLimit = SessionWindow(frameCount: 100, byteCount: 1_000) }
        _ = feed(end, HostileFrame.request(1), HostileFrame.request(2))
        #expect(end.respond(to: 1, 1, size: 4_000, now: now) == "accepted")
        #expect(end.respond(to: 2, 2, size: 4_000, now: now) == "refused(tooManyResponses)")
    }

    /// A peer that accepts requests but acknowledges no cancel must not fill the memory with cancels.
    @Test func aPeerThatAcknowledgesNoCancelIsAskedNothingMore() {
        let end = opened(.client)
        var count = 0
        let content = end.content(1)
        while count < 20_000, let id = try? end.machine.request("m", content, deadline: nil, now: now) {
            count += 1
            end.forget(now: now)
            _ = end.machine.cancelRequest(id, now: now, into: &end.actions)
            end.forget(now: now)
            end.receive(HostileFrame.acknowledgement(UInt64(count) + 2), now: now)
        }
        #expect(count == SessionMachine.urgentFrameLimit / 2)
        #expect(end.request(1, now: now) == "tooManyInFlight")
        end.receive(HostileFrame.acknowledgement(0, urgent: 1), now: now)
        #expect(end.request(1, now: now) == "r1")
    }
}
