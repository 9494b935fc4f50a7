import LifelineCore
import Testing

@testable import Lifeline

/// A connection that is gone refuses offered frames: they count as not sent.
@Suite struct MachineRefusalTests {
    private let now = MonotonicTime.ms(0)

    private func push(_ machine: inout SessionMachine, _ byte: UInt8) {
        var actions: [SessionMachine.Action] = []
        [byte].withUnsafeBytes {
            _ = machine.push("m", SessionMachine.Content(payload: $0), now: now, into: &actions)
        }
    }

    /// An open client that has sent a push without an acknowledgement.
    private func client() -> SessionMachine {
        var machine = SessionMachine(role: .client, options: SessionOptions())
        var actions: [SessionMachine.Action] = []
        machine.connected(over: 1, now: now, into: &actions)
        welcome(&machine, 1)
        push(&machine, 1)
        #expect(offer(&machine) > 0)
        machine.offered(hasRoom: true, now: now, into: &actions)
        return machine
    }

    @discardableResult
    private func welcome(_ machine: inout SessionMachine, _ number: UInt64) -> [SessionMachine.Action] {
        var bytes: [UInt8] = []
        let terms = SessionTerms(
            window: SessionWindow(frameCount: 100, byteCount: 100_000),
            credit: 100_000,
            maximumRequestCount: 10,
            maximumFrameLength: 10_000
        )
        let credentials = SessionCredentials(id: SessionID(number, 1), token: SessionToken(number, 2))
        ServerOpening(version: 1, credentials: credentials, isResumed: false, terms: terms).write(to: &bytes)
        var actions: [SessionMachine.Action] = []
        _ = offer(&machine)
        let arrival = bytes.dropFirst(1).withUnsafeBytes {
            machine.receive($0, over: number, now: now, into: &actions)
        }
        #expect(arrival == nil)
        return actions
    }

    private func offer(_ machine: inout SessionMachine) -> Int {
        var (count, actions) = (0, [SessionMachine.Action]())
        while machine.offer(hasRoom: true, atMost: 10_000, now: now, into: &actions, to: { count += $0.count }) {}
        return count
    }

    /// Loses the connection and the session. Returns the pushes that are in doubt, and how many bytes go to the next
    /// one.
    private func lose(_ machine: inout SessionMachine) -> (inDoubt: [[UInt8]], carriedByteCount: Int) {
        var actions: [SessionMachine.Action] = []
        machine.disconnected(1, now: now, into: &actions)
        machine.connected(over: 2, now: now, into: &actions)
        actions += welcome(&machine, 2)
        let inDoubt = actions.compactMap { action -> [UInt8]? in
            if case .leftOver(let message, _) = action { message.payload } else { nil }
        }
        return (inDoubt, offer(&machine))
    }

    @Test func refusedMessagesGoToTheNextSession() {
        var machine = client()
        var actions: [SessionMachine.Action] = []
        push(&machine, 2)
        #expect(offer(&machine) > 0)
        machine.sendingFailed(into: &actions)
        let (inDoubt, carriedByteCount) = lose(&machine)
        #expect(inDoubt == [[1]] && carriedByteCount > 0)
    }

    @Test func messagesSentBeforeTheRefusalAreInDoubt() {
        var machine = client()
        var actions: [SessionMachine.Action] = []
        push(&machine, 2)
        #expect(offer(&machine) > 0)
        machine.written()
        push(&machine, 3)
        #expect(offer(&machine) > 0)
        machine.sendingFailed(into: &actions)
        let (inDoubt, carriedByteCount) = lose(&machine)
        #expect(inDoubt == [[1], [2]] && carriedByteCount > 0)
    }

    /// The frame arrives before the driver has reported the connection.
    @Test func aServerThatSpeaksFirstIsNone() {
        for (frame, isRefused) in [(Array("TTP/1.1 400".utf8), true), ([0x22, 0x00], false), ([0x12, 0x00], true)] {
            var machine = SessionMachine(role: .client, options: SessionOptions())
            var actions: [SessionMachine.Action] = []
            let arrival = frame.withUnsafeBytes { machine.receive($0, over: 1, now: now, into: &actions) }
            #expect(actions.isEmpty && arrival == nil)
            machine.connected(over: 1, now: now, into: &actions)
            _ = offer(&machine)
            machine.offered(hasRoom: true, now: now, into: &actions)
            let isViolated = actions.contains { if case .violated(.notOpened) = $0 { true } else { false } }
            #expect(isViolated == isRefused)
        }
    }
}
