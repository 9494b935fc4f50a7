import Lifeline
import LifelineCore
import Testing

/// Hostile peers: they cause no trap, no memory beyond the limits, and no work that grows with the flood.
@Suite struct MachineHostileTests {
    typealias Frame = HostileFrame

    static let roles: [SessionRole] = [.client, .server]

    // MARK: Random frames

    @Test func randomPeersDoNoHarm() {
        for seed in 0..<3_000 as Range<UInt64> {
            var run = HostileRun(seed: seed)
            run.play()
            if let failure = run.peer.failure { Issue.record("seed \(seed): \(failure)") }
        }
    }

    /// The runs have to reach each case, or they would not check it.
    @Test func randomPeersReachEverything() {
        var (ended, violated, resumed, begun, completed, parts, processed) = (0, 0, 0, 0, 0, 0, 0)
        for seed in 0..<200 as Range<UInt64> {
            var run = HostileRun(seed: seed)
            run.play()
            for event in run.peer.events {
                switch event {
                case .ended: ended += 1
                case .violated: violated += 1
                case .opened(isResumed: true): resumed += 1
                case .begun: begun += 1
                case .completed: completed += 1
                case .requestPart, .responsePart: parts += 1
                case .messageEnded(.processed): processed += 1
                default: break
                }
            }
        }
        #expect(ended > 50)
        #expect(violated > 50)
        #expect(resumed > 50)
        #expect(begun > 200)
        #expect(completed > 20)
        #expect(parts > 50)
        #expect(processed > 20)
    }

    // MARK: Memory

    /// The most incoming bytes that a machine with these options keeps: the window of messages, the running requests,
    /// and the names of methods.
    private func inboundLimit(_ options: SessionOptions) -> Int {
        2 * options.inboundWindow.byteCount + 1_024 * (256 + SessionSize.frameOverhead)
    }

    private static let names = (1...1_024).map { number in
        Frame.method(UInt64(number), String(repeating: "n", count: 252) + String(1_000 + number).suffix(4))
    }

    /// An open end that keeps a megabyte, after 1,024 methods with the longest names.
    private func flooded(
        _ role: SessionRole,
        runningCount: Int = 1_024
    ) -> (MachineHostilePeer, SessionOptions) {
        var options = SessionOptions()
        options.maximumRunningCount = runningCount
        options.inboundWindow = SessionWindow(frameCount: 4_096, byteCount: 1 << 20)
        options.outboundLimit = SessionWindow(frameCount: 4_096, byteCount: 1 << 20)
        let peer = MachineHostilePeer.opened(role, options)
        peer.keepsEvents = false
        peer.feed(Self.names)
        return (peer, options)
    }

    @Test(arguments: roles) func pushesThatNobodyFinishes(_ role: SessionRole) {
        let (peer, options) = flooded(role)
        var count: UInt64 = 0
        var largest = 0
        // Feeds pushes until they exceed the window.
        while peer.receipts.count == Int(count) {
            largest = max(largest, peer.machine.keptByteCount)
            peer.feed(Frame.push(1 + count % 200, size: 500))
            count += 1
        }
        #expect(count > 1_000)
        #expect(largest <= inboundLimit(options) - options.inboundWindow.byteCount)
    }

    @Test(arguments: roles) func requestsThatNobodyAnswers(_ role: SessionRole) {
        let (peer, options) = flooded(role)
        let metadata = Frame.metadata(5, count: 120, valueSize: 4)
        var largest = 0
        for serial in 1...3_000 as ClosedRange<UInt64> {
            peer.feed(Frame.request(serial, method: 1 + serial % 1_024, metadata))
            // Cancelling one does not make room for another while its handler runs.
            if serial % 3 == 0 { peer.feed(Frame.ending(.cancel, serial)) }
            peer.feed(Frame.acknowledgement(urgent: peer.urgentPlaces))
            _ = peer.offered()
            largest = max(largest, peer.machine.keptByteCount)
        }
        #expect(peer.machine.endReason == nil && peer.failure == nil)
        #expect(peer.machine.runningCount > 500 && peer.machine.runningCount <= options.maximumRunningCount)
        #expect(largest <= inboundLimit(options))
    }

    /// Refusals that nobody acknowledges are small, and counted.
    @Test(arguments: roles) func refusalsThatNobodyAcknowledges(_ role: SessionRole) {
        let (peer, options) = flooded(role, runningCount: 0)
        for serial in 1...17_000 as ClosedRange<UInt64> { peer.feed(Frame.request(serial)) }
        #expect(role == .client || peer.isOver)
        #expect(peer.machine.keptByteCount <= inboundLimit(options) + 16_384 * 128)
    }

    @Test(arguments: roles) func messagesThatAreSentAtMostOnce(_ role: SessionRole) {
        let (peer, options) = flooded(role)
        peer.feed(Frame.request(1, hasParts: true))
        for index in 0..<5_000 as Range<UInt64> {
            peer.feed(Frame.push(1 + index % 200, size: 500, kind: .unplacedPush))
            peer.feed(Frame.part(.unplacedRequestPart, 1, size: 500))
            // Pushes with places share the window with unplaced ones.
            if index < 1_000 { peer.feed(Frame.push(1 + index % 200, size: 300)) }
        }
        #expect(peer.machine.endReason == nil && peer.machine.droppedMessageCount > 5_000)
        // Messages with a place are accepted even if unplaced ones fill the window, so the limit is a window higher.
        #expect(peer.machine.keptByteCount <= inboundLimit(options) + options.inboundWindow.byteCount)
    }

    /// A peer that sends all requests, grants all credit, and acknowledges nothing.
    @Test(arguments: roles) func answersThatNobodyTakes(_ role: SessionRole) {
        let (peer, options) = flooded(role)
        for serial in 1...1_000 as ClosedRange<UInt64> {
            peer.feed([Frame.request(serial), Frame.credit(3, serial, .max), Frame.credit(1, serial, .max)])
        }
        for (index, request) in peer.running.enumerated() {
            peer.sendPart(ofResponseTo: request, size: 1_000)
            if index % 2 == 0 { peer.respond(to: request, size: 4_000) }
        }
        #expect(peer.machine.endReason == nil && peer.failure == nil)
        let outbound = options.outboundLimit.byteCount
        // One part waits for each handler, because a handler waits until its part is accepted.
        let waiting = options.maximumRunningCount * (1_000 + SessionSize.frameOverhead)
        #expect(peer.machine.keptByteCount <= inboundLimit(options) + outbound + outbound / 2 + waiting)
    }

    // MARK: Floods

    // If the work for a frame grew with the earlier frames, these tests would take minutes instead of a second.
    static let floodCount = 200_000

    /// An open end with method 1 of the peer, and some sent pushes and calls of this side.
    private func busy(_ role: SessionRole) -> MachineHostilePeer {
        let peer = MachineHostilePeer.opened(role)
        peer.feed([Frame.method(1, "a.B/C"), Frame.request(1, hasParts: true)])
        for index in 0..<300 {
            _ = peer.push("m/\(index)", size: 10, isObserved: true)
            peer.request("m/\(index)", timeout: .seconds(60))
        }
        _ = peer.offered()
        peer.keepsEvents = false
        return peer
    }

    @Test(arguments: roles) func floodsOfFramesThatSayNothing(_ role: SessionRole) {
        let frames = [
            Frame.of(.acknowledgement), Frame.acknowledgement(3, [1, 1]), Frame.credit(1, 5, 1), Frame.credit(2, 5, 1),
            Frame.credit(3, 1, 1), Frame.of(.blank), Frame.bytes(20, [1]), Frame.bytes(40, [1]), Frame.bytes(99, [1]),
            Frame.ending(.cancel, 77), Frame.ending(.requestEnd, 77), Frame.part(.requestPart, 77),
            Frame.part(.responsePart, 1 << 30), Frame.response(.response, 1 << 30), Frame.of(.ping),
            Frame.part(.unplacedResponsePart, 1 << 30), Frame.goodbye(2),
        ]
        let peer = busy(role)
        for _ in 0..<Self.floodCount / frames.count { peer.feed(frames) }
        #expect(peer.machine.endReason == nil && peer.failure == nil)
    }

    /// Each grant is a little higher than the one before.
    @Test(arguments: roles) func floodsOfCredit(_ role: SessionRole) {
        let peer = busy(role)
        for sum in 0..<UInt64(Self.floodCount) {
            peer.feed(Frame.credit(1 + UInt32(sum % 3), 1 + sum % 300, 300_000 + sum))
        }
        #expect(peer.machine.endReason == nil && peer.failure == nil)
    }

    @Test(arguments: roles) func floodsOfMessages(_ role: SessionRole) {
        let peer = busy(role)
        let frames = [Frame.push(), Frame.part(.requestPart), Frame.push(kind: .unplacedPush), Frame.push()]
        for round in 0..<Self.floodCount / frames.count {
            peer.feed(frames)
            // One message in many is never finished.
            if round % 1_000 == 0 { peer.receipts.removeFirst() }
            peer.finishAll()
            if round % 100 == 0 { _ = peer.offered() }
        }
        #expect(peer.machine.endReason == nil && peer.failure == nil)
    }

    /// Every other message is never finished, which makes as many ranges as possible.
    @Test(arguments: roles) func floodsOfRanges(_ role: SessionRole) {
        let peer = busy(role)
        for round in 0..<30_000 {
            peer.feed([Frame.of(.blank), Frame.push()])
            // Each method has credit for a few messages.
            if peer.receipts.count > 1_000 { peer.finish(0) }
            if round % 100 == 0 { _ = peer.acknowledgement() }
        }
        #expect(peer.machine.endReason == nil && peer.failure == nil)
    }

    @Test(arguments: roles) func floodsOfRequests(_ role: SessionRole) {
        let peer = busy(role)
        for serial in 2..<UInt64(Self.floodCount / 8) {
            peer.feed([Frame.request(serial, hasParts: true), Frame.part(.requestPart, serial)])
            peer.feed([Frame.ending(.requestEnd, serial), Frame.ending(.cancel, serial)])
            peer.finishAll()
            if let request = peer.running.last, peer.running.count > 1 { peer.respond(to: request) }
        }
        #expect(peer.machine.endReason == nil && peer.failure == nil)
    }

    /// The peer acknowledges single places, from the last one down.
    @Test(arguments: roles) func floodsOfAcknowledgements(_ role: SessionRole) {
        let peer = MachineHostilePeer.opened(role)
        let count: UInt64 = 25_000
        for _ in 1..<count { _ = peer.push("a.B/C", size: 0) }
        _ = peer.offered()
        while peer.ordinaryPlaces < count {
            peer.feed(Frame.credit(1, 1, .max))
            if peer.offered().isEmpty { break }
        }
        let last = peer.ordinaryPlaces
        for place in (2...last).reversed() { peer.feed(Frame.acknowledgement(0, [place - 1, 1])) }
        #expect(peer.machine.keptSize.frameCount <= 1)
        peer.feed(Frame.acknowledgement(last))
        #expect(peer.machine.keptSize == SessionSize() && peer.machine.endReason == nil)
    }

    /// The peer reconnects again and again, so that everything is sent again.
    @Test(arguments: roles) func floodsOfOpenings(_ role: SessionRole) {
        let peer = busy(role)
        for _ in 0..<80 {
            peer.cut()
            peer.open(isResumed: true)
            _ = peer.offered()
        }
        #expect(peer.machine.endReason == nil && peer.failure == nil)
    }
}

/// A random run of a misbehaving peer against a machine whose user does anything.
private struct HostileRun {
    let peer: MachineHostilePeer
    private var random: SplitMix64
    private var methodCount: UInt64 = 0
    private var isConnected = true
    private let mutates: Bool

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        var options = SessionOptions()
        options.inboundCredit = 64 << 10
        var terms = HostileFrame.terms
        if Int.random(in: 0..<3, using: &random) == 0 {
            options.outboundLimit = SessionWindow(frameCount: 16, byteCount: 32 << 10)
            options.inboundWindow = SessionWindow(frameCount: 16, byteCount: 32 << 10)
            options.maximumRunningCount = 3
            terms.window = SessionWindow(frameCount: 8, byteCount: 8 << 10)
            terms.maximumRequestCount = 3
            terms.credit = 64 << 10
        }
        mutates = Int.random(in: 0..<2, using: &random) == 0
        peer = .opened(seed % 2 == 0 ? .client : .server, options, terms: terms)
    }

    mutating func play() {
        var afterEnd = 0
        for _ in 0..<80 where afterEnd < 8 && peer.failure == nil {
            if peer.isOver { afterEnd += 1 }
            switch below(12) {
            case 0..<6: peer.feed(frame())
            case 6..<9: act()
            case 9: _ = peer.offered()
            case 10: peer.pass(.milliseconds(below(40)))
            default: reconnect()
            }
        }
        // The session ends in every case.
        peer.close(by: peer.now + .milliseconds(5))
        peer.pass(.milliseconds(5))
        if peer.machine.endReason == nil { Issue.record("a session has not ended at its deadline") }
        for request in peer.running { peer.respond(to: request) }
        peer.finishAll()
        _ = peer.offered()
    }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    private mutating func serial() -> UInt64 { UInt64(below(6)) + (below(60) == 0 ? 0 : 1) }

    private mutating func size() -> Int { [0, 10, 100, 1_000, 6_000][below(5)] }

    // MARK: Actions of the user

    private mutating func act() {
        switch below(10) {
        case 0, 1:
            let delivery: SessionDelivery =
                switch below(4) {
                case 0: .atMostOnce
                case 1: .expiring(after: .milliseconds(below(50)))
                case 2: .replaceable(key: ["a", "b"][below(2)], timeToLive: below(2) == 0 ? .milliseconds(20) : nil)
                default: .reliable
                }
            let offer = peer.push("m/\(below(4))", size: size(), delivery, isObserved: below(2) == 0)
            if case .waits(let number) = offer, below(4) == 0 { peer.withdraw(number) }
        case 2:
            let timeout: Duration? = below(2) == 0 ? .milliseconds(below(80)) : nil
            peer.request("m/\(below(4))", size: size(), hasParts: below(2) == 0, timeout: timeout)
        case 3:
            guard let call = peer.calls.randomElement(using: &random) else { return }
            peer.sendPart(of: call, size: size(), below(3) == 0 ? .replaceable(key: "k") : .reliable)
        case 4:
            guard let call = peer.calls.randomElement(using: &random) else { return }
            if below(2) == 0 { peer.endParts(of: call) } else { peer.cancel(call) }
        case 5:
            guard let request = peer.running.randomElement(using: &random) else { return }
            let delivery: SessionDelivery =
                switch below(6) {
                case 0: .atMostOnce
                case 1: .replaceable(key: "k")
                case 2: .expiring(after: .milliseconds(5))
                default: .reliable
                }
            peer.sendPart(ofResponseTo: request, size: size(), delivery)
        case 6:
            guard let request = peer.running.randomElement(using: &random) else { return }
            peer.respond(to: request, size: size())
        case 7, 8:
            if !peer.receipts.isEmpty { peer.finish(below(peer.receipts.count)) }
        default:
            if below(40) == 0 { peer.close(by: below(2) == 0 ? peer.now + .seconds(1) : nil) }
        }
    }

    private mutating func reconnect() {
        if isConnected {
            if below(4) == 0 { peer.cut() }
            isConnected = false
            return
        }
        isConnected = true
        // A server's machine has only one session.
        let isResumed = peer.role == .server || below(5) != 0
        if !isResumed { methodCount = 0 }
        let (ordinary, urgent) = (peer.ordinaryPlaces, peer.urgentPlaces)
        // The peer claims to have received some or all of the offered frames; seldom more.
        let progress = OpeningProgress(
            processed: UInt64.random(in: 0...ordinary, using: &random),
            received: ordinary + (below(30) == 0 ? 1 : 0),
            urgent: urgent
        )
        peer.open(isResumed: isResumed, progress: progress)
    }

    // MARK: Frames of the peer

    private mutating func frame() -> [UInt8] {
        var frame = below(4) == 0 || methodCount == 0 ? rareFrame() : usualFrame()
        guard mutates, below(12) == 0 else { return frame }
        for _ in 0...below(3) {
            switch below(4) {
            case 0: if !frame.isEmpty { frame[below(frame.count)] = UInt8(below(256)) }
            case 1: if !frame.isEmpty { frame[below(frame.count)] ^= 1 << below(8) }
            case 2: frame.removeLast(below(frame.count + 1))
            default: frame.insert(UInt8(below(256)), at: below(frame.count + 1))
            }
        }
        return frame
    }

    private mutating func usualFrame() -> [UInt8] {
        let method = 1 + UInt64(below(Int(methodCount)))
        switch below(12) {
        case 0: return HostileFrame.push(method, size: size())
        case 1: return HostileFrame.push(method, size: size(), kind: .unplacedPush)
        case 2, 3:
            let serial = serial()
            // A serial in use is seldom used again.
            guard below(40) == 0 || !peer.running.contains(where: { $0.serial == UInt32(serial) }) else {
                return HostileFrame.ending(.cancel, serial)
            }
            let hasParts = below(2) == 0
            let timeout = below(3) == 0 ? HostileFrame.number(1, UInt64(below(100))) : []
            let size = hasParts ? 0 : size()
            return HostileFrame.request(serial, method: method, hasParts: hasParts, size: size, timeout)
        case 4: return HostileFrame.part(below(2) == 0 ? .requestPart : .unplacedRequestPart, serial(), size: size())
        case 5: return HostileFrame.ending(below(2) == 0 ? .requestEnd : .cancel, serial())
        case 6: return HostileFrame.part(below(2) == 0 ? .responsePart : .unplacedResponsePart, own(), size: size())
        case 7:
            let status = HostileFrame.number(2, UInt64(below(17)))
            return HostileFrame.response(below(2) == 0 ? .response : .urgentResponse, own(), status)
        case 8, 9:
            let ordinary = UInt64.random(in: 0...peer.ordinaryPlaces, using: &random)
            let urgent = UInt64.random(in: 0...peer.urgentPlaces, using: &random)
            let left = peer.ordinaryPlaces - ordinary
            let ranges: [UInt64] = left > 1 ? [1, UInt64.random(in: 1..<left, using: &random)] : []
            return HostileFrame.acknowledgement(ordinary, urgent: urgent, ranges)
        case 10:
            let sum = UInt64(below(10) == 0 ? .max : below(1 << 18))
            return HostileFrame.credit(UInt32(1 + below(3)), 1 + UInt64(below(6)), sum)
        default: return HostileFrame.of(.blank)
        }
    }

    /// The serial of one of the machine's requests, or any.
    private mutating func own() -> UInt64 {
        peer.calls.randomElement(using: &random).map { UInt64(MachineHostilePeer.serial(of: $0)) } ?? serial()
    }

    private mutating func rareFrame() -> [UInt8] {
        switch below(16) {
        case 0..<8:
            // A new session has no numbers yet, so the machine's count is used.
            methodCount = UInt64(peer.machine.peerMethods.count) + 1
            return HostileFrame.method(methodCount, "p/\(methodCount)")
        case 8: return below(8) == 0 ? HostileFrame.goodbye(UInt64(below(9)), pause: UInt64(below(100))) : []
        case 9: return HostileFrame.bytes(UInt32(16 + below(16)), [1])
        case 10: return HostileFrame.bytes(UInt32(34 + below(14)), [1])
        case 11: return HostileFrame.bytes(UInt32(51 + below(1_000)), [1])
        case 12: return HostileFrame.number(UInt32(1 + below(50)), 5)
        case 13:
            guard below(20) == 0 else { return [] }
            return HostileFrame.of(below(2) == 0 ? .hello : .welcome)
        case 14:
            guard below(10) == 0 else { return [] }
            return (0..<below(40)).map { _ in UInt8(below(256)) }
        default: return HostileFrame.of(below(2) == 0 ? .ping : .pong)
        }
    }
}
