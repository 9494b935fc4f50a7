internal import Lifeline
internal import LifelineProtos
internal import LifelineWellKnownTypes
internal import Synchronization

/// All connected members, over any transport.
///
/// A sending member waits for nobody. Each member has an outbox that holds a bounded number of bytes. A member that
/// does not read in time misses messages, and gets their number.
final class Room: Sendable {
    typealias MemberConnection = Connection<Sample_Chat_V1_ChatMessage, RawMessage>

    /// In bytes, both ways; the page has the same limit.
    static let maximumMessageLength = 64 << 10

    private struct State {
        var members: [UInt64: Member] = [:]
        var nextID: UInt64 = 0
    }

    private let state = Mutex(State())

    /// The handler of a connection: takes part in the room until the peer ends its side, or the server shuts down.
    @Sendable func serve(_ connection: MemberConnection) async throws {
        let (id, member) = try join()
        defer { leave(id) }
        try await withThrowingTaskGroup { group in
            group.addTask { try await member.forwardMessages(to: connection) }
            group.addTask {
                for try await message in connection.messages { try self.tell(message, from: id) }
            }
            // The member has left, or sending has failed.
            try await group.next()
            group.cancelAll()
        }
    }

    private func join() throws -> (id: UInt64, member: Member) {
        let member = Member()
        let id = try state.withLock { state in
            // First the greeting, and then the messages of others.
            try member.put(.greeting(othersCount: state.members.count))
            state.nextID += 1
            state.members[state.nextID] = member
            return state.nextID
        }
        return (id, member)
    }

    private func leave(_ id: UInt64) {
        state.withLock { _ = $0.members.removeValue(forKey: id) }
    }

    /// A message that was within the limit when it arrived, but exceeds it when it is encoded again: its sender is cut.
    private struct TooLong: Error, CustomStringConvertible {
        let description = "A message is too long to be passed on."
    }

    /// Puts a message into the outboxes of all members except its sender. It is encoded once, and they share its bytes.
    private func tell(_ message: Sample_Chat_V1_ChatMessage, from speaker: UInt64) throws {
        var message = message
        // Only the room sends as the system.
        if message.kind == .system { message.kind = .text }
        let encoded = try RawMessage(message)
        // The new encoding may be longer than the received one, and no listener may be refused it.
        guard encoded.bytes.count <= Room.maximumMessageLength else { throw TooLong() }
        let listeners = state.withLock { $0.members.filter { $0.key != speaker } }
        for member in listeners.values { member.put(encoded) }
    }
}

/// A member of the room, and its waiting messages.
private final class Member: Sendable {
    private let outbox = Mutex(Outbox())
    /// Signals that there is something in the outbox.
    private let bell = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    func put(_ message: RawMessage) {
        outbox.withLock { $0.put(message) }
        bell.continuation.yield()
    }

    /// Sends the messages in the outbox, until the task is cancelled. `send` waits while the peer does not read.
    func forwardMessages(to connection: Room.MemberConnection) async throws {
        for await _ in bell.stream {
            let (messages, missedCount) = outbox.withLock { $0.takeAll() }
            for message in messages { try await connection.send(message) }
            if missedCount > 0 { try await connection.send(.missed(count: missedCount)) }
        }
    }
}

/// The room's own messages.
extension RawMessage {
    fileprivate static func greeting(othersCount: Int) throws -> RawMessage {
        let company =
            switch othersCount {
            case 0: "alone"
            case 1: "with 1 other"
            default: "with \(othersCount) others"
            }
        return try notice("You are in the room, \(company).")
    }

    fileprivate static func missed(count: Int) throws -> RawMessage {
        let messages = count == 1 ? "1 message" : "\(count) messages"
        return try notice("You missed \(messages): they came faster than you read.")
    }

    private static func notice(_ text: String) throws -> RawMessage {
        try RawMessage(
            Sample_Chat_V1_ChatMessage.with {
                $0.kind = .system
                $0.text = text
                $0.sentAt = .now()
            }
        )
    }
}
