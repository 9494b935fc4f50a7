import Glibc
import LifelineMessages
import LifelineProtos
import Testing

/// Setting a field again and again must not let a message grow: an arena frees nothing, but the message moves to a new
/// one in time.
///
/// Each test runs in its own process, because the memory of the whole process is measured.
@Suite(.enabled(if: !isSanitized, "Sanitizers keep freed memory."), .timeLimit(.minutes(5)))
struct BoundedGrowthTests {
    /// Changes `start` until it would have taken 240 MB without a bound. It may take 32.
    private static func expectBoundedGrowth(
        of start: ChatMessage = ChatMessage(),
        _ set: (inout ChatMessage, String) -> Void
    ) {
        var message = start
        expectBoundedGrowth(lending: &message, set)
    }

    /// The same within one loan of `part`, which is given back only after all the changes.
    private static func expectBoundedGrowth<Part>(lending part: inout Part, _ set: (inout Part, String) -> Void) {
        // Alternates, because a value that is not longer replaces the old one in place.
        let texts = ["short", String(repeating: "long", count: 4_000)]
        for text in texts { set(&part, text) }
        let before = residentBytes()
        for round in 0..<30_000 { set(&part, texts[round % 2]) }
        let growth = residentBytes() - before
        #expect(growth < 32 << 20, "It grew by \(growth) bytes.")
    }

    /// The process's memory in use now.
    private static func residentBytes() -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { preconditionFailure("/proc is needed") }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        guard fgets(&line, Int32(line.count), file) != nil else { preconditionFailure("/proc is needed") }
        let fields = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            .split(separator: " ")
        return (Int(fields[1]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    @Test func theMeasureIsOne() async {
        await #expect(processExitsWith: .success) {
            let before = BoundedGrowthTests.residentBytes()
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 20, alignment: 16)
            memory.initializeMemory(as: UInt8.self, repeating: 1)
            #expect(BoundedGrowthTests.residentBytes() - before > 60 << 20)
            memory.deallocate()
        }
    }

    @Test func aString() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth { $0.text = $1 }
        }
    }

    @Test func bytesOfAOneof() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth { message, text in
                if text.utf8.count > 100 { message.voice = [UInt8](text.utf8) } else { message.sticker = text }
            }
        }
    }

    @Test func aStringOfASubmessage() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth { $0.author.name = $1 }
        }
    }

    @Test func aStringDeepDown() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth { $0.replyTo.replyTo.poll.question = $1 }
        }
    }

    @Test func aSubmessageAsAWhole() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth { message, text in message.author = .with { $0.name = text } }
        }
    }

    @Test func aSubmessageThatIsCleared() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth { message, text in
                message.clearAuthor()
                message.author.name = text
            }
        }
    }

    @Test func anElement() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth(of: .with { $0.poll.choices = ["a", "b"] }) {
                $0.poll.choices[1] = $1
            }
        }
    }

    @Test func aStringOfAnElement() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth(of: .with { $0.attachments = [.init(), .init()] }) {
                $0.attachments[1].url = $1
            }
        }
    }

    @Test func elementsThatComeAndGo() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth { message, text in
                message.attachments.append { $0.url = text }
                message.attachments.removeFirst(message.attachments.count - 1)
            }
        }
    }

    @Test func aMapsValue() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth(of: .with { $0.headers = ["a": "b"] }) { $0.headers["key"] = $1 }
        }
    }

    @Test func aMapsValueChangedInPlace() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth { $0.headers["key", default: ""] = $1 }
        }
    }

    @Test func entriesThatComeAndGo() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth {
                $0.headers["key"] = $1
                $0.headers["key"] = nil
            }
        }
    }

    @Test func aListOnItsOwn() async {
        await #expect(processExitsWith: .success) {
            var list: RepeatedField<String> = ["a"]
            BoundedGrowthTests.expectBoundedGrowth { _, text in list[0] = text }
            #expect(list[0].utf8.count == 16_000)
        }
    }

    @Test func merging() async {
        await #expect(processExitsWith: .success) {
            BoundedGrowthTests.expectBoundedGrowth { message, text in
                try? message.merge(serializedBytes: ChatMessage.with { $0.text = text }.serializedBytes())
            }
        }
    }

    // MARK: Deep in what is lent

    @Test func aSubmessageOfALentMessage() async {
        await #expect(processExitsWith: .success) {
            var message = ChatMessage()
            BoundedGrowthTests.expectBoundedGrowth(lending: &message.replyTo) { $0.author.name = $1 }
            #expect(message.replyTo.author.name.utf8.count == 16_000)
        }
    }

    @Test func deepDownInALentMessage() async {
        await #expect(processExitsWith: .success) {
            var message = ChatMessage()
            BoundedGrowthTests.expectBoundedGrowth(lending: &message.replyTo) { $0.replyTo.replyTo.author.name = $1 }
            #expect(message.replyTo.replyTo.replyTo.author.name.utf8.count == 16_000)
        }
    }

    @Test func aStringOfAnElementOfALentList() async {
        await #expect(processExitsWith: .success) {
            var message = ChatMessage.with { $0.attachments = [.init(), .init()] }
            BoundedGrowthTests.expectBoundedGrowth(lending: &message.attachments) { $0[1].url = $1 }
            #expect(message.attachments.map(\.url.utf8.count) == [0, 16_000])
        }
    }

    @Test func elementsThatComeAndGoInALentMemberOfAOneof() async {
        await #expect(processExitsWith: .success) {
            var message = ChatMessage.with { $0.poll.choices = ["a", "b"] }
            BoundedGrowthTests.expectBoundedGrowth(lending: &message.poll) {
                $0.choices.append($1)
                $0.choices.removeLast()
            }
            #expect(message.poll.choices == ["a", "b"])
        }
    }

    @Test func aSubmessageThatIsGoneOnWith() async {
        await #expect(processExitsWith: .success) {
            var message = ChatMessage()
            let before = BoundedGrowthTests.residentBytes()
            for _ in 0..<500_000 {
                var reply = ChatMessage()
                swap(&message.replyTo, &reply)
                message = reply
            }
            #expect(BoundedGrowthTests.residentBytes() - before < 32 << 20)
        }
    }

    // MARK: Small changes

    /// Small strings add up too.
    @Test func aMillionShortStrings() async {
        await #expect(processExitsWith: .success) {
            let texts = ["", String(repeating: "t", count: 200)]
            var message = ChatMessage()
            let before = BoundedGrowthTests.residentBytes()
            for round in 0..<1_000_000 { message.text = texts[round % 2] }
            #expect(BoundedGrowthTests.residentBytes() - before < 16 << 20)
            #expect(message.text.utf8.count == 200)
        }
    }
}

/// Whether this is a build with AddressSanitizer or ThreadSanitizer.
private let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
