import LifelineCore
import Testing

@testable import Lifeline

@Suite struct OutboundLogTests {
    @Test func aNewLogIsEmpty() {
        let log = OutboundLog()
        #expect(log.first == 1 && log.next == 1 && log.nextToSend == 1 && log.sentEnd == 1)
        #expect(log.highestAcknowledged == 0 && log.bytesHeld == 0 && !log.hasUnsent && !log.contains(1))
        #expect(log.keptSize == SessionSize() && log.unacknowledgedSize == SessionSize())
    }

    @Test func aTagKeepsWhatItIsGiven() {
        for role in [OutboundLog.Tag.Role.plain, .request, .awaited, .blank, .method] {
            for hasDetails in [false, true] {
                let tag = OutboundLog.Tag(role, hasDetails: hasDetails)
                #expect(tag.role == role && tag.hasDetails == hasDetails && !tag.isAcknowledged)
                #expect(tag.isFiller == (role == .blank || role == .method))
            }
        }
        #expect(MemoryLayout<OutboundLog.Record>.stride == 12)
    }

    @Test(arguments: [
        2, 3, 127, 128, 130, 131, 16_384, 16_385, 16_387, 2_097_154, 2_097_156, 3_000_000,
    ]) func aFrameCostsItsLengthWithoutThePrefixAndSixtyFour(byteCount: Int) {
        #expect(OutboundLog.cost(byteCount) == logCost(logFrame(byteCount)))
    }

    @Test func framesArePlacedSentAndReleasedInOrder() {
        var log = OutboundLog()
        let frames = (0..<5).map { logFrame(10 + $0, $0) }
        for (index, frame) in frames.enumerated() {
            #expect(log.append(frame, .init(.awaited, hasDetails: index == 1)) == UInt64(index + 1))
        }
        let cost = frames.reduce(0) { $0 + $1.count - 1 + 64 }
        #expect(log.keptSize == SessionSize(frameCount: 5, byteCount: cost))
        #expect(log.unacknowledgedSize == SessionSize())
        let (count, pieces) = log.sendPieces()
        #expect(count == 5 && pieces == [Array(frames.joined())], "the frames are handed out in one piece")
        #expect(log.nextToSend == 6 && log.sentEnd == 6 && log.unacknowledgedSize == log.keptSize)
        #expect(log.sendPieces().count == 0)
        let released = log.releasing(upTo: 3)
        let expected = (0..<3).map { index in
            LoggedFrame(UInt64(index + 1), OutboundLog.Tag(.awaited, hasDetails: index == 1), frames[index])
        }
        #expect(released == expected)
        #expect(log.releasing(upTo: 3).isEmpty && log.releasing(upTo: 1).isEmpty)
        #expect(log.first == 4 && log.highestAcknowledged == 3 && log.keptSize.frameCount == 2)
        #expect(log.releasing(upTo: 5).count == 2 && log.first == 6 && log.keptSize == SessionSize())
        #expect(log.unacknowledgedSize == SessionSize())
    }

    @Test func rangesAreReleasedOnce() {
        var log = OutboundLog()
        for index in 1...10 { log.append(logFrame(10, index)) }
        log.sendAll()
        #expect(log.releasing(4...6).map(\.place) == [4, 5, 6])
        #expect(log.releasing(4...6).isEmpty && log.releasing(3...7).map(\.place) == [3, 7])
        #expect(log.first == 1 && log.highestAcknowledged == 7 && log.keptSize.frameCount == 5)
        #expect(!log.contains(4) && log.contains(2) && log.contains(8) && !log.contains(0) && !log.contains(11))
        #expect(log.keptFrames().map(\.place) == [1, 2, 8, 9, 10])
        #expect(log.releasing(upTo: 4).map(\.place) == [1, 2] && log.first == 8)
        #expect(log.releasing(1...10).map(\.place) == [8, 9, 10] && log.first == 11)
    }

    /// Frames that a connection has refused take up the window only if they were sent before.
    @Test func framesThatAreTakenBackAreSentAgain() {
        var log = OutboundLog()
        let window = SessionWindow(frameCount: 2, byteCount: 1 << 20)
        for index in 1...4 { log.append(logFrame(10, index)) }
        let unsent = log.sendingState
        #expect(log.sendPieces(within: window).count == 2)
        log.takeBack(to: unsent)
        #expect(log.nextToSend == 1 && log.sentEnd == 1 && log.unacknowledgedSize == SessionSize())
        #expect(log.sendPieces(within: window).count == 2)
        log.resume(behind: 0)
        let sent = log.sendingState
        #expect(log.sendPieces(within: window).count == 2)
        log.takeBack(to: sent)
        #expect(log.nextToSend == 1 && log.sentEnd == 3 && log.unacknowledgedSize.frameCount == 2)
        #expect(log.sendPieces(within: window).count == 2)
    }

    // MARK: Storage

    @Test func aFrameNeverWraps() {
        var log = OutboundLog()
        log.append(logFrame(300, 1))
        log.append(logFrame(100, 2))
        log.sendAll()
        log.releasing(upTo: 1)
        // 112 bytes are left at the end, and 300 at the start.
        let held = log.bytesHeld
        let (third, fourth) = (logFrame(200, 3), logFrame(50, 4))
        log.append(third)
        log.append(fourth)
        #expect(log.bytesHeld == held)
        #expect(log.sendPieces().pieces == [third + fourth], "both are at the start")
        #expect(log.bytes(of: 2) == logFrame(100, 2) && log.bytes(of: 3) == third && log.bytes(of: 4) == fourth)
        log.resume(behind: 1)
        #expect(log.sendPieces().pieces == [logFrame(100, 2), third + fourth])
    }

    @Test func framesKeepTheirBytesWhenTheBufferGrowsAroundItsEnd() {
        var log = OutboundLog()
        for index in 0..<4 { log.append(logFrame(120, index)) }
        log.sendAll()
        log.releasing(upTo: 2)
        for index in 4..<40 { log.append(logFrame(120, index)) }
        #expect(log.keptFrames().map(\.bytes) == (2..<40).map { logFrame(120, $0) })
        #expect(log.sendAll() == (4..<40).flatMap { logFrame(120, $0) })
    }

    @Test func aLongFrameHasRoom() {
        var log = OutboundLog()
        log.append(logFrame(10))
        log.append(logFrame(3_000_000, 5))
        log.append(logFrame(10))
        #expect(log.bytes(of: 2) == logFrame(3_000_000, 5))
        log.sendAll()
        log.releasing(upTo: 3)
        #expect(log.bytesHeld <= 64 * 12, "more than a burst may keep is given back at once")
    }

    @Test func memoryIsGivenBackWhenABurstIsOver() {
        var log = OutboundLog()
        log.append(logFrame(100))
        log.sendAll()
        let small = log.bytesHeld
        log.releasing(upTo: 1)
        #expect(log.bytesHeld == small, "a small buffer is used again")
        log.giveBackMemory()
        #expect(log.bytesHeld == small && !log.hasSpareMemory)
        for index in 0..<10_000 { log.append(logFrame(100, index)) }
        log.sendAll()
        let large = log.bytesHeld
        #expect(large >= 1_000_000 && !log.hasSpareMemory)
        log.releasing(upTo: 9_990)
        #expect(log.bytesHeld > large * 3 / 4 && log.hasSpareMemory, "another burst may come")
        log.giveBackMemory()
        #expect(log.bytesHeld < 20_000 && !log.hasSpareMemory, "not only when it is empty")
        #expect(log.keptFrames().map(\.bytes) == (9_989..<10_000).map { logFrame(100, $0) })
        log.releasing(upTo: 10_001)
        log.giveBackMemory()
        #expect(log.bytesHeld <= 4096 + 64 * 12)
        #expect(log.append(logFrame(50, 7)) == 10_002 && log.sendAll() == logFrame(50, 7))
    }

    @Test func aLostSessionBeginsWithPlaceOne() {
        var log = OutboundLog()
        for index in 0..<1000 { log.append(logFrame(100, index)) }
        log.sendAll()
        log.releasing(300...900)
        log.removeAll()
        #expect(log.first == 1 && log.next == 1 && log.nextToSend == 1 && log.sentEnd == 1 && log.bytesHeld == 0)
        #expect(log.highestAcknowledged == 0 && log.keptSize == SessionSize())
        #expect(log.append(logFrame(10)) == 1 && log.sendAll() == logFrame(10))
    }

    // MARK: Changing frames

    @Test func aBlankFrameOnlyHasItsPlace() {
        var log = OutboundLog()
        for index in 0..<3 { log.append(logFrame(200, index), .init(.awaited, hasDetails: true)) }
        log.blank(2)
        #expect(log.tag(of: 2) == .init(.blank) && log.bytes(of: 2) == blankLogFrame)
        #expect(log.keptSize == SessionSize(frameCount: 3, byteCount: 2 * (198 + 64) + 66))
        #expect(log.sendPieces().pieces == [logFrame(200, 0) + blankLogFrame, logFrame(200, 2)])
        #expect(log.unacknowledgedSize == log.keptSize)
        log.resume(behind: 0)
        log.blank(1)
        #expect(log.unacknowledgedSize == SessionSize(frameCount: 3, byteCount: 198 + 64 + 2 * 66))
        #expect(log.sendPieces().pieces == [blankLogFrame, blankLogFrame, logFrame(200, 2)])
        #expect(log.releasing(upTo: 2).map(\.tag) == [.init(.blank), .init(.blank)])
        #expect(log.keptSize == SessionSize(frameCount: 1, byteCount: 198 + 64))
    }

    @Test func aFrameIsReplacedWithinItsSpace() {
        var log = OutboundLog()
        log.append(logFrame(10, 1), capacity: 50, .init(.request))
        log.append(logFrame(10, 2))
        #expect(!log.replace(1, logFrame(51)) && log.bytes(of: 1) == logFrame(10, 1))
        #expect(log.replace(1, logFrame(50, 3)) && log.bytes(of: 1) == logFrame(50, 3))
        #expect(log.bytes(of: 2) == logFrame(10, 2))
        #expect(log.tag(of: 1) == .init(.request))
        #expect(log.keptSize == SessionSize(frameCount: 2, byteCount: 49 + 9 + 128))
        #expect(log.replace(1, logFrame(20, 4)) && log.replace(1, logFrame(50, 5)), "the space stays")
        #expect(log.replace(2, logFrame(11)) == false)
        #expect(log.sendPieces().pieces == [logFrame(50, 5) + logFrame(10, 2)])
        log.resume(behind: 0)
        #expect(log.replace(1, logFrame(30, 6)) == true)
        #expect(log.unacknowledgedSize == log.keptSize && log.keptSize.byteCount == 29 + 9 + 128)
        #expect(log.sendPieces().pieces == [logFrame(30, 6), logFrame(10, 2)])
    }

    @Test func bytesAreChangedInPlace() {
        var log = OutboundLog()
        log.append(logFrame(10))
        log.append(logFrame(10))
        log.forEachUnsent(from: 1) { place, _, bytes in bytes[8] = UInt8(place) }
        #expect(log.bytes(of: 1)[8] == 1 && log.bytes(of: 2)[8] == 2)
        #expect(log.unsentFrames(from: 2).map(\.place) == [2])
        _ = log.sendPieces(atMost: 1)
        #expect(log.unsentFrames().map(\.place) == [2], "only what is to be sent")
    }

    // MARK: Limits of sending

    @Test func framesStayWithinTheWindow() {
        var log = OutboundLog()
        for index in 0..<10 { log.append(logFrame(37, index)) }
        let window = SessionWindow(frameCount: 5, byteCount: 399)
        // Each frame costs 100.
        #expect(log.sendPieces(within: window).count == 3)
        #expect(log.sendPieces(within: window).count == 0)
        log.releasing(2...2)
        #expect(log.sendPieces(within: window).count == 1)
        log.releasing(upTo: 4)
        #expect(log.sendPieces(within: SessionWindow(frameCount: 2, byteCount: .max)).count == 2)
        #expect(log.sendPieces(within: SessionWindow(frameCount: 2, byteCount: .max)).count == 0)
        #expect(log.sendPieces(within: SessionWindow(frameCount: 3, byteCount: 300)).count == 1)
        #expect(log.unacknowledgedSize == SessionSize(frameCount: 3, byteCount: 300))
    }

    @Test func onlySoManyBytesAreHandedOutAtOnce() {
        var log = OutboundLog()
        for index in 0..<10 { log.append(logFrame(40, index)) }
        #expect(log.sendPieces(atMost: 119).count == 2)
        #expect(log.sendPieces(atMost: 120).count == 3)
        #expect(log.sendPieces(atMost: 1).count == 1, "a frame may always go")
        let none = SessionWindow(frameCount: 6, byteCount: .max)
        #expect(log.sendPieces(within: none, atMost: 1).count == 0, "but not over the window")
    }

    @Test func framesThatAreSentAgainCountOnce() {
        var log = OutboundLog()
        for index in 0..<6 { log.append(logFrame(37, index)) }
        let window = SessionWindow(frameCount: 4, byteCount: 400)
        #expect(log.sendPieces(within: window).count == 4)
        log.resume(behind: 1)
        #expect(log.unacknowledgedSize.frameCount == 4 && log.nextToSend == 2 && log.sentEnd == 5)
        #expect(log.sendPieces(within: window, atMost: 80).pieces == [logFrame(37, 1) + logFrame(37, 2)])
        // The connection is lost again before everything was sent again.
        log.resume(behind: 2)
        #expect(log.sendPieces(within: window).pieces == [logFrame(37, 2) + logFrame(37, 3)])
        #expect(log.sendPieces(within: window).count == 0)
        log.releasing(upTo: 1)
        #expect(log.sendPieces(within: window).count == 1 && log.sentEnd == 6)
    }

    @Test func aWindowThatHasShrunkHoldsForFramesThatAreSentAgain() {
        var log = OutboundLog()
        for index in 0..<4 { log.append(logFrame(37, index)) }
        log.sendAll()
        log.resume(behind: 1)
        let window = SessionWindow(frameCount: 2, byteCount: 1000)
        #expect(log.sendPieces(within: window).count == 1 && log.nextToSend == 3)
        log.releasing(upTo: 2)
        #expect(log.sendPieces(within: window).count == 2 && log.nextToSend == 5)
    }

    @Test func acknowledgedFramesAreNotSentAgain() {
        var log = OutboundLog()
        for index in 0..<6 { log.append(logFrame(37, index)) }
        log.sendAll()
        log.resume(behind: 1)
        #expect(log.releasing(upTo: 3).map(\.place) == [1, 2, 3] && log.nextToSend == 4)
        #expect(log.releasing(5...5).map(\.place) == [5] && log.nextToSend == 6, "the peer has received 4 as well")
        #expect(log.sendAll() == logFrame(37, 5))
        #expect(log.keptFrames().map(\.place) == [4, 6])
        #expect(log.unacknowledgedSize == SessionSize(frameCount: 2, byteCount: 200))
    }

    // MARK: Stragglers

    @Test func stragglersAreKeptUntilTheyAreAcknowledged() {
        var log = OutboundLog()
        for index in 1...300 { log.append(logFrame(100, index), .init(.awaited, hasDetails: index == 20)) }
        log.sendAll()
        for place in [10, 20, 30] as [UInt64] {
            #expect(log.releasing(place + 1...place + 9).count == 9)
        }
        #expect(log.releasing(40...299).count == 260)
        #expect(log.stragglers.numbers == Array(1...10) + [20, 30], "they have left the buffer")
        log.giveBackMemory()
        #expect(log.records.first == 300 && log.first == 1 && log.keptSize.frameCount == 13)
        #expect(log.bytesHeld < 16 << 10)
        #expect(log.contains(20) && !log.contains(21) && log.bytes(of: 20) == logFrame(100, 20))
        #expect(log.tag(of: 20) == .init(.awaited, hasDetails: true) && log.tag(of: 10) == .init(.awaited))
        #expect(log.keptFrames().map(\.place) == Array(1...10) + [20, 30, 300])
        #expect(log.unsentFrames().isEmpty)
        #expect(log.releasing(20...25) == [LoggedFrame(20, .init(.awaited, hasDetails: true), logFrame(100, 20))])
        #expect(log.releasing(20...20).isEmpty)
        #expect(log.releasing(upTo: 5).map(\.place) == Array(1...5) && log.first == 6)
        #expect(log.releasing(9...300).map(\.place) == [9, 10, 30, 300] && log.first == 6)
        #expect(log.releasing(upTo: 300).map(\.place) == [6, 7, 8])
        #expect(log.first == 301 && log.keptSize == SessionSize() && log.unacknowledgedSize == SessionSize())
    }

    @Test func aStragglerHoldsNoLargeFrames() {
        var log = OutboundLog()
        for index in 0..<10 {
            log.append(logFrame(50, index))
            log.append(logFrame(100_000, index))
        }
        log.sendAll()
        for place in stride(from: UInt64(2), through: 20, by: 2) { log.releasing(place...place) }
        log.giveBackMemory()
        #expect(log.bytesHeld < 10_000 && log.keptFrames().map(\.bytes) == (0..<10).map { logFrame(50, $0) })
    }

    @Test func aMillionFramesPassTwoHundredThatAreNotRead() {
        var log = OutboundLog()
        let content = logFrame(40, 1)
        var most = 0
        for _ in 0..<200 { log.append(content, .init(.awaited)) }
        log.sendAll()
        for _ in 0..<1_000_000 / 50 {
            let first = log.next
            for _ in 0..<50 { log.append(content) }
            _ = log.send(within: SessionWindow(frameCount: 1000, byteCount: 1 << 20), atMost: 1 << 20) { _ in }
            var count = 0
            log.acknowledge(first...first + 49) { _, _, _ in count += 1 }
            if count != 50 { Issue.record("\(count) of 50 frames were released.") }
            most = max(most, log.bytesHeld)
        }
        #expect(most < 128 << 10)
        #expect(log.first == 1 && log.keptSize.frameCount == 200 && log.next == 1_000_201)
        #expect(log.releasing(upTo: 200).map(\.bytes) == Array(repeating: content, count: 200))
        log.giveBackMemory()
        #expect(log.first == 1_000_201 && log.bytesHeld < 8 << 10)
    }
}
