import LifelineMessages
import LifelineProtos
import Testing

/// Like EscapedLoanTests, for lists and maps.
@Suite struct EscapedCollectionTests {
    @Test func aListOfNumbers() {
        var message = ValueSemanticsTests.sample()
        var kept: [RepeatedField<UInt64>] = []
        func change(_ list: inout RepeatedField<UInt64>) {
            kept.append(list)
            list.append(4)
            kept.append(list)
            list[0] = 9
        }
        change(&message.mentions)
        #expect(message.mentions == [9, 2, 3, 4])
        message.mentions.removeAll()
        message.mentions.append(5)
        kept[0].append(8)
        #expect(kept == [[1, 2, 3, 8], [1, 2, 3, 4]])
        #expect(message.mentions == [5])
    }

    @Test func aListThatIsOnlyLookedAt() {
        var message = ValueSemanticsTests.sample()
        var kept: RepeatedField<UInt64> = []
        func look(_ list: inout RepeatedField<UInt64>) { kept = list }
        look(&message.mentions)
        for number in 0..<100 { message.mentions[0] = UInt64(number) }
        message.text = "changed"
        #expect(kept == [1, 2, 3])
        kept[1] = 7
        #expect(message.mentions == [99, 2, 3])
    }

    /// Then only the copy holds the loan, and the whole is unchanged since it was lent.
    @Test func changingTheCopyFirst() {
        var message = ValueSemanticsTests.sample()
        var numbers: RepeatedField<UInt64> = []
        var messages: RepeatedField<Sample_Chat_V1_Attachment> = []
        var map: MapField<String, String> = [:]
        func lookAt(_ list: inout RepeatedField<UInt64>) { numbers = list }
        func lookAt(_ list: inout RepeatedField<Sample_Chat_V1_Attachment>) { messages = list }
        func lookAt(_ field: inout MapField<String, String>) { map = field }
        lookAt(&message.mentions)
        numbers[0] = 9
        #expect(message == ValueSemanticsTests.sample())
        lookAt(&message.attachments)
        messages[0].url = "other"
        messages.swapAt(0, 1)
        #expect(message == ValueSemanticsTests.sample())
        lookAt(&message.headers)
        map["k"] = "other"
        #expect(message == ValueSemanticsTests.sample())
        #expect(numbers == [9, 2, 3] && messages.map(\.url) == ["b", "other"] && map == ["k": "other"])
    }

    /// Then only the copies hold the loans, and their sources are settled afterwards.
    @Test func replacingWhatIsLentAndChangingItsCopy() {
        var message = ValueSemanticsTests.sample()
        var expected = message
        var numbers: RepeatedField<UInt64> = []
        var messages: RepeatedField<Sample_Chat_V1_Attachment> = []
        var map: MapField<String, String> = [:]
        func replace(_ list: inout RepeatedField<UInt64>) {
            numbers = list
            list = [7]
            numbers[0] = 9
            numbers.append(contentsOf: 10..<1_000)
        }
        func replace(_ list: inout RepeatedField<Sample_Chat_V1_Attachment>) {
            messages = list
            list = [.with { $0.url = "replacement" }]
            messages[0].url = String(repeating: "kept", count: 1_000)
            messages.swapAt(0, 1)
        }
        func replace(_ field: inout MapField<String, String>) {
            map = field
            field = ["r": "replacement"]
            for number in 0..<1_000 { map["\(number)"] = "kept" }
        }
        replace(&message.mentions)
        replace(&message.attachments)
        replace(&message.headers)
        expected.mentions = [7]
        expected.attachments = [.with { $0.url = "replacement" }]
        expected.headers = ["r": "replacement"]
        #expect(message == expected)
        #expect(numbers.count == 993 && numbers.first == 9 && numbers.last == 999)
        #expect(messages[1].url.utf8.count == 4_000 && messages[0].url == "b")
        #expect(map.count == 1_001 && map["999"] == "kept" && map["k"] == "v")
        message.attachments[0].url = "changed"
        numbers[0] = 0
        map["r"] = "by the copy"
        expected.attachments[0].url = "changed"
        #expect(message == expected)
    }

    @Test func aListOfTextTwoLevelsDown() {
        var message = ChatMessage.with { $0.replyTo.poll.choices = ["a", "b"] }
        let before = message
        var keptList: RepeatedField<String> = []
        var keptPoll = Sample_Chat_V1_Poll()
        func inner(_ list: inout RepeatedField<String>) {
            list[0] += "1"
            keptList = list
            list[0] += "2"
        }
        func outer(_ poll: inout Sample_Chat_V1_Poll) {
            inner(&poll.choices)
            keptPoll = poll
            poll.choices.append("c")
        }
        outer(&message.replyTo.poll)
        message.replyTo.poll.choices[1] = "changed"
        #expect(keptList == ["a1", "b"])
        #expect(keptPoll.choices == ["a12", "b"])
        #expect(message.replyTo.poll.choices == ["a12", "changed", "c"])
        #expect(before.replyTo.poll.choices == ["a", "b"])
    }

    @Test func aMap() {
        var message = ChatMessage.with { $0.headers = ["a": "1", "b": "2"] }
        var kept: [MapField<String, String>] = []
        func change(_ map: inout MapField<String, String>) {
            kept.append(map)
            map["a"] = "changed"
            kept.append(map)
            map["c"] = "3"
            map["b"] = nil
        }
        change(&message.headers)
        #expect(message.headers == ["a": "changed", "c": "3"])
        message.headers["a", default: ""] += "!"
        message.headers["0"] = "first"
        kept[0]["a"] = "kept"
        #expect(kept == [["a": "kept", "b": "2"], ["a": "changed", "b": "2"]])
        #expect(message.headers == ["0": "first", "a": "changed!", "c": "3"])
    }

    @Test func aMapReplacedAndRefilled() {
        var message = ChatMessage.with { $0.headers = ["a": "1"] }
        var kept: MapField<String, String> = [:]
        func replace(_ map: inout MapField<String, String>) {
            kept = map
            map.removeAll()
            map["b"] = "2"
        }
        replace(&message.headers)
        message.headers["c"] = "3"
        #expect(kept == ["a": "1"])
        #expect(message.headers == ["b": "2", "c": "3"])
    }

    @Test func aListSortedWhileItIsLent() {
        var message = ChatMessage.with { $0.poll.choices = ["c", "a", "b"] }
        let before = message
        var kept: RepeatedField<String> = []
        func sort(_ list: inout RepeatedField<String>) {
            kept = list
            list.sort()
            list.reverse()
        }
        sort(&message.poll.choices)
        #expect(message.poll.choices == ["c", "b", "a"])
        #expect(kept == ["c", "a", "b"] && before.poll.choices == kept)
    }

    @Test func aListSwappedForOneOfItsOwnCopies() {
        var message = ValueSemanticsTests.sample()
        var other = message.attachments
        other[0].url = "other"
        swap(&message.attachments, &other)
        #expect(message.attachments.map(\.url) == ["other", "b"] && other.map(\.url) == ["a", "b"])
        message.attachments[1].url = "changed"
        #expect(other.map(\.url) == ["a", "b"])
        message.attachments = other
        other.removeAll(keepingCapacity: true)
        other.append(.with { $0.url = "new" })
        #expect(message.attachments.map(\.url) == ["a", "b"])
    }

    /// Loans are reused, but a loan that is still referenced must not be.
    @Test func loansThatCameBackAreNotMixedUp() {
        var message = ValueSemanticsTests.sample()
        var (authors, lists): ([Sample_Chat_V1_User], [RepeatedField<UInt64>]) = ([], [])
        message.mentions = []
        for number in 0..<50 {
            func changeAuthor(_ author: inout Sample_Chat_V1_User) {
                author.name = "\(number)"
                if number % 3 == 0 { authors.append(author) }
                author.level = Int32(number)
            }
            func changeList(_ list: inout RepeatedField<UInt64>) {
                list.append(UInt64(number))
                if number % 5 == 0 { lists.append(list) }
            }
            changeAuthor(&message.author)
            changeList(&message.mentions)
        }
        #expect(message.author == .with { ($0.name, $0.level) = ("49", 49) })
        #expect(Array(message.mentions) == Array(0..<50))
        #expect(authors.map(\.name) == stride(from: 0, to: 50, by: 3).map { "\($0)" })
        #expect(authors.map(\.level) == stride(from: 0, to: 50, by: 3).map { max($0 - 1, 0) })
        #expect(lists.map { Array($0) } == stride(from: 0, to: 50, by: 5).map { Array(0...$0) })
    }
}
