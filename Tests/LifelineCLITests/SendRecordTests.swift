import Lifeline
import LifelineCore
import LifelineMessages
import LifelineTestSupport
import Testing

@testable import LifelineCLI

/// The summary of the steps of `lifeline send`, for its last lines and its exit code.
@Suite(.timeLimit(.minutes(1))) struct SendRecordTests {
    private static let reset = ConnectionError(code: .closedByPeer, message: "Reset by the test.")
    /// How the last attempt's connection ends in order.
    private static let lastEnd = TransitionReason(.attemptsUsedUp, error: TransitionReason(.closedByPeer).asError)

    private static let words = StepWords(peer: "the peer", isVerbose: false)

    private func event(
        _ from: ConnectionState,
        _ to: ConnectionState,
        _ reason: TransitionReason,
        accepted: Int? = nil,
        undelivered: Int? = nil,
        missed: Int = 0,
        number: UInt64 = 1
    ) -> ClientEvent {
        let transition = ConnectionTransition(
            number: number,
            time: MonotonicTime(nanoseconds: 0),
            from: from,
            to: to,
            reason: reason
        )
        return ClientEvent(
            transition: transition,
            acceptedMessageCount: accepted,
            undeliveredMessageCount: undelivered,
            missedCount: missed
        )
    }

    /// The record after sending was finished, before the events of `end`.
    private func record(_ events: ClientEvent..., finished: Bool = true, end: ClientEvent...) -> SendRecord {
        var record = SendRecord()
        for event in events { record.record(event) }
        if finished { record.sendingFinished(lastConnection: 0) }
        for event in end { record.record(event) }
        return record
    }

    @Test func aCloseInOrderIsNoLoss() {
        for undelivered in [0, nil] {
            let record = record(end: event(.draining, .closed, TransitionReason(.drained), undelivered: undelivered))
            #expect(record.failure(in: Self.words) == nil && record.summary(sentCount: 3) == nil)
        }
    }

    @Test(
        arguments: [
            (TransitionReason(.drained), 2, "2 did not arrive"),
            (.ended(by: reset), 0, "0 did not arrive"),
            (.ended(by: reset), nil, "an unknown number did not arrive"),
            (TransitionReason(.networkLost), 1, "1 did not arrive"),
        ] as [(TransitionReason, Int?, String)]
    )
    func messagesLostAtTheLastCloseAreReported(reason: TransitionReason, undelivered: Int?, text: String) throws {
        let record = record(end: event(.draining, .closed, reason, undelivered: undelivered))
        #expect(record.failure(in: Self.words)?.status == .inputOutput)
        let summary = try #require(record.summary(sentCount: 3))
        #expect(summary.hasPrefix("sent 3 messages, of which") && summary.contains(text))
        #expect(summary.hasSuffix("; 1 connection was lost"))
    }

    @Test func aConnectionThatIsMadeAgainIsCountedAndForgiven() throws {
        let record = record(
            event(.ready, .backingOff, .ended(by: Self.reset), undelivered: 4),
            event(.connecting, .ready, TransitionReason(.connected)),
            end: event(.draining, .closed, TransitionReason(.drained), undelivered: 0)
        )
        #expect(record.failure(in: Self.words) == nil)
        #expect(record.summary(sentCount: 9)?.contains("of which 4 did not arrive; 1 connection was lost") == true)
    }

    /// A receiver that has enough messages ends, and is gone when the client connects again.
    @Test func givingUpAfterEverythingWasTakenIsNoFailure() {
        for reason in [Self.lastEnd, TransitionReason(.closedByPeer)] {
            let record = record(
                event(.ready, .gaveUp, reason, undelivered: 0),
                end: event(.gaveUp, .closed, TransitionReason(.closedByUser))
            )
            #expect(record.failure(in: Self.words) == nil)
        }
    }

    @Test func givingUpWithMessagesLeftIs69() {
        let record = record(event(.ready, .gaveUp, Self.lastEnd, undelivered: 0), finished: false)
        #expect(record.failure(in: Self.words)?.status == .unavailable)
    }

    @Test(arguments: [1, nil] as [Int?]) func givingUpAfterALossIs74(undelivered: Int?) {
        let reason = undelivered == nil ? TransitionReason(.attemptsUsedUp, error: Self.reset) : Self.lastEnd
        let record = record(end: event(.ready, .gaveUp, reason, undelivered: undelivered))
        #expect(record.failure(in: Self.words)?.status == .inputOutput)
    }

    @Test func aRefusalAfterEverythingWasTakenIs69() {
        let refusal = ConnectionError(code: .tlsRejected, message: "By the test.")
        let record = record(end: event(.draining, .closed, .ended(by: refusal), undelivered: nil))
        #expect(record.failure(in: Self.words)?.status == .unavailable)
    }

    @Test func stepsThatWereMissedLeaveTheNumbersOpen() throws {
        let missed = event(.connecting, .backingOff, .connectFailed(Self.reset), missed: 7)
        let summary = try #require(record(missed).summary(sentCount: 1))
        #expect(summary == "sent 1 message, of which an unknown number did not arrive")
        #expect(record(missed).failure(in: Self.words)?.status == .inputOutput)
        #expect(record(missed, event(.connecting, .ready, TransitionReason(.connected))).failure(in: Self.words) == nil)
        let lost = record(missed, end: event(.ready, .backingOff, .ended(by: Self.reset), undelivered: 1))
        #expect(lost.summary(sentCount: 2)?.hasSuffix("; at least 1 connection was lost") == true)
    }

    /// The receiver may already have enough, which is known only when nothing is left to send.
    @Test func anEndInOrderIsALossOnlyIfMoreIsSentAfterIt() {
        var record = SendRecord()
        record.record(event(.ready, .backingOff, TransitionReason(.closedByPeer), undelivered: 0, number: 3))
        record.record(event(.backingOff, .connecting, TransitionReason(.retryDue), number: 4))
        record.record(event(.connecting, .ready, TransitionReason(.connected), number: 5))
        #expect(record.lossCount == 0 && record.pendingEnd != nil)
        var (notAgain, again, closed, other) = (record, record, record, record)
        notAgain.sendingFinished(lastConnection: 2)
        notAgain.clientClosed()
        #expect(notAgain.summary(sentCount: 1) == nil)
        again.sendingFinished(lastConnection: 5)
        #expect(again.summary(sentCount: 2) == "sent 2 messages, of which 0 did not arrive; 1 connection was lost")
        closed.clientClosed()
        #expect(closed.lossCount == 1)
        // Nothing was sent between the two.
        let end = TransitionReason(.closedByPeer)
        other.record(event(.ready, .backingOff, end, accepted: 0, undelivered: 0, number: 6))
        #expect(other.lossCount == 0 && other.pendingEnd?.transition.number == 6)
        other.record(event(.ready, .backingOff, .ended(by: Self.reset), undelivered: 1, number: 9))
        #expect(other.lossCount == 2 && other.pendingEnd == nil)
        // The connection in between accepted messages.
        var used = record
        used.record(event(.ready, .backingOff, end, accepted: 1, undelivered: 0, number: 6))
        #expect(used.lossCount == 1 && used.pendingEnd?.transition.number == 6)
    }

    @Test func anEndInOrderWhileAMessageWaitsIsALoss() {
        var record = SendRecord()
        let end = event(.ready, .backingOff, TransitionReason(.closedByPeer), undelivered: 0)
        record.record(end, isMessageWaiting: true)
        #expect(record.lossCount == 1)
        record = SendRecord()
        record.record(end)
        record.record(event(.backingOff, .connecting, TransitionReason(.retryDue)), isMessageWaiting: true)
        #expect(record.lossCount == 1)
    }

    /// The step is seen after everything was sent over the next connection.
    @Test func anEndInOrderThatIsSeenLateIsALoss() {
        var record = SendRecord()
        record.sendingFinished(lastConnection: 5)
        record.record(event(.ready, .backingOff, TransitionReason(.closedByPeer), undelivered: 0, number: 3))
        record.record(event(.draining, .closed, TransitionReason(.drained), undelivered: 0, number: 7))
        record.clientClosed()
        #expect(record.lossCount == 1)
    }

    /// With enough replies, the command does not wait for a peer that continues.
    @Test(arguments: [(0, false), (nil, false), (1, true)] as [(Int?, Bool)])
    func afterEnoughRepliesOnlyMessagesThatAreMissingMatter(undelivered: Int?, isFailure: Bool) {
        var record = SendRecord()
        record.sendingFinished(lastConnection: 0)
        record.stopped()
        record.record(event(.draining, .closed, .ended(by: Self.reset), undelivered: undelivered))
        #expect((record.failure(in: Self.words) != nil) == isFailure)
        #expect((record.summary(sentCount: 1) != nil) == isFailure)
    }

    /// Earlier steps are seen, too.
    @Test func theWatcherMissesNoStep() async throws {
        try await withTemporaryPath { path in
            var configuration = ClientConfiguration()
            configuration.backoff.maximumAttempts = 1
            let client = Client(
                to: .unix(path: path),
                configuration: configuration,
                receiving: RawMessage.self,
                sending: RawMessage.self
            )
            let watcher = SendWatcher(
                client: client,
                words: Self.words,
                isQuiet: true,
                endsWithPeer: false
            )
            async let running: Void = client.run()
            for await event in client.events where event.transition.to == .gaveUp { break }
            await client.close()
            try await running
            await watcher.run()
            let failure = await #expect(throws: CommandFailure.self) {
                try await watcher.finish(sentCount: 0, isJSON: false)
            }
            #expect(failure?.status == .unavailable)
        }
    }
}
