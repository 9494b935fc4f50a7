import LifelineCore
import LifelineTestSupport
import Testing

@testable import Lifeline

/// Messages that wait in an inbox, the runs in which they are taken, and messages that are given back.
@Suite struct SessionInboxTests {
    private typealias Receipt = SessionMachine.Receipt
    private typealias Run = SessionInbox.Run

    private let inbox = SessionInbox()

    /// A push whose payload is its number, which is also its place.
    private func append(_ number: UInt8, session: UInt64 = 0, size: Int = 1) {
        let body = HostileFrame.number(1, 1) + HostileFrame.bytes(3, [UInt8](repeating: number, count: size))
        body.withUnsafeBytes { body in
            guard let message = try? InboundMessage(.push, body) else {
                Issue.record("It is no push.")
                return
            }
            let receipt = Receipt(session: session, place: UInt64(number), cost: 10, source: .push(method: 1))
            let isWanted = inbox.append(message, receipt)
            #expect(isWanted)
        }
    }

    private func take(isAlone: Bool = false) -> Run? { inbox.takeRun(isAlone: isAlone).0 }

    /// The numbers of the messages of a run that were not taken.
    private func numbers(_ run: Run?) -> [UInt8] {
        guard let run else { return [] }
        return (run.head..<run.entries.count).compactMap { run.payload($0).first }
    }

    private func putBack(_ run: Run?, handedOut count: Int) throws {
        let run = try #require(run)
        #expect(inbox.putBack(run, from: run.head + count, isLeftover: false))
    }

    @Test func messagesAreTakenTogether() throws {
        for number in 1...3 as ClosedRange<UInt8> { append(number) }
        #expect(inbox.count == 3 && inbox.hasBegun)
        #expect(numbers(take()) == [1, 2, 3])
        #expect(take() == nil && inbox.count == 0)
        append(4)
        #expect(numbers(take(isAlone: true)) == [4])
    }

    @Test func messagesAreTakenAlone() throws {
        for number in 1...3 as ClosedRange<UInt8> { append(number) }
        let first = take(isAlone: true)
        #expect(numbers(first) == [1])
        append(4)
        #expect(numbers(take(isAlone: true)) == [2])
        try putBack(first, handedOut: 0)
        #expect(numbers(take(isAlone: true)) == [1], "though it was the older one of two")
        #expect(numbers(take()) == [3])
        #expect(numbers(take()) == [4])
    }

    /// Messages that are given back in any order are handed out in the order of their arrival.
    @Test(arguments: [false, true]) func returnedMessagesAreInOrder(isNewerFirst: Bool) throws {
        for number in 1...3 as ClosedRange<UInt8> { append(number) }
        let older = take()
        for number in 4...5 as ClosedRange<UInt8> { append(number) }
        let newer = take()
        append(6)
        if isNewerFirst { try putBack(newer, handedOut: 1) }
        try putBack(older, handedOut: 1)
        append(7)
        if !isNewerFirst { try putBack(newer, handedOut: 1) }
        append(8)
        var all: [UInt8] = []
        while let run = take() { all += numbers(run) }
        #expect(all == [2, 3, 5, 6, 7, 8])
    }

    /// The order also holds after a message that was given back and taken again meanwhile.
    @Test func messagesReturnedTwiceAreInOrder() throws {
        for number in 1...2 as ClosedRange<UInt8> { append(number) }
        let older = take()
        append(3)
        let newer = take()
        try putBack(older, handedOut: 0)
        append(4)
        let again = take()
        #expect(numbers(again) == [1, 2])
        try putBack(newer, handedOut: 0)
        try putBack(again, handedOut: 1)
        var all: [UInt8] = []
        while let run = take() { all += numbers(run) }
        #expect(all == [2, 3, 4])
    }

    /// The inbox is never empty, for a loop that ends after each message and for one that takes single messages.
    @Test(arguments: [false, true]) func takenMessagesUseNoMemory(isAlone: Bool) throws {
        for number in 1...3 as ClosedRange<UInt8> { append(number, size: 100) }
        var largest = 0
        for round in 0..<10_000 {
            append(UInt8(round % 200), size: 100)
            let run = take(isAlone: isAlone)
            if !isAlone {
                largest = max(largest, run?.bytes.count ?? 0)
                if let run, run.count > 1 { try putBack(run, handedOut: 1) }
            }
        }
        #expect(inbox.count == 3)
        while let run = take() { largest = max(largest, run.bytes.count) }
        #expect(largest <= 400)
    }

    @Test func messagesOfALostSessionStandApart() throws {
        for number in 1...2 as ClosedRange<UInt8> { append(number) }
        #expect(inbox.sessionLost() == SessionSize(frameCount: 2, byteCount: 20))
        append(1, session: 1)
        let old = try #require(take())
        #expect(old.leftoverSize == SessionSize(frameCount: 2, byteCount: 20) && numbers(old) == [1, 2])
        #expect(inbox.putBack(old, from: 1, isLeftover: true))
        #expect(try #require(take()).leftoverSize == SessionSize(frameCount: 1, byteCount: 10))
        #expect(try #require(take()).leftoverSize == SessionSize())
        // They are lost only once.
        #expect(inbox.sessionLost() == SessionSize())
    }

    @Test func receiptsOfNeighborsAreOne() throws {
        for number in [1, 2, 4, 5, 6, 9] as [UInt8] { append(number) }
        let run = try #require(take())
        var receipts: [[Int]] = []
        run.forEachReceipt(1..<6) { receipts.append([Int($0.place), $0.count, $0.cost]) }
        #expect(receipts == [[2, 1, 10], [4, 3, 30], [9, 1, 10]])
    }

    @Test func nobodyTakesAnythingOfOneThatIsClosed() throws {
        append(1)
        let run = try #require(take())
        append(2)
        #expect(inbox.close().map(numbers) == [[2]])
        #expect(!inbox.putBack(run, from: 0, isLeftover: false) && take() == nil)
    }
}
