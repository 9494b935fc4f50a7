import LifelineCore
import Testing

@testable import Lifeline

struct MachineRegressionTests {
    /// Deadlines of messages that newer ones have replaced while they waited are forgotten.
    @Test func deadlinesOfReplacedMessagesThatWaitDoNotPileUp() {
        var terms = HostileFrame.terms
        terms.credit = 64 << 10
        let peer = MachineHostilePeer.opened(.server, terms: terms)
        peer.keepsEvents = false
        _ = peer.push("a", size: 70_000)
        for _ in 0..<10_000 { _ = peer.push("a", .replaceable(key: "k", timeToLive: .seconds(3_600))) }
        #expect(peer.machine.waitingCount == 1)
        #expect(peer.machine.waitingDeadlines.count < 200)
        #expect(peer.failure == nil)
    }

    typealias Frame = HostileFrame
    typealias Offer = SessionMachine.Offer

    // MARK: Serials that are used again

    /// A request that has the serial of a cancelled one has its own parts and keys.
    @Test func aKeyOfACancelledRequestIsNotMetByTheNextOneWithItsSerial() {
        let peer = MachineHostilePeer.opened(.server)
        peer.feed([Frame.method(1, "a"), Frame.request(1)])
        #expect(part(peer, peer.running[0], .replaceable(key: "k")) == .accepted(number: 1))
        peer.feed([Frame.ending(.cancel, 1), Frame.request(1)])
        #expect(part(peer, peer.running[1], .replaceable(key: "k")) == .accepted(number: 2))
        check(peer)
    }

    /// A request that has the serial of an answered one has its own parts and keys.
    @Test func aKeyOfAnAnsweredRequestIsNotMetByTheNextOneWithItsSerial() {
        let peer = MachineHostilePeer.opened(
            .server,
            terms: terms(window: SessionWindow(frameCount: 1, byteCount: 4_096))
        )
        peer.feed([Frame.method(1, "a"), Frame.request(1)])
        #expect(part(peer, peer.running[0]) == .accepted(number: 0))
        #expect(part(peer, peer.running[0], .replaceable(key: "k")) == .accepted(number: 1))
        _ = peer.offered()
        peer.respond(to: peer.running[0])
        peer.feed(Frame.request(1))
        #expect(part(peer, peer.running[0], .replaceable(key: "k")) == .accepted(number: 2))
        check(peer)
    }

    /// A part that expires after another request got its serial ends once, and takes no credit from that request.
    @Test(arguments: [true, false])
    func aPartExpiresThoughAnotherRequestHasItsSerial(isCancelled: Bool) {
        let peer = MachineHostilePeer.opened(.server)
        peer.feed([Frame.method(1, "a"), Frame.request(1)])
        let first = peer.running[0]
        #expect(part(peer, first, .expiring(after: .milliseconds(5))) == .accepted(number: 1))
        if isCancelled { peer.feed(Frame.ending(.cancel, 1)) } else { peer.respond(to: first) }
        peer.feed(Frame.request(1))
        peer.pass(.milliseconds(10))
        #expect(peer.events.filter { $0 == .messageEnded(.expired) }.count == 1)
        if let next = peer.running.last { #expect(part(peer, next) == .accepted(number: 0)) }
        check(peer)
    }

    // MARK: Parts that are sent at most once

    /// A part that is sent at most once and comes behind the end is dropped, and breaks no rule.
    @Test func aPartSentAtMostOnceMayBeOvertakenByTheEnd() {
        let peer = MachineHostilePeer.opened(.server)
        peer.feed([Frame.method(1, "a"), Frame.request(1, hasParts: true), Frame.ending(.requestEnd)])
        peer.feed(Frame.part(.unplacedRequestPart))
        #expect(!peer.events.contains(.requestPart(serial: 1)))
        #expect(peer.machine.lateMessageCount == 1)
        #expect(peer.machine.endReason == nil)
        check(peer)
    }

    /// Parts that are sent at most once go before the urgent response that is sent with them.
    @Test func aPartSentAtMostOnceGoesBeforeAnUrgentResponse() throws {
        let peer = MachineHostilePeer.opened(.server)
        peer.feed([Frame.method(1, "a"), Frame.request(1)])
        _ = peer.offered()
        #expect(part(peer, peer.running[0], .atMostOnce) == .accepted(number: 0))
        peer.respond(to: peer.running[0])
        let kinds = peer.offered().map(\.kind)
        let part = try #require(kinds.firstIndex(of: .unplacedResponsePart))
        let response = try #require(kinds.firstIndex(of: .urgentResponse))
        #expect(part < response)
        check(peer)
    }

    /// Parts that are sent at most once go before the ordinary response that is sent with them.
    @Test func aPartSentAtMostOnceGoesBeforeAnOrdinaryResponse() throws {
        let peer = MachineHostilePeer.opened(.server)
        peer.feed([Frame.method(1, "a"), Frame.request(1)])
        _ = peer.offered()
        #expect(part(peer, peer.running[0]) == .accepted(number: 0))
        #expect(part(peer, peer.running[0], .atMostOnce) == .accepted(number: 0))
        peer.respond(to: peer.running[0])
        let kinds = peer.offered().map(\.kind)
        let part = try #require(kinds.firstIndex(of: .unplacedResponsePart))
        let response = try #require(kinds.firstIndex(of: .response))
        #expect(part < response)
        check(peer)
    }

    /// A part that is sent at most once goes before the end of its request if both are sent together.
    @Test func aPartSentAtMostOnceGoesBeforeTheEndOfItsRequest() throws {
        let peer = MachineHostilePeer.opened(.client)
        let call = try #require(peer.request("a", hasParts: true))
        _ = peer.offered()
        #expect(part(peer, of: call, .atMostOnce) == .accepted(number: 0))
        peer.endParts(of: call)
        let kinds = peer.offered().map(\.kind)
        let part = try #require(kinds.firstIndex(of: .unplacedRequestPart))
        let end = try #require(kinds.firstIndex(of: .requestEnd))
        #expect(part < end)
        check(peer)
    }

    // MARK: Bounds

    /// Responses behind parts that are never acknowledged are bounded: further requests are refused.
    @Test(arguments: [
        SessionWindow(frameCount: 64, byteCount: 64 << 10), SessionWindow(frameCount: 4_000, byteCount: 8 << 10),
    ]) func ordinaryResponsesThatAreNotAcknowledgedAreBounded(limit: SessionWindow) {
        var options = SessionOptions()
        options.outboundLimit = limit
        let peer = MachineHostilePeer.opened(.server, options)
        peer.feed(Frame.method(1, "a"))
        for serial in 1...2_000 as ClosedRange<UInt64> {
            peer.feed(Frame.request(serial))
            if let request = peer.running.last {
                _ = part(peer, request)
                peer.respond(to: request, size: 1_000)
            }
            _ = peer.offered()
        }
        #expect(peer.events.contains(.refused(.tooManyResponses)))
        #expect(peer.machine.ordinary.keptSize.frameCount <= 3 * limit.frameCount + 8)
        #expect(peer.machine.ordinary.keptSize.byteCount <= 4 * limit.byteCount)
        #expect(peer.machine.endReason == nil)
        check(peer)
    }

    /// Deadlines of messages that newer ones have replaced in the log are forgotten.
    @Test func deadlinesOfReplacedMessagesInTheLogDoNotPileUp() {
        let peer = MachineHostilePeer.opened(.server)
        peer.keepsEvents = false
        for _ in 0..<10_000 { _ = peer.push("a", .replaceable(key: "k", timeToLive: .seconds(3_600))) }
        #expect(peer.machine.logDeadlines.count < 200)
        check(peer)
    }

    /// Messages that are finished after the end do not count as kept any more.
    @Test func messagesFinishedAfterTheEndAreNotKept() {
        let peer = MachineHostilePeer.opened(.server)
        peer.feed([Frame.method(1, "a"), Frame.push(size: 60_000), Frame.goodbye(1)])
        #expect(peer.machine.endReason != nil)
        #expect(peer.machine.keptByteCount >= 60_000)
        peer.finishAll()
        #expect(peer.machine.keptByteCount < 1_000)
        check(peer)
    }

    /// A credit is due once, however often it grows before it is sent.
    @Test func aCreditThatGrowsIsDueOnce() {
        var options = SessionOptions()
        options.inboundCredit = 64 << 10
        let peer = MachineHostilePeer.opened(.server, options)
        peer.feed(Frame.method(1, "a"))
        _ = peer.offered()
        for _ in 0..<100 {
            peer.feed(Frame.push(size: 40_000))
            peer.finishAll()
        }
        #expect(peer.machine.dueCredits.count == 1)
        #expect(peer.offered().filter { $0.kind == .credit }.count == 1)
        #expect(peer.machine.dueCredits.isEmpty)
        check(peer)
    }

    // MARK: Messages that another session does not take

    /// Messages whose methods get no number in the next session end as refused.
    @Test func messagesForWhichNoMethodNumberIsLeftAreRefused() {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: 64, byteCount: 1 << 20)
        let peer = MachineHostilePeer.opened(.client, options)
        for number in 0..<1_024 { _ = peer.push("m\(number)") }
        peer.cut()
        peer.open(isResumed: false)
        for number in 0..<1_024 { _ = peer.push("n\(number)") }
        for _ in 0..<200 {
            _ = peer.offered()
            peer.feed(Frame.acknowledgement(peer.ordinaryPlaces))
        }
        #expect(peer.events.contains { $0 == .messageEnded(.refused) || $0 == .leftOver(.refused) })
        #expect(peer.machine.waitingCount == 0)
        check(peer)
    }

    /// An observed part of a request that is cancelled before it was sent ends as unsent.
    @Test func anObservedPartOfARequestThatIsCancelledUnsentEndsAsUnsent() throws {
        let peer = MachineHostilePeer(.client)
        let call = try #require(peer.request("a", hasParts: true))
        #expect(part(peer, of: call, isObserved: true) == .accepted(number: 1))
        peer.cancel(call)
        #expect(peer.events.filter { $0 == .messageEnded(.unsent) }.count == 1)
        peer.open()
        let kinds = peer.offered().map(\.kind)
        #expect(!kinds.contains(.request) && !kinds.contains(.requestPart) && !kinds.contains(.cancel))
        check(peer)
    }

    /// Parts of a request that the new session does not take are not sent, and end as unsent.
    @Test func partsOfARequestThatTheSessionRefusesEndAsUnsent() throws {
        let peer = MachineHostilePeer(.client)
        var fields: [UInt8] = []
        FieldWriter.metadataFields(["a": String(repeating: "x", count: 20_000)], field: 5, into: &fields)
        let call = try fields.withUnsafeBytes { fields in
            let content = SessionMachine.Content(fields: fields, payload: UnsafeRawBufferPointer(start: nil, count: 0))
            return try peer.machine.request("a", content, hasParts: true, deadline: nil, now: peer.now)
        }
        peer.calls.append(call)
        #expect(part(peer, of: call, isObserved: true) == .accepted(number: 1))
        peer.endParts(of: call)
        peer.open(terms: terms(window: SessionWindow(frameCount: 100, byteCount: 8_192)))
        #expect(peer.events.contains(.failed(.messageRefused)))
        #expect(peer.events.filter { $0 == .messageEnded(.unsent) }.count == 1)
        let kinds = peer.offered().map(\.kind)
        #expect(!kinds.contains(.request) && !kinds.contains(.requestPart) && !kinds.contains(.requestEnd))
        #expect(peer.machine.waitingCount == 0)
        check(peer)
    }

    /// If a part of a call does not fit into the new session's frames, the call fails: otherwise the gap would go
    /// unnoticed.
    @Test func aCallFailsIfTheSessionRefusesAPartThatNobodyObserves() throws {
        let peer = MachineHostilePeer(.client)
        let call = try #require(peer.request("a", hasParts: true))
        #expect(part(peer, of: call) == .accepted(number: 0))
        #expect(part(peer, of: call, size: 20_000) == .accepted(number: 0))
        #expect(part(peer, of: call, isObserved: true) == .accepted(number: 1))
        peer.endParts(of: call)
        peer.open(terms: terms(window: SessionWindow(frameCount: 100, byteCount: 8_192)))
        #expect(peer.events.contains(.failed(.messageRefused)))
        #expect(peer.events.contains(.messageEnded(.unsent)))
        let kinds = peer.offered().map(\.kind)
        #expect(!kinds.contains(.request) && !kinds.contains(.requestPart) && !kinds.contains(.requestEnd))
        #expect(peer.machine.waitingCount == 0)
        check(peer)
    }

    /// If an observed part is refused, its call continues.
    @Test func aCallGoesOnIfTheSessionRefusesAPartThatIsObserved() throws {
        let peer = MachineHostilePeer(.client)
        let call = try #require(peer.request("a", hasParts: true))
        #expect(part(peer, of: call, size: 20_000, isObserved: true) == .accepted(number: 1))
        peer.endParts(of: call)
        peer.open(terms: terms(window: SessionWindow(frameCount: 100, byteCount: 8_192)))
        #expect(peer.events.contains(.messageEnded(.refused)))
        #expect(!peer.events.contains(.failed(.messageRefused)))
        let kinds = peer.offered().map(\.kind)
        #expect(kinds.contains(.request) && !kinds.contains(.requestPart) && kinds.contains(.requestEnd))
        check(peer)
    }

    /// Frames behind a withdrawn message are sent, such as the end of a request's parts.
    @Test func theEndOfPartsGoesWhenThePartBeforeItIsWithdrawn() throws {
        let peer = MachineHostilePeer.opened(.client, terms: terms(credit: 64 << 10))
        let call = try #require(peer.request("a", hasParts: true))
        #expect(part(peer, of: call, size: 70_000) == .accepted(number: 0))
        _ = peer.offered()
        peer.feed(Frame.acknowledgement(peer.ordinaryPlaces))
        #expect(part(peer, of: call) == .waits(number: 1))
        peer.endParts(of: call)
        #expect(!peer.offered().contains { $0.kind == .requestEnd })
        peer.withdraw(1)
        #expect(peer.machine.waitingCount == 0)
        #expect(peer.offered().filter { $0.kind == .requestEnd }.count == 1)
        check(peer)
    }

    @Test func theEndOfPartsGoesWhenThePartBeforeItExpires() throws {
        let peer = MachineHostilePeer.opened(.client, terms: terms(credit: 64 << 10))
        let call = try #require(peer.request("a", hasParts: true))
        #expect(part(peer, of: call, size: 70_000) == .accepted(number: 0))
        #expect(part(peer, of: call, .expiring(after: .milliseconds(5))) == .waits(number: 1))
        peer.endParts(of: call)
        #expect(!peer.offered().contains { $0.kind == .requestEnd })
        peer.pass(.milliseconds(10))
        #expect(peer.machine.waitingCount == 0)
        #expect(peer.offered().filter { $0.kind == .requestEnd }.count == 1)
        check(peer)
    }

    /// A withdrawn message that waited for room does not make the next one wait for ever.
    @Test func aWithdrawnMessageThatWaitedForRoomHoldsUpNothing() {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: 1, byteCount: 1_000)
        let peer = MachineHostilePeer.opened(.server, options)
        // The name of its method takes the room.
        #expect(peer.push("a") == .waits(number: 1))
        peer.withdraw(1)
        _ = peer.offered()
        peer.feed(Frame.acknowledgement(peer.ordinaryPlaces))
        #expect(peer.push("a") == .accepted(number: 0))
        check(peer)
    }

    // MARK: Openings and goodbyes

    /// A client that closes while the server sends it away ends the session.
    @Test func aClientThatClosesBehindBeingSentAwayEndsTheSession() {
        let peer = MachineHostilePeer.opened(.server)
        peer.feed(Frame.method(1, "a"))
        _ = peer.offered()
        peer.machine.allowance.byteCount = 1_000
        peer.feed(Frame.push(size: 5_000))
        #expect(peer.machine.endReason == nil)
        peer.feed(Frame.goodbye(1))
        #expect(peer.machine.endReason != nil)
        check(peer)
    }

    /// Only a goodbye may come in place of the welcome, also when a session cannot continue.
    @Test func onlyAGoodbyeComesWhenAResumptionFails() {
        let peer = MachineHostilePeer.opened(.server)
        _ = peer.offered()
        peer.feed([Frame.method(1, "a"), Frame.push()])
        peer.cut()
        peer.finishAll()
        peer.open(isResumed: true, progress: OpeningProgress(processed: 9, received: 9, urgent: 0))
        #expect(peer.violation == .unknownAcknowledgement(SessionPlace(.ordinary, 9)))
        #expect(peer.offered().map(\.kind) == [.goodbye])
        #expect(peer.failure == nil)
    }

    /// A client cannot move a session: these goodbyes of a client only close the connection.
    @Test(arguments: [SessionGoodbye.Code.replaced, .refused, .version])
    func someGoodbyesOfAClientCloseOnlyTheConnection(code: SessionGoodbye.Code) {
        let peer = MachineHostilePeer.opened(.server)
        _ = peer.offered()
        peer.feed(Frame.goodbye(UInt64(code.rawValue)))
        _ = peer.offered()
        #expect(peer.machine.endReason == nil)
        #expect(peer.events.contains { if case .closed = $0 { true } else { false } })
        peer.cut()
        peer.open(isResumed: true)
        #expect(peer.events.last == .opened(isResumed: true))
        peer.feed([Frame.method(1, "a"), Frame.push()])
        #expect(peer.events.last == .push(method: 1))
        check(peer)
    }

    /// A method has one number: a name that is given twice breaks the rules.
    @Test func aNameThatIsGivenTwiceBreaksTheRules() {
        let peer = MachineHostilePeer.opened(.server)
        peer.feed([Frame.method(1, "a"), Frame.method(2, "a")])
        #expect(peer.violation == .methodNumber(2))
        #expect(peer.machine.endReason != nil)
        #expect(peer.failure == nil)
    }

    /// Frames that an opening reported as received stay received.
    @Test func theReceivedPlaceDoesNotGoBackInAnOpening() {
        let peer = MachineHostilePeer.opened(.server)
        for _ in 0..<2 { _ = peer.push("a") }
        _ = peer.offered()
        peer.cut()
        peer.open(isResumed: true, progress: OpeningProgress(processed: 0, received: 3, urgent: 0))
        #expect(peer.violation == nil)
        _ = peer.offered()
        peer.cut()
        peer.open(isResumed: true, progress: OpeningProgress(processed: 0, received: 1, urgent: 0))
        #expect(peer.violation == .acknowledgementWentBack(SessionPlace(.ordinary, 1)))
        #expect(peer.failure == nil)
    }

    // MARK: Helpers

    private func terms(
        window: SessionWindow = Frame.terms.window,
        credit: Int = Frame.terms.credit
    ) -> SessionTerms {
        SessionTerms(
            window: window,
            credit: credit,
            maximumRequestCount: Frame.terms.maximumRequestCount,
            maximumFrameLength: Frame.terms.maximumFrameLength
        )
    }

    /// Sends a part of a response, and returns its outcome.
    private func part(
        _ peer: MachineHostilePeer,
        _ request: IncomingRequest,
        _ delivery: SessionDelivery = .reliable
    ) -> Offer {
        var actions: [SessionMachine.Action] = []
        return [UInt8](repeating: 7, count: 10).withUnsafeBytes {
            let content = SessionMachine.Content(payload: $0)
            return peer.machine.sendPart(ofResponseTo: request, content, delivery, now: peer.now, into: &actions)
        }
    }

    /// Sends a part of a request, and returns its outcome.
    private func part(
        _ peer: MachineHostilePeer,
        of call: SessionMachine.RequestID,
        size: Int = 10,
        _ delivery: SessionDelivery = .reliable,
        isObserved: Bool = false
    ) -> Offer {
        var actions: [SessionMachine.Action] = []
        return [UInt8](repeating: 7, count: size).withUnsafeBytes {
            peer.machine.sendPart(
                of: call,
                SessionMachine.Content(payload: $0),
                delivery,
                isObserved: isObserved,
                now: peer.now,
                into: &actions
            )
        }
    }

    /// Checks that the peer has broken no rule, and that the machine has done nothing wrong.
    private func check(_ peer: MachineHostilePeer, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(peer.violation == nil, sourceLocation: sourceLocation)
        #expect(peer.failure == nil, sourceLocation: sourceLocation)
    }
}
