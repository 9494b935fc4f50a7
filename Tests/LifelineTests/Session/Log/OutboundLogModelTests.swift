import LifelineCore
import Testing

@testable import Lifeline

/// Random stories of a log, against a plain list of the unacknowledged frames.
@Suite struct OutboundLogModelTests {
    /// A few small frames; many, so that stragglers are moved; and long ones, so that buffers grow and shrink.
    @Test(arguments: [
        LogStory.Kind(longest: 60, batch: 6, stepCount: 30, storyCount: 2850),
        LogStory.Kind(longest: 80, batch: 80, stepCount: 40, storyCount: 60, movesStragglers: true),
        LogStory.Kind(longest: 3000, batch: 10, stepCount: 40, storyCount: 100, movesStragglers: true),
        LogStory.Kind(longest: 200, batch: 1500, stepCount: 30, storyCount: 3),
    ]) func logsAgreeWithAList(kind: LogStory.Kind) {
        var (moveCount, wrongCount) = (0, 0)
        for seed in 1...UInt64(kind.storyCount) {
            var story = LogStory(kind, seed: seed)
            for step in 0..<kind.stepCount {
                let action = story.step()
                if let difference = story.difference() {
                    Issue.record("\(kind), seed \(seed), step \(step), \(action): \(difference)")
                    wrongCount += 1
                    break
                }
                if !story.log.stragglers.isEmpty { moveCount += 1 }
            }
            if wrongCount > 3 { return }
        }
        if kind.movesStragglers { #expect(moveCount > kind.storyCount, "stragglers were hardly moved") }
    }
}

/// A log, and a model of its expected state.
struct LogStory: ~Copyable {
    struct Kind: Sendable {
        let longest: Int
        let batch: Int
        let stepCount: Int
        let storyCount: Int
        var movesStragglers = false
    }

    struct Frame {
        let place: UInt64
        var tag: OutboundLog.Tag
        var bytes: [UInt8] {
            didSet { cost = logCost(bytes) }
        }
        private(set) var cost: Int
        let space: Int

        init(_ place: UInt64, _ tag: OutboundLog.Tag, _ bytes: [UInt8], space: Int) {
            self.place = place
            self.tag = tag
            self.bytes = bytes
            self.space = space
            cost = logCost(bytes)
        }
    }

    let kind: Kind
    private var random: SplitMix64
    private let window: SessionWindow
    var log = OutboundLog()

    /// The unacknowledged frames.
    private var frames: [Frame] = []
    private var next: UInt64 = 1
    private var nextToSend: UInt64 = 1
    private var sentEnd: UInt64 = 1
    private var highestAcknowledged: UInt64 = 0
    /// The results of the last step, and the expected ones.
    private var outcome: (found: [LoggedFrame], expected: [LoggedFrame]) = ([], [])
    private var output: (found: [UInt8], expected: [UInt8]) = ([], [])
    /// The number of bytes that the log may keep although it does not need them: a buffer, and its records.
    private var spareMemory = 0

    init(_ kind: Kind, seed: UInt64) {
        self.kind = kind
        random = SplitMix64(seed: seed)
        window = SessionWindow(
            frameCount: [5, 200, Int.max].randomElement(using: &random)!,
            byteCount: [4096, 100_000, Int.max].randomElement(using: &random)!
        )
    }

    /// Takes a random step, and returns its description.
    mutating func step() -> String {
        outcome = ([], [])
        output = ([], [])
        spareMemory = 1 << 21
        switch random.next() % 100 {
        case ..<30: return append()
        case ..<55: return send()
        case ..<68: return acknowledgeUpTo()
        case ..<83: return acknowledgeRange()
        case ..<90: return resume()
        case ..<96: return change()
        case ..<99: return giveBackMemory()
        default: return removeAll()
        }
    }

    private mutating func number(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    private mutating func randomFrame(atMost longest: Int) -> [UInt8] {
        var byteCount = number(in: 3...longest)
        // No frame has 129 bytes: a length of 127 takes one byte, and one of 128 two.
        if byteCount == 129 { byteCount = 128 }
        return logFrame(byteCount, Int(truncatingIfNeeded: random.next()))
    }

    private mutating func randomTag() -> OutboundLog.Tag {
        let role = OutboundLog.Tag.Role(rawValue: UInt32(random.next() % 5))!
        return .init(role, hasDetails: random.next() % 2 == 0)
    }

    private mutating func append() -> String {
        let count = number(in: 1...kind.batch)
        for _ in 0..<count {
            let bytes = randomFrame(atMost: kind.longest)
            let space = random.next() % 4 == 0 ? bytes.count + number(in: 0...20) : bytes.count
            let tag = randomTag()
            let place = log.append(bytes, capacity: space == bytes.count ? nil : space, tag)
            outcome.found.append(LoggedFrame(place, tag, []))
            outcome.expected.append(LoggedFrame(next, tag, []))
            frames.append(Frame(next, tag, bytes, space: space))
            next += 1
        }
        return "append \(count)"
    }

    private mutating func send() -> String {
        let limit = [1, number(in: 1...10 * kind.longest), Int.max].randomElement(using: &random)!
        let (count, pieces) = log.sendPieces(within: window, atMost: limit)
        output.found = pieces.reduce(into: []) { $0 += $1 } + [UInt8(truncatingIfNeeded: count)]
        let underWay = frames.filter { $0.place < nextToSend }
        var (frameCount, cost) = (underWay.count, underWay.reduce(0) { $0 + $1.cost })
        var sentCount = 0
        for frame in frames where frame.place >= nextToSend {
            guard frameCount < window.frameCount, cost + frame.cost <= window.byteCount else { break }
            guard sentCount == 0 || output.expected.count + frame.bytes.count <= limit else { break }
            output.expected += frame.bytes
            (frameCount, cost, sentCount) = (frameCount + 1, cost + frame.cost, sentCount + 1)
        }
        nextToSend += UInt64(sentCount)
        sentEnd = max(sentEnd, nextToSend)
        output.expected.append(UInt8(truncatingIfNeeded: sentCount))
        return "send \(limit)"
    }

    private mutating func release(_ places: ClosedRange<UInt64>) {
        outcome.expected = frames.filter { places.contains($0.place) }.map { LoggedFrame($0.place, $0.tag, $0.bytes) }
        frames.removeAll { places.contains($0.place) }
        highestAcknowledged = max(highestAcknowledged, places.upperBound)
        nextToSend = max(nextToSend, places.upperBound + 1)
    }

    private mutating func acknowledgeUpTo() -> String {
        let first = Int(frames.first?.place ?? next)
        let reach = min(first + number(in: 0...kind.batch), Int(sentEnd) - 1)
        let place = UInt64(random.next() % 4 == 0 ? number(in: 0...Int(sentEnd) - 1) : reach)
        outcome.found = log.releasing(upTo: place)
        release(0...place)
        return "acknowledge \(place)"
    }

    private mutating func acknowledgeRange() -> String {
        guard sentEnd > 1 else { return "no range" }
        let lower = number(in: max(1, Int(sentEnd) - 5 * kind.batch)...Int(sentEnd) - 1)
        let upper = min(lower + number(in: 0...4 * kind.batch), Int(sentEnd) - 1)
        let places = UInt64(random.next() % 8 == 0 ? 1 + lower / 2 : lower)...UInt64(upper)
        outcome.found = log.releasing(places)
        release(places)
        return "acknowledge \(places)"
    }

    private mutating func resume() -> String {
        let received = UInt64(number(in: Int(highestAcknowledged)...Int(sentEnd) - 1))
        log.resume(behind: received)
        nextToSend = received + 1
        let start = received + UInt64(number(in: 0...3))
        outcome.found = log.unsentFrames(from: start)
        outcome.expected = frames.filter { $0.place >= max(start, nextToSend) }.map {
            LoggedFrame($0.place, $0.tag, $0.bytes)
        }
        return "resume behind \(received)"
    }

    /// Changes some of the unsent frames.
    private mutating func change() -> String {
        var changes = "change"
        for index in frames.indices where frames[index].place >= nextToSend && random.next() % 4 == 0 {
            let place = frames[index].place
            switch random.next() % 3 {
            case 0:
                changes += " blank \(place)"
                log.blank(place)
                frames[index].bytes = blankLogFrame
                frames[index].tag = .init(.blank)
            case 1:
                let bytes = randomFrame(atMost: frames[index].space)
                changes += " replace \(place)"
                let isReplaced = log.replace(place, bytes)
                frames[index].bytes = bytes
                if !isReplaced { changes += " (was refused)" }
                let tooLong = log.replace(place, byteCount: kind.longest + 10_000) { _ in }
                if tooLong { changes += " (was not refused)" }
            default:
                changes += " write \(place)"
                let last = frames[index].bytes.count - 1
                let byte = UInt8(truncatingIfNeeded: random.next())
                log.forEachUnsent(from: place) { if $0 == place { $2[last] = byte } }
                frames[index].bytes[last] = byte
            }
        }
        return changes
    }

    private mutating func giveBackMemory() -> String {
        log.giveBackMemory()
        spareMemory = 0
        return "give back memory"
    }

    private mutating func removeAll() -> String {
        log.removeAll()
        frames = []
        (next, nextToSend, sentEnd, highestAcknowledged) = (1, 1, 1, 0)
        return "remove all"
    }

    /// Returns a difference to the model; nil if there is none.
    func difference() -> String? {
        if outcome.found != outcome.expected { return "brought \(outcome.found), not \(outcome.expected)" }
        if output.found != output.expected { return "sent \(output.found), not \(output.expected)" }
        let first = frames.first?.place ?? next
        if log.first != first { return "first \(log.first), not \(first)" }
        if log.next != next { return "next \(log.next), not \(next)" }
        if log.nextToSend != nextToSend { return "nextToSend \(log.nextToSend), not \(nextToSend)" }
        if log.hasUnsent != (nextToSend < next) { return "hasUnsent \(log.hasUnsent)" }
        if log.sentEnd != sentEnd { return "sentEnd \(log.sentEnd), not \(sentEnd)" }
        if log.highestAcknowledged != highestAcknowledged { return "highest \(log.highestAcknowledged)" }
        var (kept, unacknowledged) = (SessionSize(), SessionSize())
        for frame in frames {
            kept.add(frame.cost)
            if frame.place < sentEnd { unacknowledged.add(frame.cost) }
        }
        let fillers = frames.count { $0.tag.role == .blank || $0.tag.role == .method }
        if log.fillerCount != fillers { return "\(log.fillerCount) fillers, not \(fillers)" }
        if log.keptSize != kept { return "kept \(log.keptSize), not \(kept)" }
        if log.unacknowledgedSize != unacknowledged {
            return "unacknowledged \(log.unacknowledgedSize), not \(unacknowledged)"
        }
        return differenceOfFrames() ?? differenceOfMemory()
    }

    private func differenceOfFrames() -> String? {
        var index = 0
        var difference: String?
        log.forEachKept { place, tag, bytes in
            let expected = index < frames.count ? frames[index] : nil
            index += 1
            let isExpected = place == expected?.place && tag == expected?.tag && [UInt8](bytes) == expected?.bytes
            guard !isExpected, difference == nil else { return }
            difference = "has \(place) \(tag) \([UInt8](bytes)), not \(String(describing: expected))"
        }
        if index != frames.count { return "\(index) frames, not \(frames.count)" }
        for place in [0, 1, highestAcknowledged, nextToSend, next] {
            let expected = frames.first { $0.place == place }
            if log.contains(place) != (expected != nil) { return "contains \(place): \(log.contains(place))" }
            guard let expected else { continue }
            let isSame = log.tag(of: place) == expected.tag && log.bytes(of: place) == expected.bytes
            if !isSame {
                return "\(place) is \(String(describing: log.tag(of: place))) \(log.bytes(of: place)), not \(expected)"
            }
        }
        return difference
    }

    private func differenceOfMemory() -> String? {
        // A buffer of which an eighth is in use shrinks until a quarter is, and nearly half of that may be
        // acknowledged. In addition, 16 KiB of acknowledged frames may stay.
        let space = frames.reduce(0) { $0 + $1.space + OutboundLog.Straggler.overhead }
        let most = 16 * space + 8 * (16 << 10) + spareMemory
        if spareMemory == 0, log.hasSpareMemory { return "has spare memory that it was to give back" }
        if log.acknowledgedCount == 0, log.acknowledgedByteCount != 0 { return "counts bytes of frames that have left" }
        return log.bytesHeld <= most ? nil : "holds \(log.bytesHeld) bytes for \(space)"
    }
}
