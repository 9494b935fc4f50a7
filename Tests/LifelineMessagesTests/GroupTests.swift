import LifelineMessages
import TestProtos
import Testing

/// Groups of proto2: message fields that are encoded between two tags.
@Suite struct GroupTests {
    private typealias Groups = Test_Proto2_Groups

    @Test func groupsAreMessagesBetweenTags() throws {
        let message = Groups.with {
            $0.single.number = 5
            $0.many = [.with { $0.numbers = [1, 2] }, .init()]
            $0.chosen.content = [7]
            $0.far = .init()
            $0.last = 9
        }
        let bytes: [UInt8] =
            [0x0B, 0x08, 5, 0x0C] + [0x83, 1, 0x0A, 1, 7, 0x84, 1] + [0xA0, 1, 9]
            + [0xE3, 0x12, 0x0A, 2, 1, 2, 0xE4, 0x12, 0xE3, 0x12, 0xE4, 0x12]
            + [0xFB, 0xFF, 0xFF, 0xFF, 0x0F, 0xFC, 0xFF, 0xFF, 0xFF, 0x0F]
        #expect(try message.serializedBytes() == bytes)
        let decoded = try Groups(serializedBytes: bytes)
        #expect(decoded == message && decoded.unknownFields == [])
        #expect(decoded.hasSingle && decoded.hasFar && decoded.choice == .chosen(.with { $0.content = [7] }))
    }

    @Test func groupsStandInGroupsAndMessagesInThem() throws {
        let message = Groups.with {
            $0.single.below.single.text = "deep"
            $0.single.inner = [
                .with {
                    $0.number = 4
                    $0.counts = ["b": 2, "a": 1]
                }
            ]
        }
        let bytes = try message.serializedBytes()
        #expect(try Groups(serializedBytes: bytes) == message)
        var copy = message
        copy.single.inner[0].counts["c"] = 3
        #expect(copy != message && message.single.inner[0].counts.count == 2)
    }

    @Test func twoGroupsOfAFieldAreMerged() throws {
        let message = try Groups(serializedBytes: [0x0B, 0x08, 5, 0x0C, 0x0B, 0x12, 1, 0x61, 0x0C])
        #expect(message.single.number == 5 && message.single.text == "a")
    }

    @Test func fieldsThatAGroupDoesNotKnowAreKeptInIt() throws {
        let bytes: [UInt8] = [0x0B, 0x08, 5, 0x50, 1, 0x53, 0x08, 1, 0x54, 0x0C]
        let message = try Groups(serializedBytes: bytes)
        #expect(message.single.unknownFields == [0x50, 1, 0x53, 0x08, 1, 0x54] && message.unknownFields == [])
        #expect(try message.serializedBytes() == bytes)
    }

    @Test func aGroupsFieldWithALengthIsUnknown() throws {
        let bytes: [UInt8] = [0x0A, 2, 0x08, 5, 0xE2, 0x12, 0]
        let message = try Groups(serializedBytes: bytes)
        #expect(!message.hasSingle && message.many.isEmpty && message.unknownFields == bytes)
    }

    @Test func malformedGroupsAreRefused() {
        func code(_ bytes: [UInt8]) -> MessageError.Code? {
            #expect(throws: MessageError.self) { try Groups(serializedBytes: bytes) }?.code
        }
        #expect(code([0x0B]) == .truncated)
        #expect(code([0x0B, 0x08, 5]) == .truncated)
        #expect(code([0x0B, 0x14]) == .unmatchedGroup)
        #expect(code([0x0C]) == .unmatchedGroup)
        #expect(code([0x0B, 0x23, 0x0C, 0x24]) == .unmatchedGroup)
        #expect(code([0x0B, 0x23, 0x24, 0x0C]) == .missingRequiredField)
    }

    @Test func textFormatHasTheNamesOfTheirTypes() throws {
        let parse = { (text: String) in try Test_Proto2_Groups(textFormatString: text) }
        let message = try parse("Single { number: 1 }")
        #expect(message.textFormatString().hasPrefix("Single {"))
        #expect(try parse("single { number: 1 }") == message)
        for name in ["SINGLE", "sINGLE", "Singles", "S", "Singl"] {
            let error = #expect(throws: MessageError.self) { try parse("\(name) { number: 1 }") }
            #expect(error?.code == .unknownField)
        }
    }

    @Test func groupsCountAsDepth() throws {
        // A group in a message in a group, and so on.
        func nested(_ depth: Int) throws -> [UInt8] {
            var message = Groups()
            for _ in 0..<depth / 2 {
                let inner = message
                message = .with { $0.single.below = inner }
            }
            return try message.serializedBytes()
        }
        _ = try Groups(serializedBytes: nested(100))
        let error = #expect(throws: MessageError.self) { try Groups(serializedBytes: nested(102)) }
        #expect(error?.code == .tooDeep)
    }

    @Test func jsonAndTextNameThem() throws {
        let message = Groups.with {
            $0.single.number = 5
            $0.many = [.init()]
            $0.chosen.content = [7]
        }
        #expect(try message.jsonString() == #"{"single":{"number":5},"chosen":{"content":"Bw=="},"many":[{}]}"#)
        #expect(try Groups(jsonString: message.jsonString()) == message)
        let text = "Single {\n  number: 5\n}\nChosen {\n  content: \"\\007\"\n}\nMany {\n}\n"
        #expect(message.textFormatString() == text)
        #expect(try Groups(textFormatString: text) == message)
        // As in newer versions of protobuf.
        #expect(try Groups(textFormatString: "single {}").hasSingle)
        #expect(throws: MessageError.self) { try Groups(textFormatString: "SINGLE {}") }
    }
}
