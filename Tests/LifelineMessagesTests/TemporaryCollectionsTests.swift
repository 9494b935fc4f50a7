import LifelineMessages
import LifelineProtos
import Testing

/// Reading an element of a list, or an entry of a map, that nothing else refers to: see `TemporaryMessagesTests`.
@Suite struct TemporaryCollectionsTests {
    // MARK: Lists

    @Test func numbers() {
        #expect(read { list($0)[1] } == 10)
        #expect(read { list($0).first } == 9)
        #expect(read { list($0).last } == 10)
        #expect(read { list($0).count } == 2)
        #expect(read { list($0).reduce(0, +) } == 19)
        #expect(read { list($0).contains($0) })
        #expect(read { list($0) == list($0) })
        #expect(read { list($0).withContiguousStorageIfAvailable { $0.reduce(0, +) } } == 19)
        #expect(read { sum(each: list($0)) } == 19)
        #expect(read { sum(of: list($0)) } == 19)
    }

    @Test func truthValues() {
        #expect(read { flags($0)[1] })
        #expect(read { flags($0).first } == false)
        #expect(read { flags($0).last } == true)
        #expect(read { flags($0).contains(true) })
        #expect(read { flags($0).reduce(false) { $0 != $1 } })
        #expect(read { flags($0).filter { $0 }.count } == 1)
    }

    @Test func strings() {
        #expect(read { texts($0)[1] } == "a text that is longer than fifteen bytes: 9")
        #expect(read { texts($0).first } == "9")
        #expect(read { texts($0).last?.utf8.count } == 43)
        #expect(read { texts($0).contains("9") })
        #expect(read { texts($0).reduce(0) { $0 + $1.utf8.count } } == 44)
        #expect(read { texts($0).joined().utf8.count } == 44)
        #expect(read { texts($0).withUTF8Span(at: 1) { $0.count } } == 43)
    }

    @Test func messages() {
        #expect(read { users($0)[1].id } == 10)
        #expect(read { users($0)[1].verified })
        #expect(read { users($0).first?.id } == 9)
        #expect(read { users($0).last?.id } == 10)
        #expect(read { users($0).reduce(0) { $0 + $1.id } } == 19)
        #expect(read { number in users(number).contains { $0.id == number } })
        #expect(read { users($0).map(\.id) } == [9, 10])
        #expect(read { RepeatedField<User>([user($0)]).reduce(0) { $0 + $1.id } } == 9)
        let sum = read { number in
            var sum: UInt64 = 0
            users(number).forEach { sum += $0.id }
            for user in users(number) { sum += user.id }
            return sum
        }
        #expect(sum == 38)
    }

    @Test func listsOfMessages() {
        #expect(read { chat($0).mentions[1] } == 10)
        #expect(read { chat($0).mentions.count } == 2)
        #expect(read { chat($0).mentions.first } == 9)
        #expect(read { chat($0).mentions.reduce(0, +) } == 19)
        #expect(read { chat($0).attachments[0].size } == 9)
        #expect(read { chat($0).attachments.map(\.size) } == [9])
        #expect(read { chat($0).kindsSeen.last } == .system)
        #expect(read { chat($0).poll.choices[1] } == "no")
        let sum = read { number in
            var sum: UInt64 = 0
            for attachment in chat(number).attachments { sum += attachment.size }
            for round in 0..<number { sum += chat(round).mentions[1] }
            return sum
        }
        #expect(sum == 9 + 45)
    }

    @Test func loops() {
        let numbers = read { number in
            var sum: UInt64 = 0
            for round in 0..<number { sum &+= list(round)[1] }
            return sum
        }
        #expect(numbers == 45)
        let set = read { number in
            var count = 0
            for round in 0..<number where flags(round)[1] { count &+= 1 }
            return count
        }
        #expect(set == 5)
        let messages = read { number in
            var sum: UInt64 = 0
            for round in 0..<number { sum &+= users(round)[1].id }
            return sum
        }
        #expect(messages == 45)
        let values = read { number in
            var sum: UInt32 = 0
            for round in 0..<number { sum &+= map(round)[round] ?? 0 }
            return sum
        }
        #expect(values == 27)
        let lists = read { number in
            var sum: UInt64 = 0
            for round in 0..<number { sum &+= chat(round).mentions[1] }
            return sum
        }
        #expect(lists == 45)
    }

    @Test func iterators() {
        let sum = read { number in
            var numbers = list(number).makeIterator()
            var users = users(number).makeIterator()
            return [numbers.next(), numbers.next(), users.next()?.id, users.next()?.id]
        }
        #expect(sum == [9, 10, 9, 10])
    }

    // MARK: Maps

    @Test func entries() {
        #expect(read { map($0)[$0] } == 3)
        #expect(read { map($0)[$0 + 10] } == nil)
        #expect(read { map($0)[$0, default: 0] } == 3)
        #expect(read { map($0)[$0 + 10, default: 1] } == 1)
        #expect(read { map($0).count } == 2)
        #expect(read { map($0).first?.key } == 9)
        #expect(read { map($0).last?.value } == 4)
        #expect(read { map($0).keys.contains($0) })
        #expect(read { map($0).values.first } == 3)
        #expect(read { map($0).reduce(0) { $0 + $1.key + UInt64($1.value) } } == 26)
        #expect(read { map($0) == map($0) })
        let sum = read { number in
            var sum: UInt64 = 0
            for (key, value) in map(number) { sum += key + UInt64(value) }
            map(number).forEach { sum += $0 + UInt64($1) }
            return sum
        }
        #expect(sum == 52)
    }

    @Test func textsAndMessages() {
        #expect(read { headers($0)["key"] } == "9")
        #expect(read { headers($0)["other"] } == nil)
        #expect(read { headers($0).first?.key } == "key")
        #expect(read { headers($0).description } == "[key: 9]")
        #expect(read { MapField<UInt64, User>([$0: user($0)])[$0]?.id } == 9)
        #expect(read { MapField<UInt64, User>([$0: user($0)]).first?.value.id } == 9)
        #expect(read { MapField<Bool, Bool>([$0 > 3: true])[true] } == true)
        let lengths = read { number in
            var lengths: [Int] = []
            headers(number).forEachUTF8Span { lengths += [$0.count, $1.count] }
            return lengths
        }
        #expect(lengths == [3, 1])
    }

    @Test func mapsOfMessages() {
        #expect(read { chat($0).poll.votes[$0] } == 3)
        #expect(read { chat($0).poll.votes.count } == 1)
        #expect(read { chat($0).reactions["👍"] } == 9)
        #expect(read { chat($0).reactions.first?.value } == 9)
        #expect(read { chat($0).headers["key"] } == "9")
        #expect(read { chat($0).headers.isEmpty } == false)
        let sum = read { number in
            var sum: UInt64 = 0
            for round in 0..<number { sum += UInt64(chat(round).poll.votes[round] ?? 0) }
            return sum
        }
        #expect(sum == 27)
    }
}

// MARK: - Temporaries

private typealias Chat = Sample_Chat_V1_ChatMessage
private typealias User = Sample_Chat_V1_User

@inline(__always) private func user(_ id: UInt64) -> User { .with { $0.id = id } }

@inline(__always) private func list(_ number: UInt64) -> RepeatedField<UInt64> {
    var list = RepeatedField<UInt64>()
    list.append(number)
    list.append(number + 1)
    return list
}

@inline(__always) private func flags(_ number: UInt64) -> RepeatedField<Bool> {
    var list = RepeatedField<Bool>()
    list.append(number < 3)
    list.append(number > 3)
    return list
}

@inline(__always) private func texts(_ number: UInt64) -> RepeatedField<String> {
    var list = RepeatedField<String>()
    list.append("\(number)")
    list.append("a text that is longer than fifteen bytes: \(number)")
    return list
}

@inline(__always) private func users(_ number: UInt64) -> RepeatedField<User> {
    var list = RepeatedField<User>()
    list.append { $0.id = number }
    list.append {
        $0.id = number + 1
        $0.verified = true
    }
    return list
}

@inline(__always) private func map(_ number: UInt64) -> MapField<UInt64, UInt32> {
    var map = MapField<UInt64, UInt32>()
    map.updateValue(3, forKey: number)
    map.updateValue(4, forKey: number + 1)
    return map
}

@inline(__always) private func headers(_ number: UInt64) -> MapField<String, String> {
    var map = MapField<String, String>()
    map["key"] = "\(number)"
    return map
}

@inline(__always) private func chat(_ number: UInt64) -> Chat {
    var chat = Chat()
    chat.mentions.append(number)
    chat.mentions.append(number + 1)
    chat.attachments.append { $0.size = number }
    chat.kindsSeen = [.text, .system]
    chat.poll.choices = ["yes", "no"]
    chat.poll.votes[number] = 3
    chat.reactions["👍"] = Int64(number)
    chat.headers["key"] = "\(number)"
    return chat
}

private func sum(each list: RepeatedField<UInt64>) -> UInt64 {
    var sum: UInt64 = 0
    list.forEach { sum += $0 }
    return sum
}

private func sum(of list: RepeatedField<UInt64>) -> UInt64 {
    var sum: UInt64 = 0
    for number in list { sum += number }
    return sum
}

/// Returns `body(9)`. The values that it reads are released when this returns, whatever the caller does.
@inline(never) private func read<Result>(_ body: (UInt64) throws -> Result) rethrows -> Result { try body(9) }
