import Lifeline
import LifelineProtos
import NIOConcurrencyHelpers

/// The methods that the peer's client calls, like those of the peer's server.
struct SessionPeerService: SessionService {
    let notes = Notes()
    let values = Notes()
    let requests = Notes()
    let hanging = Signal()
    /// A request was ended before it was answered.
    let ended = Signal()
    let released = Signal()
    /// The peer asks the server to shut down while a handler runs that ends with the hanging one.
    let drainWanted = Signal()
    /// The peer asks the server to forget its session while a handler runs that does not return.
    let forgetWanted = Signal()

    var methods: [SessionMethod] { calls + waits + streams + pushes }

    private var calls: [SessionMethod] {
        [
            .unary("interop.Peer/Echo") { (message: ChatMessage, _) in
                requests.add(message.id)
                return message
            },
            .unary("interop.Peer/Fail") { (message: ChatMessage, _) -> ChatMessage in
                let details = try ["first", "second"].map { text in
                    SessionStatus.Detail(
                        typeURL: "type.googleapis.com/sample.chat.v1.ChatMessage",
                        value: Array(try ChatMessage.with { $0.text = text }.serializedBytes())
                    )
                }
                throw SessionStatus(.failedPrecondition, "Grüezi: \(message.text)", details: details)
            },
            .unary("interop.Peer/TimeLeft") { (_: ChatMessage, context) -> ChatMessage in
                .chat(context.timeRemaining.map { Int($0 / .milliseconds(1)) } ?? 0)
            },
            .unary("interop.Peer/Start") { (message: ChatMessage, context) in
                for number in 0..<(Int(message.id) ?? 0) {
                    let news = ChatMessage.chat(number, ChatMessage.padding(for: number))
                    try await context.session.push("interop.Peer/News", news)
                }
                return message
            },
            .unary("interop.Peer/Unplaced") { (message: ChatMessage, context) in
                try await context.session.push("interop.Peer/News", message, delivery: .atMostOnce)
                return message
            },
        ]
    }

    /// Calls that wait for an event, or cause one.
    private var waits: [SessionMethod] {
        [
            .unary("interop.Peer/Hang") { (message: ChatMessage, _) in
                hanging.send()
                await Signal().wait()
                ended.send()
                return message
            },
            .unary("interop.Peer/AwaitHanging") { (message: ChatMessage, _) in
                await hanging.wait()
                return message
            },
            .unary("interop.Peer/AwaitEnd") { (message: ChatMessage, _) in
                await ended.wait()
                return message
            },
            .unary("interop.Peer/AwaitNotes") { (message: ChatMessage, _) in
                await notes.wait(for: Int(message.id) ?? 0)
                return message
            },
            .unary("interop.Peer/Release") { (message: ChatMessage, _) in
                released.send()
                return message
            },
            .unary("interop.Peer/Drain") { (message: ChatMessage, _) in
                drainWanted.send()
                await ended.wait()
                return message
            },
        ]
    }

    private var streams: [SessionMethod] {
        [
            .stream("interop.Peer/Count") { (message: ChatMessage, stream: SessionStreamWriter<ChatMessage>, _) in
                for number in 0..<(Int(message.id) ?? 0) {
                    try await stream.send(.chat(number, ChatMessage.padding(for: number)))
                }
            },
            .clientStream("interop.Peer/Collect") { (parts: SessionMessages<ChatMessage>, _) -> ChatMessage in
                try await collected(parts)
            },
            .clientStream("interop.Peer/Pick") { (parts: SessionMessages<ChatMessage>, _) -> ChatMessage in
                var parts = parts.makeAsyncIterator()
                return try await parts.next() ?? ChatMessage()
            },
            .clientStream("interop.Peer/Hoard") { (parts: SessionMessages<ChatMessage>, _) -> ChatMessage in
                hanging.send()
                await released.wait()
                return try await collected(parts)
            },
            .bothWays("interop.Peer/Converse") {
                (parts: SessionMessages<ChatMessage>, stream: SessionStreamWriter<ChatMessage>, _) in
                do {
                    for try await part in parts { try await stream.send(part) }
                } catch {
                    ended.send()
                    throw error
                }
            },
            .bothWays("interop.Peer/UnplacedParts") {
                (parts: SessionMessages<ChatMessage>, stream: SessionStreamWriter<ChatMessage>, _) in
                for try await part in parts { try await stream.send(part, delivery: .atMostOnce) }
            },
        ]
    }

    private var pushes: [SessionMethod] {
        [
            .push("interop.Peer/Note") { (message: ChatMessage, _) in notes.add(message.id) },
            .push("interop.Peer/Value") { (message: ChatMessage, _) in values.add(message.id) },
            .push("interop.Peer/Forget") { (_: ChatMessage, _) in
                forgetWanted.send()
                await Signal().wait()
            },
            // Some clients push malformed messages.
            .push("interop.Peer/Block") { (_: RawMessage, _) in await Signal().wait() },
        ]
    }

    private nonisolated(nonsending) func collected(
        _ parts: SessionMessages<ChatMessage>
    ) async throws -> ChatMessage {
        var ids: [String] = []
        for try await part in parts { ids.append(part.id) }
        return .chat(ids.count, checksum(of: ids))
    }
}

/// Collects records of several tasks.
final class Notes: Sendable {
    private let values = NIOLockedValueBox<[String]>([])
    private let news = Signal()

    var all: [String] { values.withLockedValue { $0 } }

    func add(_ value: String) {
        values.withLockedValue { $0.append(value) }
        news.send()
    }

    /// Waits for a number of records. One task at a time may wait.
    func wait(for count: Int) async {
        while all.count < count, !Task.isCancelled { await news.wait() }
    }
}

/// An event that one task at a time may wait for. Cancelling the task also ends the wait.
struct Signal: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func send() { continuation.yield() }

    func wait() async {
        var iterator = stream.makeAsyncIterator()
        await iterator.next()
    }
}
