import Foundation
import SwiftProtobuf

typealias User = Example_Chat_V1_User
typealias Presence = Example_Chat_V1_Presence
typealias ChatMessage = Example_Chat_V1_ChatMessage
typealias Room = Example_Chat_V1_Room
typealias ClientFrame = Example_Chat_V1_ClientFrame
typealias ServerFrame = Example_Chat_V1_ServerFrame
typealias FailureCode = Example_Chat_V1_FailureCode
typealias LimitExceeded = Example_Chat_V1_LimitExceeded

/// Why the server does not do what a frame asks for.
struct ChatError: Error {
    var code: FailureCode
    var reason: String
    var detail: (any SwiftProtobuf.Message)?
}

/// Answers encoded frames with encoded frames.
actor ChatServer {
    static let attachmentLimit = 64
    private var rooms = MessageStore<Room>()
    private var roomName: String?
    private var clock = Clock()
    private(set) var receivedByteCount = 0

    var storedByteCount: Int { rooms.byteCount }

    /// How often the server failed, by the number of the code.
    private(set) var failures: [Int: Int] = [:]

    func answer(_ data: Data) throws -> Data {
        receivedByteCount += data.count
        let frame: ClientFrame
        do {
            frame = try ClientFrame(serializedData: data)
        } catch {
            return try failure(ChatError(code: .badRequest, reason: reason(for: error)), callID: 0)
        }
        do {
            var reply = try answer(frame)
            reply.callID = frame.callID
            return try reply.serializedData()
        } catch let error as ChatError {
            return try failure(error, callID: frame.callID)
        }
    }

    private func failure(_ error: ChatError, callID: UInt32) throws -> Data {
        failures[error.code.rawValue, default: 0] += 1
        return try ServerFrame.with {
            $0.callID = callID
            $0.failure.code = error.code
            $0.failure.reason = error.reason
            if let detail = error.detail { $0.failure.detail = try Google_Protobuf_Any(message: detail) }
        }.serializedData()
    }

    private func answer(_ frame: ClientFrame) throws -> ServerFrame {
        switch frame.request {
        case .join(let join):
            return try .with { $0.joined = try self.join(join) }
        case .post(let message):
            return try .with { $0.posted = try post(message) }
        case .history(let history):
            return try .with { $0.page.messages = try log(history) }
        case .leave:
            roomName = nil
            return .with { $0.left = Google_Protobuf_Empty() }
        case nil:
            throw ChatError(code: .badRequest, reason: "no request")
        }
    }

    private func join(_ request: ClientFrame.Join) throws -> Room {
        guard request.hasUser, !request.room.isEmpty else {
            throw ChatError(code: .badRequest, reason: "join needs a user and a room")
        }
        roomName = request.room
        try rooms.update(request.room) {
            $0.name = request.room
            $0.members[request.user.id] = request.user
            $0.members[request.user.id]?.presence = .online
        }
        return try rooms.get(request.room) ?? Room()
    }

    private func post(_ message: ChatMessage) throws -> ChatMessage {
        guard let roomName else { throw ChatError(code: .notJoined, reason: "join a room first") }
        if message.attachment.content.count > Self.attachmentLimit {
            let detail = LimitExceeded.with {
                $0.limit = "attachment"
                $0.allowed = UInt64(Self.attachmentLimit)
                $0.actual = UInt64(message.attachment.content.count)
            }
            throw ChatError(code: .tooLarge, reason: "the attachment is too large", detail: detail)
        }
        var posted = message
        posted.sentAt = clock.advance(by: 2.5)
        try rooms.update(roomName) { room in
            posted.id = UInt64(room.log.count + 1)
            if case .reaction(let reaction) = posted.body,
                let index = room.log.firstIndex(where: { $0.id == reaction.messageID })
            {
                room.log[index].headers["reaction-\(posted.author.id)"] = reaction.emoji
            }
            room.log.append(posted)
        }
        return posted
    }

    private func log(_ request: ClientFrame.History) throws -> [ChatMessage] {
        guard let roomName, let room = try rooms.get(roomName) else {
            throw ChatError(code: .notJoined, reason: "join a room first")
        }
        let wanted = request.priorities.isEmpty ? ChatMessage.Priority.allCases : request.priorities
        return Array(room.log.filter { wanted.contains($0.priority) }.suffix(Int(request.limit)))
    }
}

/// One user's end of the session.
struct ChatClient {
    let server: ChatServer
    let user: User
    private var callID: UInt32 = 0

    init(server: ChatServer, user: User) {
        self.server = server
        self.user = user
    }

    mutating func call(_ request: ClientFrame.OneOf_Request) async throws -> ServerFrame.OneOf_Reply? {
        callID += 1
        let frame = ClientFrame.with {
            $0.callID = callID
            $0.request = request
        }
        let reply = try ServerFrame(serializedData: try await server.answer(frame.serializedData()))
        return reply.callID == callID ? reply.reply : nil
    }

    mutating func post(_ populate: (inout ChatMessage) -> Void) async throws -> ServerFrame.OneOf_Reply? {
        var message = ChatMessage.with(populate)
        message.author = user
        message.author.clearStatusLine()
        return try await call(.post(message))
    }
}

extension ServerFrame.OneOf_Reply {
    var line: String {
        get throws {
            switch self {
            case .joined(let room): return "joined \(room.name) with \(room.members.keys.sorted())"
            case .posted(let message): return "posted \(message.id) \(message.line)"
            case .page(let page): return "page of \(page.messages.count)"
            case .failure(let failure):
                guard failure.hasDetail else { return "\(failure.code) \(failure.code.rawValue): \(failure.reason)" }
                let detail = try LimitExceeded(unpackingAny: failure.detail)
                return "\(failure.code): \(detail.limit) \(detail.actual) > \(detail.allowed)"
            case .left: return "left"
            }
        }
    }
}

extension ChatMessage {
    var line: String {
        let time = hasSentAt ? sentAt.date.timeIntervalSince1970 : 0
        let reply = hasReplyTo ? " re \(replyTo)" : ""
        let media = attachment.hasMediaType ? attachment.mediaType : "?"
        let text: String
        switch body {
        case .text(let words)?: text = words
        case .attachment(let file)?: text = "\(file.fileName) (\(media), \(file.content.count) bytes)"
        case .reaction(let reaction)?: text = "\(reaction.emoji) on \(reaction.messageID)"
        case nil: text = ""
        }
        return "[\(priority)] \(author.name) at \(time)\(reply): \(text)"
    }
}

func runChat(_ report: inout Report) async throws {
    report.begin("Chat")
    report.add("Presences", values(of: Presence.self))
    report.add("Priorities", values(of: ChatMessage.Priority.self))
    let server = ChatServer()
    let ada = User.with {
        $0.id = "ada"
        $0.name = "Ada"
        $0.statusLine = "hello"
        $0.avatar = Data("PNG".utf8)
        $0.avatar.append(contentsOf: [0, 1, 2])
    }
    report.check(ada.hasStatusLine && ada.avatar.count == 6, "a user has what was set")
    report.add("Avatar", "\(ada.avatar.hex) \(ada.avatar.base64EncodedString())")

    var client = ChatClient(server: server, user: ada)
    var replies: [ServerFrame.OneOf_Reply?] = []
    replies.append(try await client.post { $0.text = "too early" })
    replies.append(try await client.call(.join(.init())))
    replies.append(
        try await client.call(
            .join(
                .with {
                    $0.room = "lounge"
                    $0.user = ada
                }
            )
        )
    )
    replies.append(
        try await client.post {
            $0.text = "Hello, lounge"
            $0.mentions = ["bob", "eve"]
            $0.headers = ["lang": "en"]
        }
    )
    replies.append(
        try await client.post {
            $0.attachment.fileName = "notes.txt"
            $0.attachment.mediaType = "text/plain"
            $0.attachment.content = Data("a few words".utf8)
            $0.priority = .high
            $0.replyTo = 1
        }
    )
    replies.append(try await client.post { $0.attachment.content = Data(count: ChatServer.attachmentLimit + 1) })
    replies.append(try await client.post { $0.reaction = .with { ($0.messageID, $0.emoji) = (1, "+1") } })
    replies.append(try await client.call(.history(.with { $0.limit = 2 })))
    for reply in replies { report.add("Reply", try reply?.line ?? "none") }

    for priority in ChatMessage.Priority.allCases {
        let request = ClientFrame.History.with {
            $0.limit = 10
            $0.priorities = [priority]
        }
        guard case .page(let page) = try await client.call(.history(request)) else { continue }
        report.add("Log of \(priority)", page.messages.map { "\($0.id) \($0.headers.keys.sorted())" })
    }
    replies = [try await client.call(.leave(Google_Protobuf_Empty())), try await client.call(.history(.init()))]
    for reply in replies { report.add("Reply", try reply?.line ?? "none") }

    // Frames that no client of this version would send.
    let truncated = try ClientFrame.with { $0.history.limit = 300 }.serializedData().dropLast()
    for data in [Data(truncated), Data([0x1a, 0x02, 0x08]), Data([0x00])] {
        let reply = try ServerFrame(serializedBytes: try await server.answer(data))
        report.add("Bad frame", try reply.reply?.line ?? "none")
    }
    report.add("Bytes", "\(await server.receivedByteCount) received, \(await server.storedByteCount) stored")

    for code in FailureCode.allCases { report.add("\(code)", await server.failures[code.rawValue] ?? 0) }

    let future = try User(serializedBytes: [0x0a, 0x03, 0x61, 0x64, 0x61, 0x18, 0x2a] as [UInt8])
    report.check(future.presence == Presence(rawValue: 42), "a number that the enum does not have is kept")
    report.add("Presence", "\(future.presence) \(future.presence.rawValue)")
    report.check(try future.serializedData() == Data([0x0a, 3, 0x61, 0x64, 0x61, 0x18, 0x2a]), "and written again")
    report.add("Inventory", try inventory(of: [ada, future, ChatMessage(), Google_Protobuf_Empty()]))
    report.add("Senders", try await digests(of: [ada, future]).joined(separator: " "))
}

/// The digests of the users, each worked out in a task of its own.
private func digests(of users: [User]) async throws -> [String] {
    try await withThrowingTaskGroup(of: (Int, String).self) { group in
        for (index, user) in users.enumerated() {
            group.addTask { (index, try user.serializedData().digest) }
        }
        var digests = users.map(\.name)
        for try await (index, digest) in group { digests[index] += "/\(digest)" }
        return digests
    }
}
