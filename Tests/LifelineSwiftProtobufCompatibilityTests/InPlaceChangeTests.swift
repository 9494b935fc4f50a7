internal import CompatibilityTestProtos
internal import FoundationEssentials
internal import LifelineSwiftProtobufCompatibility
internal import LifelineTestSupport
internal import Testing

/// Lists that are changed in place stay arrays until the message is used as a whole.
@Suite struct InPlaceChangeTests {
    /// A new array has another address, and no spare capacity.
    @Test func appendingConvertsTheListOnce() throws {
        var message = ChatMessage()
        func place() -> UnsafePointer<String>? { message.poll.choices.withUnsafeBufferPointer(\.baseAddress) }
        message.poll.choices.reserveCapacity(1_000)
        message.poll.choices.append("first")
        let start = place()
        for index in 0..<900 {
            message.poll.choices.append("\(index)")
            message.poll.votes[UInt64(index)] = 1
            message.headers["\(index)"] = "a"
            message.id = "\(index)"
            message.author.level += 1
        }
        #expect(place() == start && message.poll.choices.count == 901 && message.author.level == 900)
        #expect(message.poll.votes.count == 900 && message.headers.count == 900)
        message.headers.reserveCapacity(10_000)
        message.headers["more"] = "b"
        #expect(message.headers.capacity >= 10_000)
        #expect(try ChatMessage(serializedData: message.serializedData()) == message)
        #expect(place() == start)
    }

    @Test func elementsKeepTheirLists() {
        var message = ChatMessage.with { $0.replyTo.attachments = [Attachment(), Attachment()] }
        var choices: UnsafePointer<UInt64>?
        for index in 0..<100 {
            message.replyTo.replyTo.mentions.append(UInt64(index))
            if index == 0 { message.replyTo.replyTo.mentions.reserveCapacity(200) }
            let place = message.replyTo.replyTo.mentions.withUnsafeBufferPointer(\.baseAddress)
            #expect(index < 2 || place == choices)
            choices = place
            message.replyTo.attachments[1].size += 1
        }
        #expect(message.replyTo.attachments.map(\.size) == [0, 100])
    }

    @Test func otherUsesSeeChanges() throws {
        var message = ChatMessage()
        message.mentions.append(1)
        #expect(message.mentionsField == [1] && message.mentionsField.count == 1)
        message.mentions.append(2)
        message.mentionsField.append(3)
        #expect(message.mentions == [1, 2, 3])
        message.mentions.append(4)
        #expect(message == .with { $0.mentions = [1, 2, 3, 4] } && message.hashValue == message.hashValue)
        #expect(try message.jsonString() == #"{"mentions":["1","2","3","4"]}"#)
        message.mentions = [5]
        message.mentions.append(6)
        try message.merge(serializedBytes: [0x3A, 1, 7] as [UInt8])
        #expect(message.mentions == [5, 6, 7])
        message.mentions.removeAll()
        #expect(message == ChatMessage())
        message.replyTo.attachments.append(.with { $0.size = 1 })
        let reply = message.replyTo
        #expect(reply.attachments.count == 1 && reply == .with { $0.attachments = [.with { $0.size = 1 }] })
        #expect(message.hasReplyTo)
    }

    @Test func submessagesThatGoTakeTheirListsWithThem() {
        var message = ChatMessage()
        message.replyTo.mentions.append(1)
        message.clearReplyTo()
        message.replyTo.id = "new"
        #expect(message.replyTo.mentions.isEmpty)
        message.replyTo.mentions.append(1)
        message.replyTo = .with { $0.id = "other" }
        #expect(message.replyTo.mentions.isEmpty && message.replyTo.id == "other")
        for replace in [
            { $0.sticker = "a" }, { $0.voice = Data([1]) }, { $0.location.altitude = 1 }, { $0.body = nil },
            { $0.location = Sample_Chat_V1_Location() }, { $0.body = .poll(.with { $0.question = "a" }) },
        ] as [(inout ChatMessage) -> Void] {
            message.poll.choices.append("yes")
            #expect(message.body == .poll(.with { $0.choices = ["yes"] }))
            replace(&message)
            message.poll.question = "?"
            #expect(message.poll == .with { $0.question = "?" })
            message.poll = Sample_Chat_V1_Poll()
        }
    }

    @Test func copiesOfAMessageThatChangesAreIndependent() async throws {
        var message = ChatMessage()
        for index in 0..<100 {
            message.mentions.append(UInt64(index))
            message.replyTo.poll.choices.append("\(index)")
        }
        var copy = message
        let encodings = try await withThrowingTaskGroup(of: Data.self) { [message] group in
            for _ in 0..<8 { group.addTask { try message.serializedData() } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(encodings) == [try copy.serializedData()])
        message.mentions.append(100)
        message.id = "a"
        copy.replyTo.poll.choices.append("more")
        copy.flags = 2
        #expect(message.mentions.count == 101 && copy.mentions.count == 100 && message.flags == 0 && copy.id.isEmpty)
        #expect(message.replyTo.poll.choices.count == 100 && copy.replyTo.poll.choices.count == 101)
        #expect(try ChatMessage(serializedData: message.serializedData()).replyTo.poll.choices.count == 100)
    }

    /// Random changes of a message, of its copies and of one that is encoded and decoded after each.
    @Test(arguments: 0..<20) func randomChangesDoWhatTheyDoToADecodedMessage(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var message = ChatMessage()
        var decoded = ChatMessage()
        var copies: [(message: ChatMessage, encoded: Data)] = []
        for _ in 0..<400 {
            let (kind, choice) = (Int.random(in: 0..<20, using: &generator), Int.random(in: 0..<4, using: &generator))
            Self.change(&message, kind, choice)
            Self.change(&decoded, kind, choice)
            let encoded = try decoded.serializedData()
            decoded = try ChatMessage(serializedData: encoded)
            switch Int.random(in: 0..<12, using: &generator) {
            case 0: #expect(message == decoded)
            case 1: copies.append((message, encoded))
            case 2:
                // Continues with a copy.
                guard let copy = copies.randomElement(using: &generator) else { break }
                message = copy.message
                decoded = try ChatMessage(serializedData: copy.encoded)
            default: break
            }
        }
        #expect(try message.serializedData() == decoded.serializedData())
        for copy in copies { #expect(try copy.message.serializedData() == copy.encoded) }
    }

    private static func change(_ message: inout ChatMessage, _ kind: Int, _ choice: Int) {
        if choice == 3, kind < 15 { return change(&message.replyTo, kind, kind % 3) }
        switch kind {
        case 0: message.mentions.append(UInt64(choice))
        case 1: message.mentions = [UInt64(choice)]
        case 2: message.attachments.append(.with { $0.size = UInt64(choice) })
        case 3: if !message.attachments.isEmpty { message.attachments[message.attachments.count / 2].size += 1 }
        case 4: message.attachments = message.attachments.suffix(3) + message.attachments.prefix(choice)
        case 5: message.poll.choices.append("\(choice)")
        case 6: message.poll.votes[UInt64(choice), default: 0] += 1
        case 7: message.poll.question += "?"
        case 8: message.body = choice == 0 ? nil : message.body
        case 9: message.location.altitude += 1
        case 10: message.headers["\(choice)", default: ""] += "a"
        case 11: message.headers["\(choice)"] = nil
        case 12: message.id += "a"
        case 13: message.author.name += "b"
        case 14: if choice == 1 { message.clearReplyTo() } else { message.replyTo.kindsSeen.append(.image) }
        case 15: message.attachmentsField.append(Attachment())
        case 16: message.replyTo = message.replyTo.replyTo
        case 17: message.replyTo.poll = message.poll
        case 18: message.replyTo.attachments += message.attachments.prefix(2)
        default: message.poll.closesAt.seconds += 1
        }
    }
}
