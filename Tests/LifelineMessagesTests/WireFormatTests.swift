import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// Bytes computed by hand from https://protobuf.dev/programming-guides/encoding/.
@Suite struct WireFormatTests {
    private func decoded(_ bytes: [UInt8]) throws -> ChatMessage { try ChatMessage(serializedBytes: bytes) }

    // MARK: Each kind of field

    @Test(
        arguments: [
            ("string", [0x22, 2, 0xC3, 0xA9], ChatMessage.with { $0.text = "é" }),
            ("negative int32", [0x48, 0xFD, 255, 255, 255, 255, 255, 255, 255, 255, 1], .with { $0.flags = -3 }),
            ("enum", [0x40, 3], .with { $0.kind = .system }),
            ("unknown enum number", [0x40, 42], .with { $0.kind = .UNRECOGNIZED(42) }),
            ("packed uint64", [0x3A, 3, 1, 0x80, 1], .with { $0.mentions = [1, 128] }),
            ("unpacked enum", [0xC8, 1, 1, 0xC8, 1, 2], .with { $0.kindsSeen = [.text, .image] }),
            ("packed float", [0xC2, 1, 4, 0, 0, 0x80, 0x3F], .with { $0.signal = [1] }),
            ("optional zero", [0x58, 0], .with { $0.ttl = 0 }),
            ("fixed64", [0x61, 8, 7, 6, 5, 4, 3, 2, 1], .with { $0.nonce = 0x0102_0304_0506_0708 }),
            ("submessage", [0x52, 2, 0x28, 1], .with { $0.author.verified = true }),
            ("empty submessage", [0x6A, 0], .with { $0.sentAt = Google_Protobuf_Timestamp() }),
            (
                "repeated messages", [0x2A, 2, 0x18, 5, 0x2A, 0],
                .with { $0.attachments = [.with { $0.size = 5 }, .init()] }
            ),
            ("map", [0x32, 5, 0x0A, 1, 0x61, 0x12, 0], .with { $0.headers = ["a": ""] }),
            ("oneof bytes", [0x92, 1, 2, 0, 255], .with { $0.voice = [0, 255] }),
            ("oneof empty string", [0x8A, 1, 0], .with { $0.sticker = "" }),
            (
                "double, float, sint32", [0x7A, 16, 9, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x1D, 0, 0, 0, 0x3F, 0x20, 3],
                .with {
                    $0.location = .with {
                        $0.latitude = -0.0; $0.accuracy = 0.5; $0.altitude = -2
                    }
                }
            ),
            ("sfixed32", [0xA5, 1, 0xFF, 0xFF, 0xFF, 0xFF], .with { $0.utcOffset = -1 }),
            ("sint64", [0xA8, 1, 1], .with { $0.position = -1 }),
            ("fixed32", [0xB5, 1, 1, 0, 0, 0], .with { $0.textChecksum = 1 }),
            ("sfixed64", [0xB9, 1, 0xFE, 255, 255, 255, 255, 255, 255, 255], .with { $0.zoneVersion = -2 }),
            (
                "map of int64", [0x9A, 1, 14, 0x0A, 1, 0x61, 0x10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
                .with { $0.reactions = ["a": -1] }
            ),
        ] as [(String, [UInt8], ChatMessage)]
    )
    func goldenBytes(name: String, bytes: [UInt8], message: ChatMessage) throws {
        #expect(try message.serializedBytes() == bytes)
        #expect(try decoded(bytes) == message)
    }

    @Test func bothFormsOfRepeatedNumbersAreDecoded() throws {
        #expect(try decoded([0x38, 1, 0x38, 2, 0x3A, 1, 3]).mentions == [1, 2, 3])
        #expect(try decoded([0xCA, 1, 2, 1, 2]).kindsSeen == [.text, .image])
    }

    // MARK: Merging

    @Test func theLastValueWinsAndMessagesAreMerged() throws {
        let message = try decoded([0x22, 1, 0x61, 0x22, 1, 0x62, 0x52, 2, 0x08, 1, 0x52, 4, 0x12, 2, 0x68, 0x69])
        #expect(message.text == "b")
        #expect(
            message.author
                == .with {
                    $0.id = 1; $0.name = "hi"
                }
        )
    }

    @Test func aOneofKeepsItsLastMember() throws {
        let switched = try decoded([0x8A, 1, 1, 0x61, 0x7A, 2, 0x20, 2])
        #expect(switched.body == .location(.with { $0.altitude = 1 }))
        let merged = try decoded([0x7A, 2, 0x20, 2, 0x7A, 5, 0x1D, 0, 0, 0x80, 0x3F])
        #expect(
            merged.location
                == .with {
                    $0.altitude = 1; $0.accuracy = 1
                }
        )
        let back = try decoded([0x7A, 2, 0x20, 2, 0x8A, 1, 0, 0x7A, 0])
        #expect(back.body == .location(.init()), "a member that was set anew begins empty")
    }

    @Test func mapEntriesAreCompletedAndLastOnesWin() throws {
        let message = try decoded([
            0x32, 6, 0x0A, 1, 0x62, 0x12, 1, 0x31,  // b: 1
            0x32, 0,  // "": ""
            0x32, 3, 0x12, 1, 0x32,  // "": 2
            0x32, 6, 0x12, 1, 0x33, 0x0A, 1, 0x61,  // a: 3, value first
            0x32, 6, 0x0A, 1, 0x62, 0x12, 1, 0x34,  // b: 4
        ])
        #expect(message.headers == ["": "2", "a": "3", "b": "4"])
    }

    @Test func mergingEqualsDecodingTheConcatenation() throws {
        let first = try ValueSemanticsTests.sample().serializedBytes()
        let second = try ChatMessage.with {
            $0.author.level = 7
            $0.mentions = [9]
            $0.headers = ["k": "w", "l": "x"]
            $0.poll.question = "?"
        }.serializedBytes()
        var merged = try decoded(first)
        let before = merged
        try merged.merge(serializedBytes: second)
        #expect(try merged == decoded(first + second))
        #expect(try before == decoded(first), "a copy of the message stays as it was")
        #expect(merged.mentions == [1, 2, 3, 9])
    }

    @Test func aFailedMergeChangesNothing() throws {
        var message = ValueSemanticsTests.sample()
        #expect(throws: MessageError.self) { try message.merge(serializedBytes: [0x22, 1, 0x61, 0x52, 9] as [UInt8]) }
        #expect(message == ValueSemanticsTests.sample())
    }

    // MARK: Unknown fields

    @Test func unknownFieldsAreKept() throws {
        let unknown: [UInt8] = [0xF8, 7, 1, 0xFA, 7, 2, 1, 2, 0xFB, 7, 0x08, 1, 0xFC, 7, 0xFD, 7, 1, 2, 3, 4]
        var message = try decoded([0xF8, 6, 5, 0x22, 1, 0x61] + unknown)
        #expect(message.unknownFields == [0xF8, 6, 5] + unknown)
        #expect(try message.serializedBytes() == [0x22, 1, 0x61, 0xF8, 6, 5] + unknown)
        let copy = message
        message.removeUnknownFields()
        #expect(message == .with { $0.text = "a" })
        #expect(copy != message)
        let text = """
            text: "a"
            111: 5
            127: 1
            127: "\\001\\002"
            127 {
              1: 1
            }
            127: 0x04030201

            """
        #expect(copy.textFormatString() == text)
    }

    /// Tags that are longer than necessary are written in their shortest form, wherever the fields are in memory. In a
    /// merged message, earlier unknown fields are directly before the merged ones if their length is a multiple of 8.
    @Test(
        arguments: [
            [0xF9, 7, 1, 2, 3, 4, 5, 6, 7, 8],
            [0xFD, 7, 1, 2, 3, 4],
        ] as [[UInt8]]
    )
    func overlongTagsOfUnknownFieldsAreShortened(first: [UInt8]) throws {
        let overlong: [UInt8] = [0xF8, 0x87, 0, 1]
        var merged = try decoded(first)
        try merged.merge(serializedBytes: overlong)
        #expect(merged.unknownFields == first + [0xF8, 7, 1])
        let atOnce = try decoded(first + overlong)
        #expect(atOnce.unknownFields == merged.unknownFields)
        #expect(atOnce == merged)
    }

    @Test func aFieldOfAnotherWireTypeIsUnknown() throws {
        let bytes: [UInt8] = [0x20, 5]  // `text` as a varint
        let message = try decoded(bytes)
        #expect(message.text == "")
        #expect(message.unknownFields == bytes)
    }

    // MARK: Input and output

    @Test func anyBytesCanBeDecoded() throws {
        let message = ValueSemanticsTests.sample()
        let bytes = try message.serializedBytes()
        #expect(try ChatMessage(serializedBytes: bytes[...]) == message)
        #expect(try ChatMessage(serializedBytes: AnySequence(bytes)) == message)
        #expect(try ChatMessage(serializedBytes: bytes.span.bytes) == message)
        #expect(try bytes.withUnsafeBytes { try ChatMessage(serializedBytes: $0) } == message)
        #expect(try ChatMessage(serializedBytes: [UInt8]()) == ChatMessage())
        #expect(try ChatMessage(serializedBytes: UnsafeRawBufferPointer(start: nil, count: 0)) == ChatMessage())
    }

    @Test(arguments: [0, 1, 125, 126, 16_380, 16_381, 300_000])
    func framesHaveTheirLengthInFront(size: Int) throws {
        let message = Google_Protobuf_BytesValue([UInt8](repeating: 7, count: size))
        let bytes = try message.serializedBytes()
        var prefix: [UInt8] = []
        var rest = bytes.count
        while rest >= 128 {
            prefix.append(UInt8(rest % 128 + 128))
            rest /= 128
        }
        prefix.append(UInt8(rest))
        #expect(try message.withDelimitedBytes { Array($0) } == prefix + bytes)
        #expect(try RawMessage(message).withDelimitedBytes { Array($0) } == prefix + bytes)
        var buffer: [UInt8] = [1, 2]
        try message.append(to: &buffer)
        #expect(buffer == [1, 2] + bytes)
        #expect(try message.withSerializedBytes { Array($0) } == bytes)
    }

    @Test func theEncodingIsDeterministic() throws {
        var generator = SeededGenerator(seed: 3)
        let pairs = (0..<50).map { ("key \($0)", "\($0)") }
        let reference = try ChatMessage.with { $0.headers = .init(pairs) }.serializedBytes()
        for _ in 0..<5 {
            let shuffled = ChatMessage.with { $0.headers = .init(pairs.shuffled(using: &generator)) }
            #expect(try shuffled.serializedBytes() == reference)
        }
    }

    @Test func textFormat() throws {
        let message = ChatMessage.with {
            $0.text = "a\"\\\n\u{1}é"
            $0.kind = .UNRECOGNIZED(9)
            $0.kindsSeen = [.text]
            $0.location.latitude = .infinity
            $0.location.accuracy = .nan
            $0.author.verified = true
            $0.headers["k"] = "v"
            $0.attachments = [.with { $0.sha256 = [0, 255, 65] }]
        }
        #expect(
            message.textFormatString() == """
                text: "a\\"\\\\\\n\\001é"
                attachments {
                  sha256: "\\000\\377A"
                }
                headers {
                  key: "k"
                  value: "v"
                }
                kind: 9
                author {
                  verified: true
                }
                location {
                  latitude: inf
                  accuracy: nan
                }
                kinds_seen: KIND_TEXT

                """
        )
        #expect(try ChatMessage(textFormatString: message.textFormatString()) == message)
        #expect("\(ChatMessage())".contains("ChatMessage"))
        #expect(ChatMessage().debugDescription == "sample.chat.v1.ChatMessage {}")
    }
}

@Suite struct WellKnownTypesTests {
    @Test func anyHoldsAMessage() throws {
        let message = ValueSemanticsTests.sample()
        let any = try Google_Protobuf_Any(message: message)
        #expect(any.typeURL == "type.googleapis.com/sample.chat.v1.ChatMessage")
        #expect(any.isA(ChatMessage.self))
        #expect(try ChatMessage(unpackingAny: any) == message)
        #expect(throws: MessageError.self) { try Sample_Chat_V1_User(unpackingAny: any) }
    }

    @Test(arguments: [
        (Duration.milliseconds(1500), Int64(1), Int32(500_000_000)),
        (.milliseconds(-1500), -1, -500_000_000),
        (.zero, 0, 0),
        (.nanoseconds(-1), 0, -1),
    ])
    func durations(duration: Duration, seconds: Int64, nanos: Int32) {
        let message = Google_Protobuf_Duration(duration)
        #expect(
            message
                == .with {
                    $0.seconds = seconds; $0.nanos = nanos
                }
        )
        #expect(message.duration == duration)
    }

    @Test func aTimestampsNanosecondsCountForward() {
        let before = Google_Protobuf_Timestamp(sinceEpoch: .milliseconds(-1500))
        #expect(
            before
                == .with {
                    $0.seconds = -2; $0.nanos = 500_000_000
                }
        )
        #expect(before.sinceEpoch == .milliseconds(-1500))
        #expect(Google_Protobuf_Timestamp.now().seconds > 1_700_000_000)
    }

    @Test func structsAreWrittenAsLiterals() throws {
        let value: Google_Protobuf_Value = ["a": 1, "b": [true, nil, "text", 2.5]]
        #expect(value.structValue.fields["a"]?.numberValue == 1)
        #expect(value.structValue.fields["b"]?.listValue.values.count == 4)
        #expect(value.structValue.fields["b"]?.listValue.values[1].kind == .nullValue(.nullValue))
        #expect(try Google_Protobuf_Value(serializedBytes: value.serializedBytes()) == value)
    }
}
