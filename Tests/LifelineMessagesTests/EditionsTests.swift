import LifelineMessages
import TestProtos
import Testing

/// Features of editions, file by file, message by message and field by field. The bytes and texts are those of Python's
/// protobuf 7.36.2.
@Suite struct EditionsTests {
    private typealias Presence = Test_Editions_Presence
    private typealias Required = Test_Editions_Required
    private typealias Enums = Test_Editions_Enums
    private typealias Packing = Test_Editions_Packing
    private typealias Text = Test_Editions_Text
    private typealias Delimited = Test_Editions_Delimited
    private typealias OfFileMessage = Test_Editions_OfFileMessage

    /// Expects that `message` has these forms, and is read from each of them.
    private func expect<Sample: Message>(_ message: Sample, _ bytes: [UInt8], json: String, text: String) throws {
        #expect(try message.serializedBytes() == bytes)
        #expect(try message.jsonString() == json)
        #expect(message.textFormatString() == text)
        #expect(try Sample(serializedBytes: bytes) == message)
        #expect(try Sample(jsonString: json) == message)
        #expect(try Sample(textFormatString: text) == message)
    }

    private func code<Sample: Message>(_ type: Sample.Type, _ bytes: [UInt8]) -> MessageError.Code? {
        #expect(throws: MessageError.self) { try Sample(serializedBytes: bytes) }?.code
    }

    // MARK: Presence

    @Test func zeroIsWrittenWhereAFieldHasPresence() throws {
        let message = Presence.with {
            ($0.explicit, $0.explicitText, $0.withDefault, $0.number) = (0, "", 0, 0)
            ($0.implicit, $0.implicitText, $0.implicitBytes, $0.implicitDouble) = (0, "", [], 0)
            $0.implicitEnum = .zero
            $0.message = .init()
        }
        try expect(
            message,
            [0x08, 0, 0x1A, 0, 0x40, 0, 0x4A, 0, 0x50, 0],
            json: #"{"explicit":0,"explicitText":"","withDefault":0,"message":{},"number":0}"#,
            text: "explicit: 0\nexplicit_text: \"\"\nwith_default: 0\nmessage {\n}\nnumber: 0\n"
        )
        #expect(message.hasExplicit && message.hasExplicitText && message.hasWithDefault && message.hasMessage)
        let empty = Presence()
        #expect(!empty.hasExplicit && !empty.hasExplicitText && !empty.hasWithDefault && empty.withDefault == 7)
    }

    @Test func fieldsWithoutPresenceAreWrittenUnlessTheyAreZero() throws {
        let message = Presence.with {
            ($0.implicit, $0.implicitText, $0.implicitBytes, $0.implicitDouble) = (1, "a", [0x62], 0.5)
            $0.implicitEnum = .UNRECOGNIZED(5)
            $0.text = ""
        }
        try expect(
            message,
            [0x10, 1, 0x22, 1, 0x61, 0x2A, 1, 0x62, 0x31, 0, 0, 0, 0, 0, 0, 0xE0, 0x3F, 0x38, 5, 0x5A, 0],
            json: #"{"implicit":1,"implicitText":"a","implicitBytes":"Yg==","implicitDouble":0.5,"implicitEnum":5,"#
                + #""text":""}"#,
            text: """
                implicit: 1
                implicit_text: "a"
                implicit_bytes: "b"
                implicit_double: 0.5
                implicit_enum: 5
                text: ""

                """
        )
    }

    @Test func negativeZeroIsNotZero() throws {
        let message = Presence.with { $0.implicitDouble = -0.0 }
        #expect(try message.serializedBytes() == [0x31, 0, 0, 0, 0, 0, 0, 0, 0x80])
    }

    @Test func requiredFieldsAreAskedFor() throws {
        let message = Required.with {
            ($0.number, $0.text, $0.message) = (0, "", .init())
        }
        try expect(
            message,
            [0x08, 0, 0x12, 0, 0x1A, 0],
            json: #"{"number":0,"text":"","message":{}}"#,
            text: "number: 0\ntext: \"\"\nmessage {\n}\n"
        )
        #expect(code(Required.self, [0x08, 0, 0x12, 0]) == .missingRequiredField)
        #expect(code(Required.self, []) == .missingRequiredField)
    }

    // MARK: Enums

    @Test func openEnumsKeepNumbersAndClosedOnesDoNot() throws {
        let message = try Enums(serializedBytes: [0x08, 1, 0x10, 1, 0x08, 7, 0x10, 7])
        #expect(message.open == .UNRECOGNIZED(7) && message.closed == .one && message.unknownFields == [0x10, 7])
        #expect(try message.serializedBytes() == [0x08, 7, 0x10, 1, 0x10, 7])
        #expect(try message.jsonString() == #"{"open":7,"closed":"CLOSED_ONE"}"#)
    }

    @Test func elementsValuesAndMembersAreOpenOrClosed() throws {
        let lists = try Enums(serializedBytes: [0x1A, 2, 1, 7, 0x22, 2, 1, 7])
        #expect(lists.opens == [.one, .UNRECOGNIZED(7)] && lists.closeds == [.one])
        #expect(try lists.serializedBytes() == [0x1A, 2, 1, 7, 0x22, 1, 1, 0x20, 7])

        let unknownEntry: [UInt8] = [0x32, 4, 0x08, 1, 0x10, 7]
        let rest: [UInt8] = [0x32, 4, 0x08, 2, 0x10, 1, 0x38, 42, 0x38, 7, 0x40, 3, 0x40, 1, 0x48, 7, 0x50, 7]
        let message = try Enums(serializedBytes: [0x2A, 4, 0x08, 1, 0x10, 7] + unknownEntry + rest)
        #expect(message.openValues[1] == .UNRECOGNIZED(7) && message.closedValues.count == 1)
        #expect(message.other == .only && message.ofFile == .three && message.choice == .chosenOpen(.UNRECOGNIZED(7)))
        #expect(message.unknownFields == unknownEntry + [0x38, 7, 0x40, 1, 0x50, 7])
        #expect(try Enums(serializedBytes: [0x48, 7, 0x50, 7, 0x50, 1]).choice == .chosenClosed(.one))
    }

    // MARK: Encoding of repeated fields

    @Test func repeatedFieldsArePackedUnlessTheyAreExpanded() throws {
        let message = Packing.with {
            ($0.packed, $0.expanded) = ([1, 2], [1, 2])
            ($0.packedEnums, $0.expandedEnums) = ([.one, .zero], [.one, .zero])
            $0.texts = ["a", "b"]
        }
        try expect(
            message,
            [0x0A, 2, 1, 2, 0x10, 1, 0x10, 2, 0x1A, 2, 1, 0, 0x20, 1, 0x20, 0, 0x2A, 1, 0x61, 0x2A, 1, 0x62],
            json: #"{"packed":[1,2],"expanded":[1,2],"packedEnums":["CLOSED_ONE","CLOSED_ZERO"],"#
                + #""expandedEnums":["CLOSED_ONE","CLOSED_ZERO"],"texts":["a","b"]}"#,
            text: """
                packed: 1
                packed: 2
                expanded: 1
                expanded: 2
                packed_enums: CLOSED_ONE
                packed_enums: CLOSED_ZERO
                expanded_enums: CLOSED_ONE
                expanded_enums: CLOSED_ZERO
                texts: "a"
                texts: "b"

                """
        )
        // Both forms are read for both kinds.
        let other = try Packing(
            serializedBytes: [0x08, 1, 0x08, 2, 0x12, 2, 1, 2, 0x18, 1, 0x22, 2, 1, 0, 0x20, 7]
        )
        #expect(
            try other.serializedBytes() == [
                0x0A, 2, 1, 2, 0x10, 1, 0x10, 2, 0x1A, 1, 1, 0x20, 1, 0x20, 0, 0x20, 7,
            ]
        )
    }

    // MARK: UTF-8

    @Test(
        arguments: [
            [0x0A, 1, 0xFF], [0x22, 1, 0xFF], [0x32, 5, 0x0A, 1, 0xFF, 0x12, 0], [0x32, 5, 0x0A, 0, 0x12, 1, 0xFF],
            [0x4A, 1, 0xFF],
        ] as [[UInt8]]
    )
    func textIsValidated(bytes: [UInt8]) {
        #expect(code(Text.self, bytes) == .invalidUTF8)
    }

    @Test(
        arguments: [
            [0x12, 1, 0xFF], [0x1A, 1, 0xFF], [0x2A, 1, 0xFF], [0x3A, 5, 0x0A, 1, 0xFF, 0x12, 0],
            [0x3A, 5, 0x0A, 0, 0x12, 1, 0xFF], [0x42, 1, 0xFF],
        ] as [[UInt8]]
    )
    func textThatIsNotValidatedIsKept(bytes: [UInt8]) throws {
        #expect(try Text(serializedBytes: bytes).serializedBytes() == bytes)
    }

    // MARK: Delimited messages

    @Test func messagesAreDelimitedFieldByField() throws {
        let message = Delimited.with {
            ($0.inner.number, $0.other.number, $0.delimited.inner.number, $0.prefixed.number) = (1, 2, 3, 4)
            $0.many = [.with { $0.number = 5 }, .init()]
            $0.map = [1: .with { $0.below.other.number = 6 }]
            $0.chosen.number = 7
            $0.ofFileMessage.implicit = 8
        }
        let single: [UInt8] = [
            0x0B, 0x08, 1, 0x0C, 0x13, 0x08, 2, 0x14, 0x1B, 0x0B, 0x08, 3, 0x0C, 0x1C, 0x22, 2, 0x08, 4,
        ]
        let many: [UInt8] = [
            0x2B, 0x08, 5, 0x2C, 0x2B, 0x2C, 0x32, 10, 0x08, 1, 0x12, 6, 0x13, 0x13, 0x08, 6, 0x14, 0x14,
        ]
        try expect(
            message,
            single + many + [0x3B, 0x08, 7, 0x3C, 0xA3, 0x38, 0x08, 8, 0xA4, 0x38],
            json: #"{"inner":{"number":1},"other":{"number":2},"delimited":{"inner":{"number":3}},"#
                + #""prefixed":{"number":4},"many":[{"number":5},{}],"map":{"1":{"below":{"other":{"number":6}}}},"chosen":{"number":7},"#
                + #""ofFileMessage":{"implicit":8}}"#,
            text: """
                Inner {
                  number: 1
                }
                other {
                  number: 2
                }
                delimited {
                  Inner {
                    number: 3
                  }
                }
                prefixed {
                  number: 4
                }
                many {
                  number: 5
                }
                many {
                }
                map {
                  key: 1
                  value {
                    below {
                      other {
                        number: 6
                      }
                    }
                  }
                }
                chosen {
                  number: 7
                }
                of_file_message {
                  implicit: 8
                }

                """
        )
    }

    /// Only fields that look like proto2 groups have a name other than the field's.
    @Test func textFormatKnowsTheNamesOfDelimitedFields() throws {
        let message = Delimited.with { $0.inner.number = 1 }
        #expect(try Delimited(textFormatString: "Inner { number: 1 }") == message)
        #expect(try Delimited(textFormatString: "inner { number: 1 }") == message)
        #expect(try Delimited(textFormatString: "of_file_message {}").hasOfFileMessage)
        for name in ["Other", "OfFileMessage", "Delimited", "Many", "INNER"] {
            let error = #expect(throws: MessageError.self) { try Delimited(textFormatString: "\(name) {}") }
            #expect(error?.code == .unknownField)
        }
    }

    // MARK: Features of files, and editions

    @Test func filesChangeTheFeaturesOfAllThatIsInThem() throws {
        let message = OfFileMessage.with {
            ($0.implicit, $0.explicit, $0.closed, $0.open) = (0, 0, .three, .zero)
            ($0.expanded, $0.packed, $0.checked) = ([1, 2], [1, 2], "c")
            ($0.delimited.implicit, $0.prefixed.implicit, $0.chosenMessage.implicit) = (1, 2, 4)
            $0.map = ["k": .with { $0.implicit = 3 }]
        }
        try expect(
            message,
            [0x10, 0, 0x18, 3, 0x28, 1, 0x28, 2, 0x32, 2, 1, 2, 0x42, 1, 0x63, 0x4B, 0x08, 1, 0x4C, 0x52, 2, 0x08, 2]
                + [0x5A, 7, 0x0A, 1, 0x6B, 0x12, 2, 0x08, 3, 0x6B, 0x08, 4, 0x6C],
            json: #"{"explicit":0,"closed":"OF_FILE_THREE","expanded":[1,2],"packed":[1,2],"checked":"c","#
                + #""delimited":{"implicit":1},"prefixed":{"implicit":2},"map":{"k":{"implicit":3}},"#
                + #""chosenMessage":{"implicit":4}}"#,
            text: """
                explicit: 0
                closed: OF_FILE_THREE
                expanded: 1
                expanded: 2
                packed: 1
                packed: 2
                checked: "c"
                delimited {
                  implicit: 1
                }
                prefixed {
                  implicit: 2
                }
                map {
                  key: "k"
                  value {
                    implicit: 3
                  }
                }
                chosen_message {
                  implicit: 4
                }

                """
        )
        #expect(code(OfFileMessage.self, [0x42, 1, 0xFF]) == .invalidUTF8)
        for bytes: [UInt8] in [[0x3A, 1, 0xFF], [0x62, 1, 0xFF], [0x20, 7], [0x18, 1]] {
            #expect(try OfFileMessage(serializedBytes: bytes).serializedBytes() == bytes)
        }
        #expect(try OfFileMessage(serializedBytes: [0x20, 7]).open == .UNRECOGNIZED(7))
        #expect(try OfFileMessage(serializedBytes: [0x18, 1]).unknownFields == [0x18, 1])
    }

    @Test func edition2024() throws {
        let message = Test_Editions_Edition2024_Shown.with {
            ($0.hidden.number, $0.kind, $0.nested.text, $0.view) = (1, .some, "t", "v")
            ($0.open, $0.closed, $0.numbers) = (.zero, .zero, [1, 2])
        }
        try expect(
            message,
            [0x0A, 2, 0x08, 1, 0x10, 1, 0x1B, 0x0A, 1, 0x74, 0x1C, 0x22, 1, 0x76, 0x30, 0, 0x3A, 2, 1, 2],
            json: #"{"hidden":{"number":1},"kind":"KIND_SOME","nested":{"text":"t"},"view":"v","closed":"CLOSED_ZERO","#
                + #""numbers":[1,2]}"#,
            text: """
                hidden {
                  number: 1
                }
                kind: KIND_SOME
                Nested {
                  text: "t"
                }
                view: "v"
                closed: CLOSED_ZERO
                numbers: 1
                numbers: 2

                """
        )
        let odd = Test_Editions_Edition2024_OddlyNamed.with { ($0.camelCase, $0.number) = (1, 2) }
        try expect(odd, [0x08, 1, 0x10, 2], json: #"{"camelCase":1,"Number":2}"#, text: "camelCase: 1\nNumber: 2\n")
    }

    @Test func namesThatJSONCannotTellApart() throws {
        let message = Test_Editions_BestEffort.with { ($0.fooBar, $0.fooBar_2, $0.last) = (1, 2, 3) }
        #expect(try Test_Editions_BestEffort(serializedBytes: message.serializedBytes()) == message)
        #expect(try Test_Editions_BestEffort(textFormatString: message.textFormatString()) == message)
        #expect(try message.jsonString() == #"{"fooBar":1,"fooBar":2,"last":3}"#)
        #expect(try Test_Editions_BestEffort(jsonString: #"{"fooBar":4,"last":3}"#).last == 3)
    }
}
