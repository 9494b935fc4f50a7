internal import ChatFleetProtos
internal import Lifeline
internal import LifelineFleet
internal import LifelineWellKnownTypes

/// The service of the rooms. A room is a group of the fleet, which keeps its members and its history.
struct ChatRooms: Example_Chat_V1_ChatHandler {
    static let groupPrefix = "rooms/"

    let fleet: Fleet

    func say(
        _ request: Example_Chat_V1_SayRequest,
        context: SessionContext
    ) async throws -> Example_Chat_V1_SayReply {
        let group = ChatRooms.groupPrefix + request.room
        try ChatRooms.check(group: group)
        try check("key", request.key, maximumByteCount: 64)
        try check("from", request.from, maximumByteCount: 160)
        try check("text", request.text, maximumByteCount: 16 << 10)
        let message = Example_Chat_V1_Message.with {
            $0.key = request.key
            $0.from = request.from
            $0.text = request.text
            $0.sentAt = .now()
        }
        do {
            try await fleet.push(Example_Chat_V1_ChatPushes.said, message, to: group)
        } catch {
            guard error.code == .engineFailed else { throw error }
            // The room may have it. The client says it again, with the same key.
            throw SessionStatus(.unavailable, "The room cannot be reached at the moment.")
        }
        return Example_Chat_V1_SayReply()
    }

    /// Whether a group is a room. Anybody may join a room.
    static func check(group: String) throws {
        let name = group.utf8.dropFirst(groupPrefix.utf8.count)
        let isName = name.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
            default: false
            }
        }
        guard group.hasPrefix(groupPrefix), isName, 1...32 ~= name.count else {
            throw SessionStatus(.invalidArgument, "A room has 1 to 32 lower-case letters, digits and hyphens.")
        }
    }

    private func check(_ field: String, _ text: String, maximumByteCount: Int) throws {
        guard 1...maximumByteCount ~= text.utf8.count else {
            throw SessionStatus(.invalidArgument, "\"\(field)\" has 1 to \(maximumByteCount) bytes.")
        }
    }
}
