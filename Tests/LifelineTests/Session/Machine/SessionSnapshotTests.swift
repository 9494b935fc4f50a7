import LifelineCore
import Testing

@testable import Lifeline

/// The snapshot of another server is checked before it is used.
struct SessionSnapshotTests {
    private let terms = SessionSnapshot.empty.peerTerms
    private let now = MonotonicTime(nanoseconds: 1_000_000_000)

    private func snapshot(
        ordinary: LaneSnapshot = LaneSnapshot(next: 1, sentEnd: 1, frames: []),
        urgent: LaneSnapshot = LaneSnapshot(next: 1, sentEnd: 1, frames: []),
        methods: [SessionSnapshot.OwnMethod] = [],
        peerMethods: [SessionSnapshot.PeerMethod] = [],
        waiting: [SessionSnapshot.Push] = [],
        received: UInt64 = 0,
        urgentReceived: UInt64 = 0,
        peerReceived: UInt64 = 0
    ) -> SessionSnapshot {
        SessionSnapshot(
            peerTerms: terms,
            ownTerms: terms,
            ordinary: ordinary,
            urgent: urgent,
            waiting: waiting,
            methods: methods,
            peerMethods: peerMethods,
            received: received,
            urgentReceived: urgentReceived,
            peerReceived: peerReceived
        )
    }

    private func frame(_ place: UInt64, _ role: LaneSnapshot.Role = .plain) -> LaneSnapshot.Frame {
        LaneSnapshot.Frame(place: place, bytes: [0x02, 0x7A, 0x00], role: role)
    }

    @Test func aLaneHasFramesInOrderAndMissesOnlyWhatWasSent() {
        func isSound(_ next: UInt64, _ sentEnd: UInt64, _ places: UInt64...) -> Bool {
            snapshot(ordinary: LaneSnapshot(next: next, sentEnd: sentEnd, frames: places.map { frame($0) })).isSound
        }
        #expect(isSound(1, 1))
        #expect(isSound(9, 9))
        #expect(isSound(4, 2, 1, 2, 3))
        #expect(isSound(9, 9, 3, 5))
        #expect(!isSound(0, 0))
        #expect(!isSound(4, 5, 1, 2, 3), "more was sent than there is")
        #expect(!isSound(4, 4, 2, 1, 3))
        #expect(!isSound(4, 4, 2, 2))
        #expect(!isSound(4, 4, 4))
        #expect(!isSound(4, 4, 0, 1))
        #expect(!isSound(9, 3, 1, 5), "what was not sent was not acknowledged")
        #expect(!isSound(9, 3, 1, 2))
        #expect(!isSound(.max, .max))
        #expect(!isSound(1 << 40, 1 << 40, 1), "so many places are missing")
    }

    @Test func framesAreWholeAndOfMethodsThatWereNamed() {
        let method = SessionSnapshot.OwnMethod(name: "a", granted: 1, used: 0)
        func isSound(_ bytes: [UInt8]) -> Bool {
            let frame = LaneSnapshot.Frame(place: 1, bytes: bytes, role: .plain)
            return snapshot(ordinary: LaneSnapshot(next: 2, sentEnd: 2, frames: [frame]), methods: [method]).isSound
        }
        #expect(isSound([0x04, 0x42, 0x02, 0x08, 0x01]), "a push of method 1")
        #expect(!isSound([0x04, 0x42, 0x02, 0x08, 0x02]), "and of method 2, which has no name")
        #expect(!isSound([0x05, 0x42, 0x02, 0x08, 0x01]))
        #expect(!isSound([0x03, 0x42, 0x02, 0x08, 0x01]))
        #expect(!isSound([]))
    }

    @Test func methodsHaveDifferentNames() {
        let own = SessionSnapshot.OwnMethod(name: "a", granted: 1, used: 0)
        let peers = SessionSnapshot.PeerMethod(name: "a", received: 0, told: 1)
        #expect(snapshot(methods: [own], peerMethods: [peers]).isSound)
        #expect(!snapshot(methods: [own, own]).isSound)
        #expect(!snapshot(peerMethods: [peers, peers]).isSound)
        #expect(!snapshot(received: .max).isSound)
        #expect(!snapshot(urgentReceived: .max).isSound)
        #expect(!snapshot(peerReceived: 1).isSound, "nothing was sent")
    }

    /// A session can continue from any sound snapshot, also with a hostile peer.
    @Test func nothingThatIsSoundTraps() {
        var random = SplitMix64(seed: 7)
        var soundCount = 0
        for _ in 0..<20_000 {
            let snapshot = randomSnapshot(using: &random)
            guard snapshot.isSound else { continue }
            soundCount += 1
            var machine = SessionMachine(snapshot, options: SessionOptions())
            machine.takePromises(of: snapshot, now: now)
            var actions: [SessionMachine.Action] = []
            var hello = ClientOpening.test(.test(1), attempt: 2)
            hello.progress = OpeningProgress(
                processed: number(&random),
                received: number(&random),
                urgent: number(&random)
            )
            _ = machine.opened(by: hello, .test(1), isResumed: true, over: 1, now: now, into: &actions)
            _ = machine.push("m", SessionMachine.Content(payload: nothing), .reliable, now: now, into: &actions)
            while machine.offer(hasRoom: true, atMost: 1 << 20, now: now, into: &actions, to: { _ in }) {}
            machine.timerFired(now: now + .seconds(100), into: &actions)
            machine.end(.abandoned, now: now, into: &actions)
        }
        #expect(soundCount > 500)
    }

    private var nothing: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    private func number(_ random: inout SplitMix64) -> UInt64 {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: .max
        case 1: .max / 2 - 1
        case 2: 0
        default: .random(in: 0...6, using: &random)
        }
    }

    private func randomSnapshot(using random: inout SplitMix64) -> SessionSnapshot {
        func lane(_ random: inout SplitMix64, roles: Bool) -> LaneSnapshot {
            let first = UInt64.random(in: 1...3, using: &random)
            var frames: [LaneSnapshot.Frame] = []
            for place in first..<first + 5 where Bool.random(using: &random) {
                // A push of method 1, or something else.
                let bytes: [UInt8] =
                    Bool.random(using: &random)
                    ? [0x04, 0x42, 0x02, 0x08, 0x01]
                    : [0x03] + (0..<3).map { _ in UInt8.random(in: 0...255, using: &random) }
                let details = LaneSnapshot.Details(
                    key: Bool.random(using: &random) ? "k" : nil,
                    timeLeft: Bool.random(using: &random) ? .nanoseconds(Int64(clamping: number(&random))) : nil
                )
                let all: [LaneSnapshot.Role] = [.plain, .special(details), .method, .blank]
                let role = roles ? all[Int.random(in: 0..<4, using: &random)] : .plain
                frames.append(LaneSnapshot.Frame(place: place, bytes: bytes, role: role))
            }
            let next = Int.random(in: 0..<10, using: &random) == 0 ? number(&random) : first + 5
            return LaneSnapshot(
                next: next,
                sentEnd: Int.random(in: 0..<5, using: &random) == 0 ? number(&random) : next,
                frames: frames
            )
        }
        let details = LaneSnapshot.Details(key: nil, timeLeft: .nanoseconds(Int64(clamping: number(&random))))
        return snapshot(
            ordinary: lane(&random, roles: true),
            urgent: lane(&random, roles: false),
            methods: [SessionSnapshot.OwnMethod(name: "m", granted: number(&random), used: number(&random))],
            peerMethods: [SessionSnapshot.PeerMethod(name: "p", received: number(&random), told: number(&random))],
            waiting: [SessionSnapshot.Push(method: "m", fields: [], payload: [1], details: details)],
            received: number(&random),
            urgentReceived: number(&random),
            peerReceived: number(&random) / 2
        )
    }
}
