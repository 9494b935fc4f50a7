internal import CompatibilityTestProtos
internal import FoundationEssentials
internal import LifelineSwiftProtobufCompatibility
internal import Testing

typealias ChatMessage = Sample_Chat_V1_ChatMessage
typealias Attachment = Sample_Chat_V1_Attachment

/// Properties with the types that swift-protobuf gives them.
@Suite struct PropertyTests {
    @Test func bytesAreData() throws {
        var attachment = Attachment()
        #expect(attachment.content == Data())
        attachment.content = Data([1, 2, 3])
        attachment.content.append(contentsOf: [4, 5])
        attachment.content[0] = 9
        #expect(attachment.content == Data([9, 2, 3, 4, 5]))
        attachment.content = attachment.content.dropFirst(2)
        #expect(try Attachment(serializedData: attachment.serializedData()).content == Data([3, 4, 5]))
    }

    @Test func bytesInOneofsAreData() throws {
        var message = ChatMessage.with { $0.voice = Data([1, 2]) }
        #expect(message.body == .voice(Data([1, 2])))
        message.body = .voice(Data([3]))
        #expect(message.voice == Data([3]))
    }

    @Test func bytesHaveDefaults() {
        #expect(
            Test_Proto2_Defaults().aBytes == Data([0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x5C, 0x27, 0x0A, 0x0D, 0x09, 0x7A])
        )
        #expect(Test_Proto2_Defaults().bytesEmpty == Data())
    }

    @Test func listsOfMessagesChangeInPlace() throws {
        var message = ChatMessage()
        for index in 0..<100 {
            message.attachments.append(.with { $0.url = "attachment \(index)" })
        }
        message.attachments[7].size = 7
        message.attachments[7].content.append(1)
        message.attachments[99].url += "!"
        message.attachments.swapAt(0, 1)
        message.attachments.removeLast(10)
        message.attachments.remove(at: 50)
        message.attachments.insert(Attachment(), at: 20)
        let urls = message.attachments.map(\.url)
        #expect(urls.prefix(3) == ["attachment 1", "attachment 0", "attachment 2"])
        #expect(urls[20].isEmpty && urls[21] == "attachment 20" && urls.count == 90)
        #expect(message.attachments[7].size == 7 && message.attachments[7].content == Data([1]))
        #expect(try ChatMessage(serializedData: message.serializedData()) == message)
        message.attachments.removeAll()
        #expect(message == ChatMessage())
    }

    @Test func listsOfNumbersAndEnumsChangeInPlace() throws {
        var message = ChatMessage()
        for number in 0..<1_000 { message.mentions.append(UInt64(number)) }
        message.mentions[3] = 42
        message.mentions.removeAll { $0 > 42 }
        #expect(message.mentions == [0, 1, 2, 42] + Array(4...42))
        message.signal = [0, -0.5, .nan]
        message.signal[0] = -0.0
        #expect(message.signal.map(\.bitPattern) == [Float(-0.0), -0.5, .nan].map(\.bitPattern))
        message.kindsSeen += [.image, .UNRECOGNIZED(9)]
        #expect(message.kindsSeen == [.image, .UNRECOGNIZED(9)])
    }

    /// Text that is equal to Swift may have other bytes.
    @Test func listsOfTextKeepTheirBytes() throws {
        var message = ChatMessage()
        message.poll.choices = ["\u{E9}", "b"]
        message.poll.choices[0] = "e\u{301}"
        #expect(Array(message.poll.choices[0].utf8) == [0x65, 0xCC, 0x81])
        message.poll.choices.append("a longer text, for which Swift takes memory")
        #expect(message.poll.choices.count == 3)
    }

    @Test func unchangedFieldsStayInPlace() throws {
        var message = ChatMessage.with { message in
            message.attachments = (0..<4).map { index in .with { $0.size = UInt64(index) } }
        }
        let places = { (message: ChatMessage) in message.attachmentsField.map { $0._message.fields } }
        let before = places(message)
        message.attachments.append(Attachment())
        message.attachments[1].size = 11
        // A change of the field itself stores the array in it.
        message.attachmentsField.swapAt(0, 0)
        let after = places(message)
        #expect(after[0] == before[0] && after[2...3] == before[2...3])
        #expect(message.attachments.map(\.size) == [0, 11, 2, 3, 0])
    }

    @Test func copiesDoNotChange() {
        var message = ChatMessage.with { $0.attachments = [.with { $0.size = 1 }] }
        let copy = message
        let list = message.attachments
        message.attachments[0].size = 2
        message.headers["a"] = "b"
        #expect(copy.attachments[0].size == 1 && list[0].size == 1 && copy.headers.isEmpty)
        message.attachments = list + list
        #expect(message.attachments.map(\.size) == [1, 1])
    }

    @Test func anErrorInAChangeKeepsWhatWasDone() {
        struct Failure: Error {}
        func change(_ list: inout [UInt64]) throws {
            list.append(1)
            throw Failure()
        }
        var message = ChatMessage()
        #expect(throws: Failure.self) { try change(&message.mentions) }
        #expect(message.mentions == [1])
    }

    @Test func mapsAreDictionaries() throws {
        var message = ChatMessage()
        message.headers = ["a": "1", "b": "2"]
        message.headers["c"] = "3"
        message.headers["a"] = nil
        message.headers["b"]? += "!"
        message.headers.merge(["b": "4", "d": "5"]) { $0 + $1 }
        #expect(message.headers == ["b": "2!4", "c": "3", "d": "5"])
        message.reactions["wave", default: 0] += 2
        message.reactions["wave", default: 0] += 1
        #expect(message.reactions == ["wave": 3])
        message.poll.votes = [7: 1, 3: 0]
        #expect(try ChatMessage(serializedData: message.serializedData()).poll.votes == [7: 1, 3: 0])
        message.headers["e\u{301}"] = "first"
        message.headers = ["\u{E9}": "second"]
        #expect(message.headersField.count == 1 && message.headers == ["\u{E9}": "second"])
    }

    @Test func manyEntriesAreRemovedAndAdded() {
        var message = ChatMessage()
        let all = Dictionary(uniqueKeysWithValues: (0..<2_000).map { ("\($0)", "value") })
        message.headers = all
        #expect(message.headers == all && message.headersField.map(\.key) == all.keys.sorted())
        let some = all.filter { $0.key.hasSuffix("3") || $0.key.hasPrefix("1") }
        message.headers = some
        #expect(message.headers == some && message.headersField.map(\.key) == some.keys.sorted())
        message.headers = all
        #expect(message.headers == all)
        message.headers = [:]
        #expect(message.headersField.isEmpty)
    }

    @Test func keysThatAreNotUTF8AreReplacedAndRemoved() throws {
        // The header FF: "a".
        let bytes: [UInt8] = [0x32, 6, 0x0A, 1, 0xFF, 0x12, 1, 0x61]
        let original = try ChatMessage(serializedBytes: bytes, options: DecodingOptions(validatesUTF8: false))
        #expect(original.headers == ["\u{FFFD}": "a"])
        var message = original
        message.headers["\u{FFFD}"] = "b"
        #expect(message.headers == ["\u{FFFD}": "b"] && message.headersField.count == 1)
        message = original
        message.headers = [:]
        #expect(message.headersField.isEmpty)
        message = original
        message.headers["c"] = "d"
        #expect(message.headersField.count == 2 && message.headers["\u{FFFD}"] == "a")
    }

    @Test func messagesInMapsChangeInPlace() throws {
        var object = Google_Protobuf_Struct()
        object.fields["a"] = 1
        object.fields["a"]?.numberValue += 1
        object.fields["b", default: nil].structValue.fields["c"] = "text"
        object.fields["list"] = Google_Protobuf_Value(listValue: [1, nil])
        object.fields["list"]?.listValue.values.append(true)
        #expect(try object.jsonString() == #"{"a":2,"b":{"c":"text"},"list":[1,null,true]}"#)
    }

    @Test func extensionsHaveSwiftsTypes() throws {
        var message = Test_Proto2_Extendable()
        message.Test_Extending_numbers = [1, 2]
        message.Test_Extending_someBytes = Data([3])
        #expect(message.Test_Extending_numbers == [1, 2] && message.Test_Extending_someBytes == Data([3]))
        #expect(message.getExtensionValue(ext: Test_Extending_Extensions_a_string.self) == nil)
        message.setExtensionValue(ext: Test_Extending_Extensions_a_string.self, value: "text")
        let bytes: [UInt8] = try message.serializedBytes()
        let extensions: SimpleExtensionMap = [Test_Extending_Extensions_a_string.self]
        let read = try Test_Proto2_Extendable(serializedBytes: bytes, extensions: extensions)
        #expect(read == message && read.hasExtensionValue(ext: Test_Extending_Extensions_a_string.self))
    }
}
