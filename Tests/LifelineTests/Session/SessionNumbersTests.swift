import LifelineCore
import LifelineTestSupport
import LifelineWellKnownTypes
import TestProtos
import Testing

@testable import Lifeline

/// Every number of every frame at the limits of its field: a server answers or refuses, and continues.
@Suite(.timeLimit(.minutes(1))) struct SessionNumbersTests {
    private typealias Frame = Lifeline_Session_V1_Frame

    private static let numbers: [UInt64] = [
        0, 1, 0x7FFF_FFFF, 0xFFFF_FFFF, 0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, .max - 255, .max - 1, .max,
    ]

    /// Each frame with the frames that have to precede it.
    private static func frames(_ number: UInt64) -> [[Frame]] {
        let short = UInt32(truncatingIfNeeded: number)
        let (echo, push, collect) = (
            Frame.method(1, "t.T/Echo"), Frame.method(1, "t.T/Push"), Frame.method(1, "t.T/Collect")
        )
        let request = Frame.with { ($0.request.serial, $0.request.method) = (1, 1) }
        let stream = Frame.with {
            ($0.request.serial, $0.request.method, $0.request.partsFollow) = (1, 1, true)
        }
        return [
            [.method(short, "t.T/Push")],
            [push, .with { $0.push.method = short }],
            [push, .with { $0.unplacedPush.method = short }],
            [echo, .with { ($0.request.serial, $0.request.method) = (1, short) }],
            [
                echo,
                .with {
                    ($0.request.serial, $0.request.method) = (short, 1)
                    $0.request.timeoutMilliseconds = number
                },
            ],
            [collect, stream, .part(of: short), .end(of: short)],
            [collect, stream, .with { $0.unplacedRequestPart.serial = short }],
            [echo, request, .with { $0.cancel.serial = short }],
            [.with { $0.responsePart.serial = short }],
            [.with { $0.unplacedResponsePart.serial = short }],
            [.with { ($0.response.serial, $0.response.status) = (short, short) }],
            [.with { ($0.urgentResponse.serial, $0.urgentResponse.status) = (short, short) }],
            [.with { $0.acknowledgement.ordinary = number }],
            [.with { $0.acknowledgement.urgent = number }],
            [.with { $0.acknowledgement.ranges = [number, number] }],
            [.with { ($0.acknowledgement.ordinary, $0.acknowledgement.ranges) = (number, [1, number]) }],
            [push, .with { ($0.credit.method, $0.credit.bytes) = (short, number) }],
            [.with { ($0.credit.request, $0.credit.bytes) = (short, number) }],
            [echo, request, .with { ($0.credit.response, $0.credit.bytes) = (short, number) }],
            [.with { $0.ping.number = number }],
            [.with { $0.pong.number = number }],
            [.with { ($0.goodbye.code, $0.goodbye.pauseMilliseconds) = (.draining, number) }],
            [.with { $0.goodbye.code = .UNRECOGNIZED(Int(Int32(truncatingIfNeeded: number))) }],
        ]
    }

    private static func hellos(_ number: UInt64) -> [(inout Lifeline_Session_V1_Hello) -> Void] {
        let short = UInt32(truncatingIfNeeded: number)
        return [
            { $0.attempt = number }, { $0.progress.processed = number }, { $0.progress.received = number },
            { $0.progress.urgent = number },
            { ($0.terms.windowFrames, $0.terms.windowBytes) = (short, number) }, { $0.terms.credit = number },
            { $0.terms.maximumRequests = short }, { $0.terms.maximumFrame = short },
            { ($0.minimumVersion, $0.maximumVersion) = (short, short) }, { $0.maximumVersion = short },
        ]
    }

    @Test(arguments: numbers) func theServerGoesOn(number: UInt64) async throws {
        let echo = SessionMethod.unary("t.T/Echo") { (message: TestMessage, _) in message }
        let push = SessionMethod.push("t.T/Push") { (_: TestMessage, _) in }
        let collect = SessionMethod.clientStream("t.T/Collect") {
            (messages: SessionMessages<TestMessage>, _) -> TestMessage in
            for try await _ in messages {}
            return TestMessage()
        }
        try await withServer(echo, push, collect) { server, _ in
            for frames in Self.frames(number) {
                let client = try await RawSessionClient.connect(to: server)
                _ = try await client.hello()
                for frame in frames { try? await client.send(frame) }
                try? client.socket.finish()
                _ = try? await client.socket.read()
            }
            for hello in Self.hellos(number) {
                let client = try await RawSessionClient.connect(to: server)
                _ = try await client.hello(hello)
                try client.socket.finish()
                _ = try await client.socket.read()
            }
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await client.ask("t.T/Echo")
            #expect(try await client.next().urgentResponse.serial == 1)
        }
    }

    /// The numbers in a server's frames.
    @Test(arguments: numbers) func theClientGoesOn(number: UInt64) throws {
        let short = UInt32(truncatingIfNeeded: number)
        let welcome = Frame.with {
            $0.welcome.version = 1
            ($0.welcome.sessionID, $0.welcome.token) = (
                [UInt8](repeating: 1, count: 16), [UInt8](repeating: 2, count: 16)
            )
            ($0.welcome.terms.windowFrames, $0.welcome.terms.windowBytes) = (
                max(short, 1), max(number, UInt64(SessionWindow.smallestByteCount))
            )
            $0.welcome.terms.credit = max(number, UInt64(SessionTerms.smallestCredit))
            ($0.welcome.terms.maximumRequests, $0.welcome.terms.maximumFrame) = (short, max(short, 4_096))
            $0.welcome.keptMilliseconds = number
        }
        let resumed = Frame.with {
            $0.welcome = welcome.welcome
            $0.welcome.resumed = true
            ($0.welcome.progress.processed, $0.welcome.progress.received) = (number, number)
            $0.welcome.progress.urgent = number
        }
        let version = Frame.with {
            $0.welcome = welcome.welcome
            $0.welcome.version = short
        }
        // At the earliest and the latest time.
        for now in [MonotonicTime(nanoseconds: .min), MonotonicTime(nanoseconds: .max - 1)] {
            for frames in Self.frames(number) + [[resumed], [version]] {
                var machine = SessionMachine(role: .client, options: SessionOptions())
                var actions: [SessionMachine.Action] = []
                func receive(_ frame: Frame, over id: UInt64) throws {
                    try frame.serializedBytes().withUnsafeBytes {
                        _ = machine.receive($0, over: id, now: now, into: &actions)
                    }
                }
                func offer() {
                    while machine.offer(hasRoom: true, atMost: 1 << 20, now: now, into: &actions, to: { _ in }) {}
                    machine.offered(hasRoom: true, now: now, into: &actions)
                }
                machine.connected(over: 1, now: now, into: &actions)
                offer()
                try receive(welcome, over: 1)
                [UInt8](repeating: 1, count: 8).withUnsafeBytes { payload in
                    let content = SessionMachine.Content(payload: payload)
                    _ = machine.push("t.T/Push", content, now: now, into: &actions)
                    _ = try? machine.request("t.T/Echo", content, deadline: now, now: now)
                }
                offer()
                // An opening is received over the next connection.
                if frames.first?.welcome.version != 0 {
                    machine.disconnected(1, now: now, into: &actions)
                    machine.connected(over: 2, now: now, into: &actions)
                    offer()
                }
                for frame in frames { try receive(frame, over: machine.connectionID) }
                machine.timerFired(now: now, into: &actions)
                offer()
                #expect(actions.contains { if case .opened = $0 { true } else { false } })
            }
        }
    }
}
