import Lifeline
import Synchronization
import Testing

extension TestContent: StorableContent {
    var encoded: [UInt8] { Array("\(number),\(byteCount),\(method)".utf8) }

    init(encoded: [UInt8]) throws {
        let parts = String(decoding: encoded, as: UTF8.self).split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count == 3, let number = Int(parts[0]), let byteCount = Int(parts[1]) else {
            throw DiskError(reason: "no content")
        }
        self.init(number: number, byteCount: byteCount, method: String(parts[2]))
    }
}

struct DiskError: Error, Equatable {
    let reason: String
}

/// What outlives the processes of a test: entries as bytes, which may become unreadable, and room for so many of them.
final class TestDisk: Sendable {
    struct State {
        var entries: [UInt64: (bytes: [UInt8], delivery: SessionDelivery)] = [:]
        var capacity = 100
    }

    let state = Mutex(State())

    var numbers: [UInt64] { state.withLock { $0.entries.keys.sorted() } }
}

/// Keeps pushes on a test's disk.
struct DiskStore: OutboundStore {
    let disk: TestDisk

    mutating func load() throws(DiskError) -> [StoredPush<TestContent>] {
        var pushes: [StoredPush<TestContent>] = []
        for (number, entry) in disk.state.withLock({ $0.entries }).sorted(by: { $0.key < $1.key }) {
            guard let content = try? TestContent(encoded: entry.bytes) else {
                throw DiskError(reason: "\(number) cannot be read")
            }
            pushes.append(StoredPush(number: number, content: content, delivery: entry.delivery))
        }
        return pushes
    }

    mutating func keep(_ push: StoredPush<TestContent>) throws(DiskError) {
        let isKept = disk.state.withLock { state in
            guard state.entries.count < state.capacity else { return false }
            return state.entries.updateValue((push.content.encoded, push.delivery), forKey: push.number) == nil
        }
        if !isKept { throw DiskError(reason: "the disk is full") }
    }

    mutating func remove(number: UInt64) {
        let removed = disk.state.withLock { $0.entries.removeValue(forKey: number) }
        #expect(removed != nil, "only what is kept is forgotten")
    }
}

@Suite struct OutboundStoreTests {
    typealias Machine = SessionMachine<DiskStore, Int>

    let disk = TestDisk()

    /// A client in a process of its own.
    func process(frames: Int = 100) throws -> Machine {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(frameCount: frames, byteCount: 10_000)
        return try Machine(role: .client, options: options, store: DiskStore(disk: disk), now: .ms(0))
    }

    func push(_ machine: inout Machine, _ number: Int, _ delivery: SessionDelivery = .reliable) throws {
        _ = try machine.push(TestContent(number: number), delivery, isObserved: true, now: .ms(0))
    }

    /// Begins a session; returns what is sent in it.
    func open(_ machine: inout Machine) -> String {
        _ = machine.connected(now: .ms(0))
        _ = sent(&machine)
        _ = machine.received(.welcome(.test()), now: .ms(0))
        return sent(&machine)
    }

    func sent(_ machine: inout Machine) -> String {
        var lines: [String] = []
        while let (frame, _) = machine.nextFrame(now: .ms(0)) { lines.append(line(frame)) }
        return lines.joined(separator: ", ")
    }

    @Test func theNextProcessSendsWhatWasLeftInItsOwnSession() throws {
        do {
            var first = try process()
            for number in 1...2 { try push(&first, number) }
            _ = try first.request(TestContent(number: 3), 3, deadline: nil, now: .ms(0))
            try push(&first, 4, .replaceable(key: "a"))
            #expect(open(&first) == "o1 push 1, o2 push 2, o3 request 1 3, o4 push 4")
            try push(&first, 5)
            try push(&first, 6, .replaceable(key: "a"))
            try push(&first, 7, .atMostOnce)
            _ = first.received(.acknowledgement(1), now: .ms(0))
            #expect(disk.numbers == [2, 4, 5, 6], "neither requests nor what is sent at most once")
            // It is killed.
        }
        var second = try process()
        #expect(second.outbound.nextNumber == 7 && second.outbound.keptSize.frameCount == 3)
        #expect(disk.numbers == [2, 5, 6], "the older of a key had not been forgotten")
        try push(&second, 8)
        #expect(open(&second) == "o1 push 2, o2 push 6, o3 push 5, o4 push 8")
        #expect(disk.numbers == [2, 5, 6, 7])
        let ended = second.received(.acknowledgement(4), now: .ms(0))
        #expect(ended.count == 1, "who brought the others is gone")
        #expect(disk.numbers == [])
    }

    @Test func nobodyWaitsForRoomThatAnotherProcessTook() throws {
        var first = try process()
        for number in 1...5 { try push(&first, number) }
        // Three ordinary ones.
        var second = try process(frames: 4)
        let (offer, _) = try second.push(TestContent(number: 6), now: .ms(0))
        #expect(offer == .accepted(6, isAdmitted: false))
        #expect(open(&second) == "o1 push 1, o2 push 2, o3 push 3")
    }

    @Test func whatCannotBeKeptIsNotAccepted() throws {
        disk.state.withLock { $0.capacity = 2 }
        var machine = try process()
        for number in 1...2 { try push(&machine, number) }
        #expect(throws: DiskError(reason: "the disk is full")) { try push(&machine, 3) }
        #expect(machine.outbound.keptSize.frameCount == 2 && machine.outbound.nextNumber == 3)
        // The older one is there until the newer is kept.
        try push(&machine, 4, .atMostOnce)
        _ = try machine.request(TestContent(number: 5), 5, deadline: nil, now: .ms(0))
        #expect(open(&machine) == "o1 push 1, o2 push 2, o3 request 1 5", "what is not kept needs no disk")
        _ = machine.received(.acknowledgement(1), now: .ms(0))
        try push(&machine, 6)
        #expect(sent(&machine) == "o4 push 6")
    }

    @Test func aPushThatReplacesOneIsKeptFirst() throws {
        disk.state.withLock { $0.capacity = 1 }
        var machine = try process()
        try push(&machine, 1, .replaceable(key: "a"))
        #expect(throws: DiskError.self) { try push(&machine, 2, .replaceable(key: "a")) }
        #expect(open(&machine) == "o1 push 1" && disk.numbers == [1])
    }

    @Test func whatCannotBeReadAnyMoreIsAnErrorAndNothingIsSentInItsPlace() throws {
        var first = try process()
        for number in 1...3 { try push(&first, number) }
        disk.state.withLock { $0.entries[2]?.bytes = [0xff] }
        #expect(throws: DiskError(reason: "2 cannot be read")) { _ = try process() }
        #expect(disk.numbers == [1, 2, 3])
    }

    @Test func whatWasNotSentAtTheEndStaysAndWhatIsInDoubtIsTold() throws {
        var machine = try process()
        for number in 1...2 { try push(&machine, number) }
        _ = open(&machine)
        _ = machine.disconnected(now: .ms(0))
        try push(&machine, 3)
        try push(&machine, 4, .expiring(after: .milliseconds(5)))
        _ = machine.timerFired(now: .ms(5))
        #expect(disk.numbers == [1, 2, 3], "what has expired is forgotten")
        let outcomes = machine.abandon(SessionGoodbye(.closed)).compactMap { action in
            if case .messageEnded(let number, let outcome) = action { "#\(number) \(outcome)" } else { nil }
        }
        #expect(outcomes == ["#1 inDoubt", "#2 inDoubt", "#3 unsent"] && disk.numbers == [3])
        var next = try process()
        #expect(open(&next) == "o1 push 3")
    }
}
