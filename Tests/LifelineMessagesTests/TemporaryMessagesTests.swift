import LifelineMessages
import LifelineProtos
import LifelineWellKnownTypes
import TestProtos
import Testing

/// Reading a part of a message that nothing else refers to: the message must live until the part was read.
///
/// Optimized code frees such a temporary after the last use that the compiler sees, and a read through a pointer is not
/// a visible use. So these tests, and those of temporary lists and maps, are most useful in optimized code with
/// AddressSanitizer: `swift test -c release --sanitize=address`.
@Suite struct TemporaryMessagesTests {
    // MARK: Fields

    @Test func numbers() {
        #expect(read { user($0).id } == 9)
        #expect(read { User.with { $0.level = 4 }.level + Int32($0) } == 13)
        #expect(read { chat($0).nonce } == 9)
        #expect(read { Chat.with { $0.utcOffset = -1 }.utcOffset + Int32($0) } == 8)
        #expect(read { Chat.with { $0.position = -1 }.position + Int64($0) } == 8)
        #expect(read { number in Chat.with { $0.textChecksum = UInt32(number) }.textChecksum } == 9)
        #expect(read { number in Chat.with { $0.zoneVersion = Int64(number) }.zoneVersion } == 9)
        #expect(read { number in Sample_Chat_V1_Location.with { $0.latitude = Double(number) }.latitude } == 9)
        #expect(read { number in Sample_Chat_V1_Location.with { $0.accuracy = Float(number) }.accuracy } == 9)
    }

    @Test func truthValues() {
        #expect(!read { user($0).verified })
        #expect(read { number in User.with { $0.verified = number > 3 }.verified })
        #expect(read { number in Test_Scalars_Proto2_Singular.with { $0.aBool = number > 3 }.aBool })
    }

    @Test func enums() {
        #expect(read { number in Chat.with { $0.kind = number > 3 ? .image : .text }.kind } == .image)
        #expect(read { number in Chat.with { $0.kind = .UNRECOGNIZED(Int(number)) }.kind } == .UNRECOGNIZED(9))
        #expect(read { number in Test_Scalars_Proto2_Singular.with { $0.aLevel = level(number) }.aLevel } == .high)
        #expect(read { number in Test_Scalars_Proto3_Choice.with { $0.aColor = color(number) }.aColor } == .green)
    }

    @Test func textAndBytes() {
        let text = "a text that is longer than fifteen bytes"
        #expect(read { _ in Chat.with { $0.text = text }.text } == text)
        #expect(read { _ in Chat.with { $0.text = text }.text.utf8.count } == 40)
        #expect(read { _ in Chat.with { $0.text = text }.withTextUTF8Span { $0.count } } == 40)
        #expect(read { _ in Chat.with { $0.sticker = "short" }.sticker } == "short")
        #expect(read { _ in Chat.with { $0.sticker = text }.withStickerUTF8Span { $0.count } } == 40)
        #expect(read { number in Chat.with { $0.voice = [UInt8(number), 2] }.voice } == [9, 2])
        #expect(read { number in Chat.with { $0.voice = [UInt8(number), 2] }.withVoiceSpan { $0[0] } } == 9)
    }

    @Test func presence() {
        #expect(read { chat($0).hasAuthor })
        #expect(!read { user($0) == User() })
        #expect(read { number in Chat.with { $0.ttl = UInt32(number) }.hasTtl })
        #expect(read { number in Chat.with { $0.ttl = UInt32(number) }.ttl } == 9)
        #expect(!read { number in Chat.with { $0.nonce = number }.hasTtl })
        #expect(read { number in Test_Scalars_Proto2_Singular.with { $0.aUint64 = number }.hasAUint64 })
        #expect(read { number in Test_Scalars_Proto2_Singular.with { $0.aUint64 = number }.aUint64 } == 9)
        #expect(read { number in Test_Scalars_Proto2_Singular.with { $0.aUint64 = number }.aInt32 } == 0)
        #expect(read { number in Test_Scalars_Proto3_Optional.with { $0.aDouble = Double(number) }.hasADouble })
        #expect(read { number in Test_Scalars_Proto3_Optional.with { $0.aDouble = Double(number) }.aDouble } == 9)
    }

    @Test func submessages() {
        #expect(read { chat($0).author.id } == 9)
        #expect(read { number in Chat.with { $0.sentAt.seconds = Int64(number) }.sentAt.seconds } == 9)
        #expect(read { number in Chat.with { $0.replyTo.replyTo.nonce = number }.replyTo.replyTo.nonce } == 9)
        #expect(read { number in Chat.with { $0.replyTo.author.id = number }.replyTo.hasAuthor })
        #expect(read { number in Chat.with { $0.replyTo.nonce = number }.replyTo.author.id } == 0)
    }

    @Test func oneofs() {
        #expect(read { number in Chat.with { $0.location.latitude = Double(number) }.location.latitude } == 9)
        #expect(read { number in Chat.with { $0.location.altitude = Int32(number) }.poll.hasClosesAt } == false)
        #expect(read { number in Test_Scalars_Proto3_Choice.with { $0.aUint64 = number }.aUint64 } == 9)
        #expect(read { number in Test_Scalars_Proto3_Choice.with { $0.aUint64 = number }.aInt64 } == 0)
        #expect(read { number in Test_Scalars_Proto3_Choice.with { $0.aUint64 = number }.value } == .aUint64(9))
        #expect(read { number in Chat.with { $0.poll.votes[number] = 3 }.body != nil })
        let latitude = read { number -> Double in
            if case .location(let place)? = Chat.with({ $0.location.latitude = Double(number) }).body {
                place.latitude
            } else {
                0
            }
        }
        #expect(latitude == 9)
    }

    @Test func wellKnownTypes() {
        #expect(read { Google_Protobuf_UInt64Value($0).value } == 9)
        #expect(read { Google_Protobuf_Int64Value(Int64($0)).value } == 9)
        #expect(read { Google_Protobuf_DoubleValue(Double($0)).value } == 9)
        #expect(read { Google_Protobuf_BoolValue($0 > 3).value })
        #expect(read { Google_Protobuf_StringValue("\($0)").value } == "9")
        #expect(read { Google_Protobuf_Duration(.seconds(Int64($0))).seconds } == 9)
        #expect(read { Google_Protobuf_Duration(.seconds(Int64($0))).duration } == .seconds(9))
        #expect(read { Google_Protobuf_Timestamp(sinceEpoch: .seconds(Int64($0))).seconds } == 9)
        #expect(read { number in Google_Protobuf_Value.with { $0.numberValue = Double(number) }.numberValue } == 9)
        #expect(read { number in Google_Protobuf_Value.with { $0.boolValue = number > 3 }.kind } == .boolValue(true))
    }

    // MARK: The message itself

    @Test func unknownFields() throws {
        #expect(read { chat($0).unknownFields } == [])
        #expect(try read { _ in try User(serializedBytes: [0x7A, 1, 0x61]).unknownFields } == [0x7A, 1, 0x61])
        #expect(try read { _ in try User(serializedBytes: [0x7A, 1, 0x61]).unknownFields.count } == 3)
    }

    @Test func textFormat() {
        #expect(read { user($0).textFormatString() } == "id: 9\n")
        #expect(read { user($0).debugDescription.contains("9") })
    }

    @Test func equality() {
        #expect(read { user($0) == user($0) })
        #expect(read { user($0) != user($0 + 1) })
        #expect(read { user($0).hashValue == user($0).hashValue })
        #expect(read { chat($0).author == user($0) })
    }

    @Test func encodingAndDecoding() throws {
        #expect(try read { try user($0).serializedBytes() } == [8, 9])
        #expect(try read { try user($0).withDelimitedBytes { $0.count } } == 3)
        #expect(read { user($0).isInitialized })
        let frames: [[UInt8]] = [[8, 9, 0x20, 1], [8, 10, 0x28, 1]]
        #expect(try read { _ in try User(serializedBytes: frames[0]).id } == 9)
        #expect(try read { _ in try frames.reduce(0) { try $0 + User(serializedBytes: $1).id } } == 19)
        #expect(try read { _ in try frames.map { try User(serializedBytes: $0).level } } == [1, 0])
        #expect(try read { _ in try frames.map { try User(serializedBytes: $0[...]).verified } } == [false, true])
    }

    // MARK: Where temporaries come from

    @Test func loops() {
        let sum = read { number in
            var sum: UInt64 = 0
            for id in 0..<number { sum += user(id).id }
            for id in 0..<number { sum += chat(id).author.id }
            for id in 0..<number where chat(id).hasAuthor { sum += 1 }
            return sum
        }
        #expect(sum == 36 + 36 + 9)
        let overwritten = read { number in
            var (sum, last) = (0 as UInt64, User())
            for id in 0..<number {
                last = user(id)
                sum += last.id
                last.level = 4
            }
            return sum
        }
        #expect(overwritten == 36)
        #expect(read { (0..<$0).lazy.map { user($0) }.reduce(0) { $0 + $1.id } } == 36)
        #expect(read { (0..<$0).allSatisfy { user($0).id == $0 } })
    }

    @Test func expressions() {
        #expect(read { ($0 > 3 ? user($0) : user(0)).id } == 9)
        #expect(read { ($0 > 3 ? Optional(user($0)) : nil)?.id } == 9)
        #expect(read { user($0)[keyPath: \.id] } == 9)
        #expect(read { number in { user(number) }().id } == 9)
        #expect(read { (user($0) as any Sendable as? User)?.id } == 9)
        #expect(read { (user($0), 3).0.id } == 9)
        #expect(read { id(of: user($0)) + id(of: user($0)) } == 18)
        let matched = read { number -> UInt64 in
            guard user(number).id == number else { return 0 }
            switch user(number) {
            case let user where user.id == number: return user.id
            default: return 0
            }
        }
        #expect(matched == 9)
    }

    /// A value taken out of a collection has no other owner either.
    @Test func collections() {
        #expect(read { [user($0), user($0)].map(\.id) } == [9, 9])
        #expect(taken { $0.users.removeLast().id } == 9)
        #expect(taken { $0.users.popLast()?.id } == 9)
        #expect(taken { $0.users.removeFirst().id } == 9)
        #expect(taken { $0.users.first?.id } == 9)
        #expect(taken { $0.byName.removeValue(forKey: "Ada")?.id } == 9)
        #expect(taken { $0.waiting.take()?.id } == 9)
        #expect(taken { $0.next().id } == 9)
    }
}

// MARK: - Temporaries

private typealias Chat = Sample_Chat_V1_ChatMessage
private typealias User = Sample_Chat_V1_User

private func user(_ id: UInt64) -> User { .with { $0.id = id } }

private func chat(_ number: UInt64) -> Chat {
    .with {
        $0.nonce = number
        $0.author.id = number
    }
}

private func id(of user: User) -> UInt64 { user.id }
private func level(_ number: UInt64) -> Test_Scalars_Proto2_Level { number > 3 ? .high : .low }
private func color(_ number: UInt64) -> Test_Scalars_Proto3_Color { number > 3 ? .green : .red }

private struct Queue {
    var users: [User]
    var byName: [String: User]
    var waiting: User?

    mutating func next() -> User { users.removeLast() }
}

/// Returns `body(9)`. The values that it reads are released when this returns, whatever the caller does.
@inline(never) private func read<Result>(_ body: (UInt64) throws -> Result) rethrows -> Result { try body(9) }

@inline(never) private func queue(_ id: UInt64) -> Queue {
    Queue(users: [user(id), user(id)], byName: ["Ada": user(id)], waiting: user(id))
}

@inline(never) private func taken<Result>(_ body: (inout Queue) -> Result) -> Result {
    var queue = queue(9)
    return body(&queue)
}
