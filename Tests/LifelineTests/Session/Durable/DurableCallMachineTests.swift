import LifelineCore
import Testing

@testable import Lifeline

/// Durable calls in the session machine of one side, before there is a connection.
@Suite struct DurableCallMachineTests {
    private final class Asker: Sendable {}

    /// A client's machine in a class, so that the macros of tests can change it.
    private final class Client {
        private var machine: SessionMachine
        private let now = MonotonicTime(nanoseconds: 0)
        private(set) var ended: [String] = []

        init(_ content: SessionStoreContent = SessionStoreContent()) throws {
            machine = SessionMachine(role: .client, options: SessionOptions(), awaitsStore: true)
            machine.opened(try SessionMachine.Durability(.random(), content, byteLimit: .max))
        }

        func call(deadline: Duration? = nil) -> UInt64? {
            let payload: [UInt8] = [1]
            let offer = payload.withUnsafeBytes { payload in
                machine.callDurably(
                    "t.T/Call",
                    SessionMachine.Content(payload: payload),
                    deadline: deadline.map { now + $0 },
                    asker: Asker()
                )
            }
            return if case .waits(let number) = offer { number } else { nil }
        }

        func takeGroup() -> SessionStoreGroup? {
            guard case .commit(let changes) = machine.takeStoreWork(StoreTime(now: now, date: 0)) else { return nil }
            return changes.added
        }

        func committed() { act { machine.committed(now: now, into: &$0) } }

        func commitFailed() { act { machine.commitFailed(now: now, into: &$0) } }

        func cancel(_ number: UInt64) -> Bool {
            var isCancelled = false
            act { isCancelled = machine.cancelDurableCall(number, now: now, into: &$0) }
            return isCancelled
        }

        /// Fires its timer. Returns false if no timer was due by then.
        func timerFired(after time: Duration) -> Bool {
            guard let deadline = machine.nextDeadline, deadline <= now + time else { return false }
            act { machine.timerFired(now: now + time, into: &$0) }
            return true
        }

        /// Puts the machine into the state in which all sessions of the server keep as much as they may.
        func waitForRoom() { machine.durability?.roomDeadline = now + .seconds(1) }

        /// Puts the machine into the state in which its store makes changes.
        func beginCommit() { machine.durability?.removing = [] }

        func close() { act { machine.close(now: now, into: &$0) } }

        func end() { act { machine.end(.abandoned, now: now, into: &$0) } }

        private func act(_ body: (inout [SessionMachine.Action]) -> Void) {
            var actions: [SessionMachine.Action] = []
            body(&actions)
            for action in actions {
                switch action {
                case .durableCallEnded(_, let outcome): ended.append(outcome.map { "\($0)" } ?? "timed out")
                case .ended: ended.append("session")
                default: break
                }
            }
        }
    }

    @Test func aCallThatIsLateBeforeItIsStoredIsNotMade() throws {
        let client = try Client()
        #expect(client.call(deadline: .seconds(1)) != nil)
        #expect(!client.timerFired(after: .milliseconds(999)))
        #expect(client.timerFired(after: .seconds(1)))
        #expect(client.ended == ["timed out"])
        #expect(client.takeGroup() == nil)
    }

    @Test func aCallThatIsLateAfterThatGoesOn() throws {
        let client = try Client()
        #expect(client.call(deadline: .seconds(1)) != nil)
        #expect(client.takeGroup()?.count == 1)
        #expect(client.timerFired(after: .seconds(1)))
        client.committed()
        #expect(client.ended == ["timed out"])
        // The message is under way, so the session does not close.
        client.close()
        #expect(client.ended == ["timed out"])
    }

    @Test func aCancelledCallIsNotMade() throws {
        let client = try Client()
        let number = try #require(client.call())
        #expect(client.cancel(number) && !client.cancel(number))
        #expect(client.takeGroup() == nil && client.ended.isEmpty)
        client.close()
        #expect(client.ended == ["session"])
    }

    @Test func aCallThatIsNotStoredEnds() throws {
        let client = try Client()
        #expect(client.call() != nil)
        #expect(client.takeGroup() != nil)
        client.commitFailed()
        #expect(client.ended == ["notStored"])
    }

    /// One call is stored, one is being stored, and one waits.
    @Test func theEndTellsEachCall() throws {
        let client = try Client()
        #expect(client.call() != nil)
        #expect(client.takeGroup() != nil)
        client.committed()
        #expect(client.call() != nil)
        #expect(client.takeGroup() != nil)
        #expect(client.call() != nil)
        client.end()
        #expect(client.ended == ["unsent", "kept", "session"])
        client.committed()
        #expect(client.ended == ["unsent", "kept", "session", "kept"])
    }

    @Test(arguments: [true, false]) func closingWaitsForTheChangesOfTheStore(areMade: Bool) throws {
        let client = try Client()
        client.beginCommit()
        client.close()
        #expect(client.ended.isEmpty)
        if areMade { client.committed() } else { client.commitFailed() }
        #expect(client.ended == ["session"])
    }

    /// An ended session waits only for its store.
    @Test func anEndedSessionHasNoOtherTimers() throws {
        let client = try Client()
        #expect(client.call(deadline: .seconds(1)) != nil)
        client.waitForRoom()
        client.end()
        #expect(!client.timerFired(after: .seconds(3_600)))
    }

    /// Their numbers are not given to other messages.
    @Test func repliesOfAnEarlierProcessAreStored() throws {
        let sender = SessionStoreID.random()
        let marks = (1...3 as ClosedRange<UInt64>).map { number in
            SessionStoreMark(
                number: number,
                reply: SessionMachine.replyBytes(
                    to: number,
                    of: "t.T/Call",
                    payload: [UInt8](repeating: 0, count: 700_000)
                )
            )
        }
        let client = try Client(SessionStoreContent(marked: [sender: marks]))
        #expect(client.call() == 4)
        // As many calls as fit into one write.
        #expect(client.takeGroup()?.count == 2)
        client.committed()
        #expect(client.takeGroup()?.count == 2)
        #expect(throws: StoreError.self) {
            try Client(SessionStoreContent(marked: [sender: [SessionStoreMark(number: 1, reply: [1])]]))
        }
    }
}
