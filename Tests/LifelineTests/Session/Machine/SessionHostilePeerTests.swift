import Lifeline
import LifelineTestSupport
import Testing

/// Peers that send anything: nothing traps, memory stays within its limits, and everybody is told.
@Suite(.timeLimit(.minutes(2))) struct SessionHostilePeerTests {
    private struct Fuzz {
        var random: SplitMix64
        var machine: TestMachine
        let role: TestMachine.Role
        var options = SessionOptions.small
        var receipts: [TestMachine.Receipt] = []
        var running: [IncomingRequest] = []
        var waiters: Set<Int> = []
        var pushers: Set<UInt64> = []
        var observed: Set<UInt64> = []
        var requests: [TestMachine.RequestID] = []
        var number = 0
        /// The next places of the peer, and the last ones of this side.
        var places: [UInt64] = [1, 1]
        var sent: [UInt64] = [0, 0]
        var isEnded = false
        var violations: Set<String> = []
        var now = MonotonicTime.ms(0)
        /// Some peers have forgotten the other lane's acknowledgements, or leave them out.
        let acknowledgesUrgent: Bool

        init(seed: UInt64, role: TestMachine.Role) {
            random = SplitMix64(seed: seed)
            self.role = role
            acknowledgesUrgent = seed % 4 != 0
            machine = TestMachine(role: role, options: options)
        }

        mutating func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

        /// Mostly what is right, now and then what is next to it, or far away.
        mutating func number(near right: UInt64) -> UInt64 {
            switch below(40) {
            case 0: right &+ 1
            case 1: right &- 1
            case 2: 0
            case 3: below(4) == 0 ? UInt64.max - UInt64(below(2)) : right
            default: right
            }
        }

        mutating func acknowledgement() -> SessionAcknowledgement {
            // Some peers acknowledge nothing.
            if below(3) > 0 { return SessionAcknowledgement() }
            return SessionAcknowledgement(
                ordinary: number(near: sent[0]),
                urgent: acknowledgesUrgent ? number(near: sent[1]) : 0
            )
        }

        mutating func content() -> TestContent {
            number += 1
            return TestContent(number: number, byteCount: below(60))
        }

        mutating func message() -> MachineMessage {
            switch below(6) {
            case 0: .request(serial: UInt32(below(4)), deadline: below(2) == 0 ? now : nil, content())
            case 1: .response(serial: UInt32(below(8)), endsPushes: false, content())
            case 2: .push(serial: UInt32(below(2) * below(8)), content())
            case 3: .cancel(serial: UInt32(below(4)))
            case 4: .push(serial: 0, content())
            default: .blank
            }
        }

        mutating func hello() -> SessionHello {
            let window = SessionWindow(frameCount: below(3) == 0 ? .max : below(9), byteCount: below(200))
            return .test(
                .test(1),
                progress: SessionProgress(processed: acknowledgement(), received: number(near: sent[0])),
                window: window,
                frameLimit: below(4) == 0 ? below(100) : 1000
            )
        }

        mutating func frame() -> TestFrame {
            switch below(60) {
            case 0: return .hello(hello())
            case 1..<4:
                let (session, hello) = (SessionCredentials.test(UInt64(below(2))), hello())
                return .welcome(
                    .test(
                        session,
                        isResumed: below(2) == 0,
                        progress: hello.progress,
                        window: hello.window,
                        frameLimit: hello.maximumFrameLength
                    )
                )
            case 4: return .goodbye(SessionGoodbye(SessionGoodbye.Code(rawValue: UInt32(below(9)))))
            default:
                let message = message()
                let isUrgent = below(20) == 0 ? below(2) == 0 : isUrgent(message)
                let lane = isUrgent ? 1 : 0
                let place = number(near: places[lane])
                if place == places[lane] { places[lane] += 1 }
                let isPlaced = place != 0 && below(30) > 0
                return .message(
                    isPlaced ? SessionPlace(isUrgent ? .urgent : .ordinary, place) : nil,
                    acknowledgement(),
                    message
                )
            }
        }

        func isUrgent(_ message: MachineMessage) -> Bool {
            switch message.kind {
            case .response, .cancel: true
            case .request, .push, .blank: false
            }
        }

        mutating func step() throws {
            switch below(20) {
            case 0 where role == .client:
                places = [1, 1]
                sent = [0, 0]
                run(machine.connected(now: now))
            case 0:
                let isResumed = below(2) == 0
                var hello = hello()
                if below(20) == 0 { hello.minimumVersion = UInt32(below(4)) }
                if !isResumed { places = [1, 1] }
                run(machine.opened(by: hello, .test(1), isResumed: isResumed, now: now))
            case 1: run(machine.disconnected(now: now))
            case 2:
                let delivery: SessionDelivery =
                    below(2) == 0 ? .atMostOnce : .replaceable(key: "a", timeToLive: .seconds(1))
                if pushers.count < 4 { push(below(2) == 0 ? .reliable : delivery) }
            case 3:
                if let id = try? machine.request(content(), number, deadline: now + .milliseconds(50), now: now) {
                    waiters.insert(number)
                    requests.append(id)
                }
            case 4:
                guard !requests.isEmpty else { break }
                let (waiter, actions) = machine.cancelRequest(requests.remove(at: below(requests.count)), now: now)
                if let waiter { demand(waiters.remove(waiter) != nil) }
                run(actions)
            case 5:
                guard !running.isEmpty else { break }
                let request = running.remove(at: below(running.count))
                push(.atMostOnce, of: request)
                run(machine.respond(to: request, content(), now: now).1)
            case 6: if !receipts.isEmpty { machine.finish(receipts.remove(at: below(receipts.count)), now: now) }
            case 7:
                now = now + .milliseconds(below(30))
                run(machine.timerFired(now: now))
                // It does not ring again and again while nothing is written.
                demand(machine.nextDeadline.map { $0 > now } ?? true)
            default: run(machine.received(frame(), now: now))
            }
            while let (frame, actions) = machine.nextFrame(now: now) {
                if case .message(let place?, _, _) = frame { sent[place.lane == .ordinary ? 0 : 1] = place.sequence }
                run(actions)
            }
            for action in machine.offeredFrames(hasRoom: below(3) > 0, now: now) {
                if case .closeConnection = action { continue }
                demand(false)
            }
            try check()
        }

        mutating func push(_ delivery: SessionDelivery, of request: IncomingRequest? = nil) {
            let (offer, actions) = machine.push(content(), of: request, delivery, isObserved: true, now: now)
            if case .accepted(let number, let isAdmitted) = offer {
                observed.insert(number)
                if !isAdmitted { pushers.insert(number) }
            }
            run(actions)
        }

        mutating func run(_ actions: [TestMachine.Action]) {
            demand(!isEnded || actions.isEmpty)
            for action in actions {
                switch action {
                case .opened, .sessionLost, .peerLeaving, .accused, .notWelcomed: break
                case .sayGoodbye, .closeConnection: break
                case .cancelRequest: break
                case .messageEnded(let number, _):
                    demand(observed.remove(number) != nil)
                    pushers.remove(number)
                case .admitted(let numbers): for number in numbers { demand(pushers.remove(number) != nil) }
                case .complete(let waiter, _), .fail(let waiter, _): demand(waiters.remove(waiter) != nil)
                case .deliverPush(_, _, let receipt): receipts.append(receipt)
                case .beginRequest(let request, _, _): running.append(request)
                case .refuseRequest(let request, _, _):
                    run(machine.respond(to: request, TestContent(number: 0, byteCount: 5), now: now).1)
                case .violated(let violation): violations.insert("\("\(violation)".prefix { $0 != "(" })")
                case .ended: isEnded = true
                }
            }
        }

        func check() throws {
            let outbound = machine.outbound
            for lane in SessionLane.allCases {
                try require(outbound.unprocessedSize(lane).frameCount <= options.outboundLimit.frameCount)
            }
            // Three in four are for the ordinary lane. Those who push and ask wait with one each; what a peer leaves to
            // be cancelled is as much as is kept.
            let (limit, room) = (options.outboundLimit, 4 + options.maximumRequestCount)
            try require(outbound.admittedSize(.ordinary).frameCount <= limit.frameCount * 3 / 4 + room)
            try require(outbound.admittedSize(.urgent).frameCount <= limit.frameCount * 5 / 4 + room)
            try require(outbound.keptSize.frameCount < 150 && outbound.keptSize.byteCount < 60 * 150)
            // What came in one session and before.
            try require(running.count <= options.maximumRunningCount)
        }

        func checkMemory() throws {
            try require(keptPlaceCount(in: machine.outbound) <= 2 * machine.outbound.keptSize.frameCount + 40)
            try require(keptPlaceCount(in: machine.inbound) <= 3 * options.inboundWindow.frameCount + 40)
        }

        mutating func end() {
            run(machine.end(.abandoned, now: now))
            demand(waiters.isEmpty && pushers.isEmpty && observed.isEmpty)
        }
    }

    @Test(arguments: [TestMachine.Role.client, .server]) func nothingTrapsOrGrows(role: TestMachine.Role) throws {
        var violations: Set<String> = []
        for seed in UInt64(1)...1000 {
            var fuzz = Fuzz(seed: seed, role: role)
            for step in 0..<300 where !fuzz.isEnded {
                try fuzz.step()
                // Seldom, as it takes long.
                if step % 30 == 0 { try fuzz.checkMemory() }
            }
            fuzz.end()
            violations.formUnion(fuzz.violations)
        }
        var expected: Set = [
            "unknownAcknowledgement", "gap", "windowExceeded", "unexpectedFrame", "serialInUse", "noSerial",
            "wrongPlace",
            "openedTwice",
        ]
        expected.formUnion(role == .client ? ["notOpened", "otherSession"] : ["version", "acknowledgementWentBack"])
        #expect(violations.isSuperset(of: expected), "\(expected.subtracting(violations))")
    }
}
