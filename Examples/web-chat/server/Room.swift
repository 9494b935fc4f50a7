internal import Lifeline
internal import LifelineProtos
internal import LifelineWellKnownTypes
internal import Synchronization

/// Those who are connected, whatever over.
///
/// A member who speaks waits for nobody. Each member has an outbox that holds a bounded number of bytes. A member who
/// does not read in time misses messages, and is told how many.
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
            // First what greets, and then what others say.
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

    /// A message that was within the limit as it came, and is not as it would be passed on: its speaker is cut.
    private struct TooLong: Error, CustomStringConvertible {
        let description = "A message is too long to be passed on."
    }

    /// Puts a message into the outboxes of all but who said it. It is encoded once, and they share its bytes.
    private func tell(_ message: Sample_Chat_V1_ChatMessage, from speaker: UInt64) throws {
        var message = message
        // Only the room speaks as the system.
        if message.kind == .system { message.kind = .text }
        let encoded = try RawMessage(message)
        // What is encoded anew may be longer than what came, and no listener is to be refused it.
        guard encoded.bytes.count <= Room.maximumMessageLength else { throw TooLong() }
        let listeners = state.withLock { $0.members.filter { $0.key != speaker } }
        for member in listeners.values { member.put(encoded) }
    }
}

/// Somebody in the room, and what they have still to be told.
private final class Member: Sendable {
    private let outbox = Mutex(Outbox())
    /// Rings when there is something in the outbox.
    private let bell = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    func put(_ message: RawMessage) {
        outbox.withLock { $0.put(message) }
        bell.continuation.yield()
    }

    /// Sends what is in the outbox, until the task is cancelled. `send` waits while the peer does not read.
    func forwardMessages(to connection: Room.MemberConnection) async throws {
        for await _ in bell.stream {
            let (messages, missedCount) = outbox.withLock { $0.takeAll() }
            for message in messages { try await connection.send(message) }
            if missedCount > 0 { try await connection.send(.missed(count: missedCount)) }
        }
    }
}

/// What the room itself says.
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
