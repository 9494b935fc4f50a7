import LifelineMessages
import LifelineProtos
import Testing

typealias ChatMessage = Sample_Chat_V1_ChatMessage

/// A change must not affect any other value that shares memory with the changed one.
@Suite struct ValueSemanticsTests {
    static func sample() -> ChatMessage {
        .with {
            $0.text = "hello"
            $0.author.name = "Ada"
            $0.attachments = [.with { $0.url = "a" }, .with { $0.url = "b" }]
            $0.mentions = [1, 2, 3]
            $0.headers = ["k": "v"]
            $0.location.latitude = 1.5
            $0.replyTo.text = "earlier"
        }
    }

    @Test func aCopyIsIndependent() {
        let original = Self.sample()
        var copy = original
        copy.text = "changed"
        copy.author.name = "Bob"
        copy.attachments[0].url = "z"
        copy.mentions.append(4)
        copy.headers["k"] = nil
        copy.sticker = "smile"
        copy.clearReplyTo()
        #expect(original == Self.sample())
        #expect(copy.text == "changed")
        #expect(copy.author.name == "Bob")
        #expect(copy.attachments.map(\.url) == ["z", "b"])
        #expect(copy.mentions == [1, 2, 3, 4])
        #expect(copy.headers.isEmpty)
        #expect(copy.body == .sticker("smile"))
        #expect(!copy.hasReplyTo)
    }

    @Test func aPartOutlivesTheWholeAndIsIndependentOfIt() {
        var author: Sample_Chat_V1_User
        var mentions: RepeatedField<UInt64>
        do {
            var message = Self.sample()
            author = message.author
            mentions = message.mentions
            message.author.name = "Eve"
            message.mentions[0] = 9
            #expect(author.name == "Ada")
            #expect(mentions == [1, 2, 3])
        }
        author.name += " Lovelace"
        mentions.removeFirst()
        #expect(author.name == "Ada Lovelace")
        #expect(mentions == [2, 3])
    }

    @Test func anAbsentSubmessageReadsAsTheDefaultAndStaysAbsent() {
        let message = ChatMessage()
        #expect(message.author.name == "")
        #expect(message.author == Sample_Chat_V1_User())
        #expect(!message.hasAuthor)
        #expect(message == ChatMessage())
    }

    @Test func changingAnAbsentSubmessageCreatesIt() {
        var message = ChatMessage()
        message.author.level = 3
        #expect(message.hasAuthor)
        #expect(message.author.level == 3)
        #expect(ChatMessage() != message)
    }

    // MARK: Changes in place that end differently than they began

    @Test func replacingASubmessageWhileItIsLent() {
        var message = Self.sample()
        func replace(_ author: inout Sample_Chat_V1_User) { author = .with { $0.name = "New" } }
        replace(&message.author)
        #expect(message.author.name == "New")
        #expect(message.text == "hello")
    }

    @Test func keepingACopyOfALentSubmessage() {
        var message = Self.sample()
        var kept: [Sample_Chat_V1_User] = []
        func change(_ author: inout Sample_Chat_V1_User) {
            author.name = "First"
            kept.append(author)
            author.name = "Second"
            kept.append(author)
        }
        change(&message.author)
        message.author.name += "!"
        kept[0].name += "?"
        #expect(message.author.name == "Second!")
        #expect(kept.map(\.name) == ["First?", "Second"])
        #expect(message.text == "hello")
    }

    @Test func keepingACopyWithoutChangingItAfterwards() {
        var message = Self.sample()
        var kept: Sample_Chat_V1_User?
        func look(_ author: inout Sample_Chat_V1_User) { kept = author }
        look(&message.author)
        message.author.name = "Changed"
        message.text = "changed"
        #expect(kept?.name == "Ada")
        #expect(message.author.name == "Changed")
    }

    @Test func keepingACopyOfADeeplyLentPart() {
        var message = Self.sample()
        message.replyTo.replyTo.author.name = "Deep"
        var kept: Sample_Chat_V1_User?
        func look(_ author: inout Sample_Chat_V1_User) { kept = author }
        look(&message.replyTo.replyTo.author)
        message.replyTo.replyTo.author.name = "Deeper"
        message.replyTo.text = "changed"
        #expect(kept?.name == "Deep")
        #expect(message.replyTo.replyTo.author.name == "Deeper")
    }

    @Test func promotingAPartOfALentSubmessage() {
        var message = Self.sample()
        message.replyTo.replyTo.text = "first"
        func promote(_ reply: inout ChatMessage) { reply = reply.replyTo }
        promote(&message.replyTo)
        #expect(message.replyTo.text == "first")
        #expect(!message.replyTo.hasReplyTo)
        #expect(message.text == "hello")
    }

    @Test func aMessageCanAnswerItself() {
        var message = Self.sample()
        let before = message
        message.replyTo = message
        #expect(message.replyTo == before)
        message.replyTo.replyTo.text = "changed"
        #expect(before == Self.sample())
        #expect(message.replyTo.replyTo.text == "changed")
        #expect(message.text == "hello")
    }

    @Test func throwingWhileASubmessageIsLentKeepsWhatWasDone() {
        struct Stop: Error {}
        var message = Self.sample()
        func change(_ author: inout Sample_Chat_V1_User) throws {
            author.name = "Half"
            throw Stop()
        }
        #expect(throws: Stop.self) { try change(&message.author) }
        #expect(message.author.name == "Half")
        #expect(message.text == "hello")
    }

    @Test func replacingALentList() {
        var message = Self.sample()
        func replace(_ mentions: inout RepeatedField<UInt64>) { mentions = [7] }
        replace(&message.mentions)
        #expect(message.mentions == [7])
        message.mentions.append(8)
        #expect(message.mentions == [7, 8])
        #expect(message.text == "hello")
    }

    @Test func keepingACopyOfALentListAndOfAnElement() {
        var message = Self.sample()
        var kept: RepeatedField<Sample_Chat_V1_Attachment> = []
        var element = Sample_Chat_V1_Attachment()
        func change(_ attachments: inout RepeatedField<Sample_Chat_V1_Attachment>) {
            attachments.append(.with { $0.url = "c" })
            kept = attachments
            element = attachments[2]
            attachments[2].url = "d"
        }
        change(&message.attachments)
        element.size = 1
        #expect(kept.map(\.url) == ["a", "b", "c"])
        #expect(message.attachments.map(\.url) == ["a", "b", "d"])
        #expect(element.url == "c")
        #expect(message.attachments[2].size == 0)
    }

    // MARK: Oneofs

    @Test func switchingAOneofForgetsTheOldMember() {
        var message = ChatMessage()
        message.sticker = "a long sticker name that needs memory of its own"
        message.location.altitude = -7
        #expect(message.sticker == "")
        #expect(message.location.altitude == -7)
        message.voice = [1, 2, 3]
        #expect(message.body == .voice([1, 2, 3]))
        message.body = .poll(.with { $0.choices = ["yes", "no"] })
        #expect(message.poll.choices == ["yes", "no"])
        message.poll.votes[4] = 1
        #expect(message.poll.votes == [4: 1])
        message.body = nil
        #expect(message == ChatMessage())
        message.sticker = "again"
        #expect(message.sticker == "again")
    }

    // MARK: Equality and hashing

    @Test func equalMessagesHashAlike() throws {
        let message = Self.sample()
        let decoded = try ChatMessage(serializedBytes: message.serializedBytes())
        #expect(message == decoded)
        #expect(message.hashValue == decoded.hashValue)
        #expect(Set([message, decoded]).count == 1)
        var other = decoded
        other.nonce = 1
        #expect(other != message)
    }

    @Test func floatsAreComparedByTheirBits() {
        let nan = ChatMessage.with { $0.location.latitude = .nan }
        #expect(nan == nan)
        #expect(nan == ChatMessage.with { $0.location.latitude = .nan })
        let negative = ChatMessage.with { $0.location.latitude = -0.0 }
        let positive = ChatMessage.with { $0.location.latitude = 0.0 }
        #expect(negative != positive)
    }

    @Test func sharedMessagesAreReadAndCopiedByManyTasks() async {
        let message = Self.sample()
        await withTaskGroup(of: String.self) { group in
            for number in 0..<64 {
                group.addTask {
                    var copy = message
                    copy.author.name = "\(number)"
                    copy.replyTo.text += copy.author.name
                    return message.replyTo.text + copy.replyTo.text
                }
            }
            var seen: Set<String> = []
            for await text in group { seen.insert(text) }
            #expect(seen == Set((0..<64).map { "earlierearlier\($0)" }))
        }
        #expect(message == Self.sample())
    }
}
