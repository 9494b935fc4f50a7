import LifelineCore
import LifelineProtos
import LifelineTestSupport
import Testing

@testable import Lifeline

/// Every number of every frame at the edges of its field: a server answers or refuses, and goes on.
@Suite(.timeLimit(.minutes(1))) struct SessionNumbersTests {
    private typealias Frame = Lifeline_Session_V1_Frame

    private static let numbers: [UInt64] = [
        0, 1, 0x7FFF_FFFF, 0xFFFF_FFFF, 0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, .max - 255, .max - 1, .max,
    ]

    private static func frames(_ number: UInt64) -> [Frame] {
        let short = UInt32(truncatingIfNeeded: number)
        return [
            .with { ($0.sequence, $0.push.method) = (number, "t.T/Push") },
            .with { ($0.sequence, $0.push.method, $0.push.serial) = (1, "t.T/Push", short) },
            .with { ($0.urgentSequence, $0.cancel.serial) = (number, short) },
            .with { $0.acknowledgement = number },
            .with { $0.urgentAcknowledgement = number },
            .with {
                ($0.sequence, $0.request.serial, $0.request.method) = (1, short, "t.T/Echo")
                $0.request.timeoutMilliseconds = number
            },
            .with { ($0.urgentSequence, $0.response.serial, $0.response.status) = (1, short, short) },
            .with { ($0.goodbye.code, $0.goodbye.pauseMilliseconds) = (.draining, number) },
            .with { $0.goodbye.code = .UNRECOGNIZED(Int(Int32(truncatingIfNeeded: number))) },
        ]
    }

    private static func hellos(_ number: UInt64) -> [(inout Lifeline_Session_V1_Hello) -> Void] {
        let short = UInt32(truncatingIfNeeded: number)
        return [
            { $0.attempt = number }, { $0.processed = number }, { $0.urgentProcessed = number },
            { $0.received = number },
            { ($0.window.frames, $0.window.bytes) = (short, number) }, { $0.maximumRequests = short },
            { $0.maximumFrame = short }, { ($0.minimumVersion, $0.maximumVersion) = (short, short) },
            { $0.maximumVersion = short },
        ]
    }

    @Test(arguments: numbers) func theServerGoesOn(number: UInt64) async throws {
        let echo = SessionMethod.unary("t.T/Echo") { (message: TestMessage, _) in message }
        let push = SessionMethod.push("t.T/Push") { (_: TestMessage, _) in }
        try await withServer(echo, push) { server, _ in
            for frame in Self.frames(number) {
                let client = try await RawSessionClient.connect(to: server)
                _ = try await client.hello()
                try await client.send(frame)
                try client.socket.finish()
                _ = try await client.socket.read()
            }
            for hello in Self.hellos(number) {
                let client = try await RawSessionClient.connect(to: server)
                _ = try await client.hello(hello)
                try client.socket.finish()
                _ = try await client.socket.read()
            }
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await client.send(.with { ($0.sequence, $0.request.serial, $0.request.method) = (1, 1, "t.T/Echo") })
            #expect(try await client.next().response.serial == 1)
        }
    }

    /// What a server says to a client, as far as it is numbers.
    @Test(arguments: numbers) func whatComesIsDecoded(number: UInt64) throws {
        let short = UInt32(truncatingIfNeeded: number)
        let now = MonotonicTime(nanoseconds: .max - 1)
        let welcome = Frame.with {
            $0.welcome.version = short
            ($0.welcome.sessionID, $0.welcome.token) = (
                [UInt8](repeating: 1, count: 16), [UInt8](repeating: 2, count: 16)
            )
            ($0.welcome.processed, $0.welcome.urgentProcessed, $0.welcome.received) = (number, number, number)
            ($0.welcome.window.frames, $0.welcome.window.bytes) = (
                max(short, 1), max(number, UInt64(SessionWindow.smallestByteCount))
            )
            ($0.welcome.maximumRequests, $0.welcome.maximumFrame) = (short, short)
            $0.welcome.keptMilliseconds = number
        }
        for frame in Self.frames(number) + [welcome] {
            let decoded = try SessionFrame(frame, byteCount: 100, now: now)
            var bytes: [UInt8] = []
            decoded.append(to: &bytes, SessionOpeningDetails(), now: MonotonicTime(nanoseconds: .min))
        }
    }
}
