import Lifeline
import LifelineProtos
import NIOConcurrencyHelpers

/// The methods that the peer's client calls, as the peer's own server has them.
struct SessionPeerService: SessionService {
    let notes = Notes()
    let requests = Notes()
    let hanging = Signal()
    let ended = Signal()
    /// The peer wants the server to shut down, while a handler runs that ends with the one that hangs.
    let drainWanted = Signal()
    /// The peer wants its session to be forgotten, while a handler runs that does not return.
    let forgetWanted = Signal()

    var methods: [SessionMethod] {
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
            .stream("interop.Peer/Count") { (message: ChatMessage, stream: SessionStreamWriter<ChatMessage>, _) in
                for number in 0..<(Int(message.id) ?? 0) { try await stream.send(.chat(number)) }
            },
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
            .unary("interop.Peer/Start") { (message: ChatMessage, context) in
                for number in 0..<(Int(message.id) ?? 0) {
                    let news = ChatMessage.chat(number, ChatMessage.padding(for: number))
                    try await context.session.push("interop.Peer/News", news)
                }
                return message
            },
            .unary("interop.Peer/Drain") { (message: ChatMessage, _) in
                drainWanted.send()
                await ended.wait()
                return message
            },
            .push("interop.Peer/Note") { (message: ChatMessage, _) in notes.add(message.id) },
            .push("interop.Peer/Forget") { (_: ChatMessage, _) in
                forgetWanted.send()
                await Signal().wait()
            },
            .push("interop.Peer/Block") { (_: ChatMessage, _) in await Signal().wait() },
        ]
    }
}

/// What several tasks note down.
final class Notes: Sendable {
    private let values = NIOLockedValueBox<[String]>([])

    var all: [String] { values.withLockedValue { $0 } }

    func add(_ value: String) { values.withLockedValue { $0.append(value) } }
}

/// Something that happens, and one task that waits for it at a time. Waiting ends when the task is cancelled, too.
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
