import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import Testing

/// Appending to repeated fields: messages made in place, and sequences of every kind.
@Suite struct AppendingTests {
    private struct Stop: Error, Equatable {}

    // MARK: Messages, made in place

    @Test func aMessageIsMadeInPlace() throws {
        var message = ChatMessage()
        for number in 1...100 {
            message.attachments.append { attachment in
                #expect(attachment == .init())
                attachment.url = "\(number)"
                attachment.content = [UInt8](repeating: UInt8(number), count: number)
            }
        }
        #expect(message.attachments.map(\.url) == (1...100).map { "\($0)" })
        #expect(message.attachments[99].content.count == 100)
        let pushed = ChatMessage.with {
            for number in 1...100 {
                $0.attachments.append(
                    .with {
                        $0.url = "\(number)"; $0.content = [UInt8](repeating: UInt8(number), count: number)
                    }
                )
            }
        }
        #expect(message == pushed)
        #expect(try ChatMessage(serializedBytes: message.serializedBytes()) == message)
    }

    @Test func anUnchangedMessageIsAppendedToo() {
        var list = RepeatedField<Sample_Chat_V1_Attachment>()
        list.append { _ in }
        list.append { $0 = .with { $0.url = "replaced" } }
        #expect(list.map(\.url) == ["", "replaced"])
    }

    @Test func appendingIsNested() throws {
        var list = Google_Protobuf_ListValue()
        list.values.append { outer in
            outer.listValue.values.append { $0.stringValue = "deep" }
            outer.listValue.values.append { inner in
                inner.listValue.values.append { $0.numberValue = 1 }
                inner.listValue.values.append { $0.boolValue = true }
            }
        }
        list.values.append { $0.stringValue = "last" }
        let expected: Google_Protobuf_Value = [["deep", [1, true]], "last"]
        #expect(list == expected.listValue)
        #expect(try Google_Protobuf_ListValue(serializedBytes: list.serializedBytes()) == expected.listValue)
    }

    @Test func aSharedListIsCopiedFirst() {
        let original = ChatMessage.with { $0.attachments = [.with { $0.url = "a" }] }
        var copy = original
        copy.attachments.append { $0.url = "b" }
        #expect(original.attachments.map(\.url) == ["a"])
        #expect(copy.attachments.map(\.url) == ["a", "b"])
        let list = copy.attachments
        var other = list
        other.append { $0.url = "c" }
        #expect(list.map(\.url) == ["a", "b"])
        #expect(other.map(\.url) == ["a", "b", "c"])
    }

    @Test func aCopyThatIsKeptMeanwhileStaysAsItIs() {
        var list: RepeatedField<Sample_Chat_V1_Attachment> = [.with { $0.url = "a" }]
        var kept = Sample_Chat_V1_Attachment()
        list.append { attachment in
            attachment.url = "b"
            kept = attachment
            attachment.url = "c"
        }
        list[1].url += "d"
        #expect(kept.url == "b")
        #expect(list.map(\.url) == ["a", "cd"])
    }

    @Test func anErrorAppendsNothing() {
        var list: RepeatedField<Sample_Chat_V1_Attachment> = [.with { $0.url = "a" }]
        let before = list
        do throws(Stop) {
            try list.append { (attachment) throws(Stop) in
                attachment.url = "half"
                throw Stop()
            }
            Issue.record("the error was lost")
        } catch {
            #expect(error == Stop())
        }
        #expect(list == before)
        list.append { attachment in #expect(attachment.url == "") }
        #expect(list.map(\.url) == ["a", ""])
    }

    @Test func anErrorInAMessagesListLeavesTheMessageAsItWas() {
        let original = ValueSemanticsTests.sample()
        var message = original
        var kept: [Sample_Chat_V1_Attachment] = []
        #expect(throws: Stop.self) {
            try message.replyTo.attachments.append {
                $0.url = "half"
                kept.append($0)
                throw Stop()
            }
        }
        #expect(message == original)
        #expect(kept.map(\.url) == ["half"])
        message.replyTo.attachments.append { $0.url = "whole" }
        #expect(message.replyTo.attachments.map(\.url) == ["whole"])
        #expect(original == ValueSemanticsTests.sample())
    }

    // MARK: Sequences

    private static func sequences(of array: [String]) -> [(String, AnySequence<String>)] {
        let set = RepeatedField(array)
        return [
            ("array", AnySequence(array)),
            ("one that does not know its length", AnySequence(array.lazy.filter { _ in true })),
            ("repeated field", AnySequence(set)),
            ("iterator", AnySequence(IteratorSequence(array.makeIterator()))),
        ]
    }

    @Test(arguments: [0, 1, 3, 1_000]) func sequencesOfEveryKindAreAppended(count: Int) {
        let array = (0..<count).map { "element \($0)" }
        for (name, sequence) in Self.sequences(of: array) {
            var list: RepeatedField<String> = ["first"]
            list.append(contentsOf: sequence)
            #expect(Array(list) == ["first"] + array, "\(name)")
            let shared = list
            list.append(contentsOf: sequence)
            #expect(Array(list) == ["first"] + array + array, "\(name)")
            #expect(shared.count == count + 1, "\(name)")
        }
    }

    @Test func aListIsAppendedToItself() {
        var message = ChatMessage.with { $0.mentions = [1, 2, 3] }
        message.mentions.append(contentsOf: message.mentions)
        message.mentions.append(contentsOf: message.mentions.lazy.map { $0 * 10 })
        #expect(message.mentions == [1, 2, 3, 1, 2, 3, 10, 20, 30, 10, 20, 30])
        var texts: RepeatedField<String> = ["a", "b"]
        texts.append(contentsOf: texts)
        texts += texts.reversed()
        #expect(texts == ["a", "b", "a", "b", "b", "a", "b", "a"])
    }

    @Test(arguments: [false, true]) func aListIsPutIntoItself(isShared: Bool) {
        expectItself([1, 2, 3] as RepeatedField<Int64>, isShared)
        expectItself(["a", "b", "a text that is longer than what a String has room for"], isShared)
        expectItself(
            [.with { $0.url = "a" }, .with { $0.url = "b" }] as RepeatedField<Sample_Chat_V1_Attachment>,
            isShared
        )
    }

    private func expectItself<Element: FieldElement & Equatable>(
        _ list: consuming RepeatedField<Element>,
        _ isShared: Bool
    ) {
        var list = list
        let other = isShared ? list : []
        let before = Array(list)
        var array = before
        list.replaceSubrange(0..<1, with: list)
        array.replaceSubrange(0..<1, with: array)
        #expect(Array(list) == array)
        list.insert(contentsOf: list, at: 1)
        array.insert(contentsOf: array, at: 1)
        #expect(Array(list) == array)
        list.append(contentsOf: list)
        #expect(Array(list) == array + array)
        #expect(Array(other) == (isShared ? before : []))
    }

    @Test func messagesOfAnotherMessageAreCopied() {
        let source = ChatMessage.with { $0.attachments = [.with { $0.url = "a" }, .with { $0.url = "b" }] }
        var message = ChatMessage()
        message.attachments.append(contentsOf: source.attachments)
        message.attachments[0].url = "changed"
        #expect(source.attachments.map(\.url) == ["a", "b"])
        #expect(message.attachments.map(\.url) == ["changed", "b"])
    }

    @Test func reservedRoomIsFilled() {
        var list = RepeatedField<Int64>()
        list.reserveCapacity(1_000)
        #expect(list.isEmpty)
        list.append(contentsOf: 0..<1_000)
        #expect(Array(list) == Array(0..<1_000))
        list.reserveCapacity(1)
        #expect(list.count == 1_000)
    }
}
