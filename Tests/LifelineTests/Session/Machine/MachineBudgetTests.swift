import LifelineCore
import Testing

@testable import Lifeline

/// A session's share of the memory of all sessions of its server.
@Suite struct MachineBudgetTests {
    /// The name of a method may have to be sent before a message.
    private let name = MethodName.maximumByteCount + 64

    private let now = MonotonicTime.ms(0)

    private func lacking(_ end: MachineMatrixEnd, _ frame: [UInt8]) -> SessionNeed? {
        frame.withUnsafeBytes { end.machine.lacking(toReceive: $0) }
    }

    @Test func aSessionLacksWhatItMayComeToKeep() {
        let end = MachineMatrixEnd(.server)
        let (push, request) = (HostileFrame.push(size: 10), HostileFrame.request())
        #expect(lacking(end, request) == nil && end.machine.lacking(toSend: 1 << 30) == nil, "it shares with nobody")
        #expect(!end.holdsExcess)
        end.machine.allowance = .none
        // A request counts twice: as received and as running.
        let cost = 2 * (request.count + 64)
        #expect(lacking(end, request) == SessionNeed(byteCount: cost, handlerCount: 1))
        #expect(lacking(end, push) == SessionNeed(byteCount: 2 * (push.count + 64), handlerCount: 0))
        #expect(end.machine.lacking(toSend: 10) == SessionNeed(byteCount: 74 + name, handlerCount: 0))
        end.machine.allowance = SessionAllowance(byteCount: cost, handlerCount: 1)
        #expect(lacking(end, request) == nil && end.holdsExcess, "it has no connection")
        end.machine.allowance.handlerCount = 0
        #expect(lacking(end, request) == SessionNeed(byteCount: cost, handlerCount: 1))
        end.machine.allowance = SessionAllowance(byteCount: cost - 1, handlerCount: 1)
        #expect(lacking(end, request) == SessionNeed(byteCount: cost, handlerCount: 1))
        end.machine.end(.abandoned, now: now, into: &end.actions)
        #expect(lacking(end, request) == nil && end.machine.lacking(toSend: 10) == nil, "it is over")
    }

    @Test func keptBytesAndRunningRequestsCountToo() {
        let end = MachineMatrixEnd(.server)
        end.beBusy()
        #expect(end.machine.runningCount == 2)
        end.machine.allowance = .none
        let kept = end.machine.keptByteCount
        #expect(end.machine.lacking(toSend: 10) == SessionNeed(byteCount: kept + 74 + name, handlerCount: 2))
        let request = HostileFrame.request(9)
        let need = SessionNeed(byteCount: kept + 2 * (request.count + 64), handlerCount: 3)
        #expect(lacking(end, request) == need)
        // This is enough: the request begins, and the frames beside it are kept.
        end.machine.allowance = SessionAllowance(byteCount: need.byteCount, handlerCount: need.handlerCount)
        end.receive(request, now: now)
        #expect(end.takeLine() == "begin 9" && end.machine.keptByteCount <= need.byteCount)
    }

    /// Every encoding of a request needs a handler, and no other kind of this version does.
    @Test func unusualEncodingsOfARequestNeedAHandler() {
        let end = MachineMatrixEnd(.server)
        end.machine.allowance = .none
        let request = HostileFrame.request(7)
        let body = Array(request.dropFirst(2))
        let length = UInt8(body.count)
        let encodings: [[UInt8]] = [
            request,
            // A tag and a length that are longer than necessary.
            [0xCA, 0x00, length] + body, [0xCA, 0x80, 0x80, 0x00, length] + body, [0x4A, length | 0x80, 0x00] + body,
            // Fields of other wire types in front: a number, 8 bytes, 4 bytes, and an empty group.
            [0x08, 0x01] + request, [0x09, 1, 2, 3, 4, 5, 6, 7, 8] + request, [0x0D, 1, 2, 3, 4] + request,
            [0x0B, 0x0C] + request,
            // The field number of a request, but with the type of a number.
            [0x48, 0x01] + request,
        ]
        for frame in encodings {
            let kind = frame.withUnsafeBytes { try? InboundFrame(parsing: $0).kind }
            #expect(kind == .request && lacking(end, frame)?.handlerCount == 1, "\(frame)")
        }
        for frame in sampleFrames {
            let kind = frame.withUnsafeBytes { try? InboundFrame(parsing: $0).kind }
            #expect(lacking(end, frame)?.handlerCount == (kind == .request ? 1 : 0), "\(String(describing: kind))")
        }
        #expect(lacking(end, []) == SessionNeed(byteCount: 128, handlerCount: 0))
        #expect(lacking(end, [0x08, 0x01])?.handlerCount == 1, "it may go on")
    }

    /// Random frames: the machine handles none as a request that the budget did not count as one.
    @Test func noRequestIsOverlooked() {
        var random = SplitMix64(seed: 9)
        let end = MachineMatrixEnd(.server)
        end.machine.allowance = .none
        var requestCount = 0
        for _ in 0..<200_000 {
            let count = Int.random(in: 0..<8, using: &random)
            let interesting: [UInt8] = [0x4A, 0xCA, 0x00, 0x80, 0x08, 0x0B, 0x0C, 0x01, 0x02]
            let frame = (0..<count).map { _ in interesting.randomElement(using: &random) ?? 0 }
            guard frame.withUnsafeBytes({ try? InboundFrame(parsing: $0).kind }) == .request else { continue }
            requestCount += 1
            #expect(lacking(end, frame)?.handlerCount == 1, "\(frame)")
        }
        #expect(requestCount > 1_000)
    }

    @Test func unneededBytesAreGivenBack() {
        var budget = SessionBudget(limit: SessionAllowance(byteCount: 1 << 20, handlerCount: 100))
        let end = MachineMatrixEnd(.server)
        end.machine.allowance = .none
        func take(_ need: SessionNeed?) {
            if let need { budget.take(need, pause: .zero, for: &end.machine.allowance) }
        }
        func feed(_ frame: [UInt8]) {
            take(lacking(end, frame))
            end.receive(frame, now: now)
            _ = end.takeLine()
        }
        _ = end.machine.opened(by: .test(), .test(1), isResumed: false, over: 1, now: now, into: &end.actions)
        feed(HostileFrame.method(1, "p"))
        // It keeps a slice while it is connected.
        #expect(end.machine.allowance.byteCount == 4_096 && !end.holdsExcess)
        for _ in 0..<10 { feed(HostileFrame.push(size: 20_000)) }
        feed(HostileFrame.request(1))
        #expect(end.machine.keptByteCount > 200_000 && end.machine.allowance.handlerCount == 1 && !end.holdsExcess)
        end.note()
        for receipt in end.receipts { end.machine.finish(receipt, now: now) }
        #expect(end.respond(to: 1, 1, now: now) == "accepted" && end.holdsExcess)
        end.machine.giveBackExcess(to: &budget)
        let kept = end.machine.keptByteCount
        #expect(budget.held == SessionAllowance(byteCount: kept + 4_096, handlerCount: 0) && !end.holdsExcess)
        #expect(end.machine.allowance.byteCount == kept + 4_096)
        // Without a connection it keeps only what it needs, and nothing after its end.
        end.machine.disconnected(1, now: now, into: &end.actions)
        #expect(end.holdsExcess)
        end.machine.giveBackExcess(to: &budget)
        #expect(budget.held.byteCount == kept && !end.holdsExcess)
        end.machine.giveBackAll(to: &budget)
        #expect(budget.held == .none && end.machine.allowance.byteCount == 0)
    }

    @Test func withoutAConnectionNothingIsHeldThatIsNotNeeded() {
        let end = MachineMatrixEnd(.server)
        end.open()
        end.machine.disconnected(1, now: now, into: &end.actions)
        let kept = end.machine.keptByteCount
        end.machine.allowance = SessionAllowance(byteCount: kept, handlerCount: 0)
        #expect(!end.holdsExcess)
        end.machine.allowance = SessionAllowance(byteCount: kept, handlerCount: 1)
        #expect(end.holdsExcess)
        end.machine.allowance = SessionAllowance(byteCount: kept + 1, handlerCount: 0)
        #expect(end.holdsExcess)
    }

    /// A session does not take messages of any kind that do not fit into the memory that it holds.
    @Test func aPeerCannotHaveASessionKeepMoreThanItHolds() {
        for kind in [FrameKind.push, .requestPart, .responsePart] {
            let end = MachineMatrixEnd(.server)
            end.beBusy()
            let held = end.machine.keptByteCount + 1_000
            end.machine.allowance = SessionAllowance(byteCount: held, handlerCount: 10)
            let serial: UInt64 = kind == .requestPart ? 8 : 1
            let frame = kind == .push ? HostileFrame.push(size: 300) : HostileFrame.part(kind, serial, size: 300)
            for _ in 0..<10 { end.receive(frame, now: now) }
            #expect(end.machine.keptByteCount <= held)
            #expect(end.settle(now: now).contains("goodbye draining"), "\(kind)")
        }
    }
}

extension MachineMatrixEnd {
    fileprivate var holdsExcess: Bool { machine.holdsExcess }
}
