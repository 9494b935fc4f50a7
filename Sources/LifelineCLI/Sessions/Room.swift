internal import Lifeline
internal import LifelineCore
internal import LifelineProtos
internal import LifelineWellKnownTypes
internal import SampleServices
internal import Synchronization

/// The room that `lifeline serve` serves.
final class Room: Sample_Room_V1_RoomHandler {
    private struct Visitor {
        let mailbox: NewsMailbox
        var echoCount: UInt64 = 0
        var status = ""
    }

    private struct State {
        var visitors: [String: Visitor] = [:]
        /// The visitors in the chat, by the order in which they began.
        var talkers: [UInt64: AsyncStream<Sample_Room_V1_NewsItem>.Continuation] = [:]
        var talkCount: UInt64 = 0
        var newsCount: UInt64 = 0
        /// Whether the last echo could not be recorded.
        var hasRecordFailed = false
    }

    /// The longest text of a message or report in bytes, because texts are kept for slow visitors.
    private static let maximumTextLength = 4096
    private static let maximumInterval = Duration.seconds(365 * 24 * 3600)

    /// The number of news items that are kept for a slow visitor, who then misses the oldest ones.
    static let keptNewsCount = 256

    private let record: LineRecord?
    private let printLine: @Sendable (String) -> Void
    private let tellFailure: @Sendable (String) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - record: receives a line for each echo, before the reply: the session's id and the number.
    ///   - tellFailure: receives a line when the record cannot be written.
    ///   - printLine: receives a line for all other events.
    init(
        record: LineRecord?,
        tellFailure: @escaping @Sendable (String) -> Void,
        printLine: @escaping @Sendable (String) -> Void
    ) {
        self.record = record
        self.tellFailure = tellFailure
        self.printLine = printLine
    }

    // MARK: Visitors

    func joined(_ session: SessionServerEnd) {
        let mailbox = NewsMailbox(session)
        state.withLock { $0.visitors[session.id] = Visitor(mailbox: mailbox) }
        printLine("\(session.visitorName.escaped()) joined")
    }

    func left(_ session: SessionServerEnd) {
        guard let visitor = state.withLock({ $0.visitors.removeValue(forKey: session.id) }) else { return }
        visitor.mailbox.close()
        let status = visitor.status.isEmpty ? "" : "; last status: \(visitor.status.escaped(limit: .max))"
        printLine("\(session.visitorName.escaped()) left\(status)")
    }

    // MARK: Calls

    func echo(
        _ request: Sample_Room_V1_EchoRequest,
        context: SessionContext
    ) async throws -> Sample_Room_V1_EchoReply {
        try append(request.number, of: context.session)
        let count = state.withLock { state in
            state.visitors[context.session.id]?.echoCount += 1
            return state.visitors[context.session.id]?.echoCount ?? 0
        }
        let reply = Sample_Room_V1_EchoReply.with {
            ($0.number, $0.text, $0.count) = (request.number, request.text, count)
        }
        return context.durableMessage == nil ? reply : try await DurableFile.record(reply, context)
    }

    private func append(_ number: UInt64, of session: SessionServerEnd) throws(SessionStatus) {
        do {
            try record?.append(Array("\(session.id) \(number)\n".utf8))
            state.withLock { $0.hasRecordFailed = false }
        } catch {
            // Report it once, and not for each echo meanwhile.
            let isNews = state.withLock { state in
                defer { state.hasRecordFailed = true }
                return !state.hasRecordFailed
            }
            if isNews { tellFailure(error.message) }
            throw SessionStatus(.unavailable, "The server cannot write its record.")
        }
    }

    func watch(
        _ request: Sample_Room_V1_WatchRequest,
        to stream: SessionStreamWriter<Sample_Room_V1_Tick>,
        context: SessionContext
    ) async throws {
        let interval = request.hasInterval ? request.interval.duration : .seconds(1)
        guard interval >= .zero, interval <= Room.maximumInterval else {
            throw SessionStatus(.invalidArgument, "The interval is \(interval); it may be 0 to 365 days.")
        }
        var (number, time) = (UInt32(0), ContinuousClock.now)
        repeat {
            try await Task.sleep(until: time, clock: .continuous)
            number &+= 1
            try await stream.send(.with { ($0.number, $0.time) = (number, .now()) })
            time += interval
        } while number != request.count
    }

    func say(
        _ request: Sample_Room_V1_SayRequest,
        context: SessionContext
    ) async throws -> Sample_Room_V1_SayReply {
        try say(request.text, as: context.session.visitorName)
    }

    private func say(_ text: String, as name: String) throws(SessionStatus) -> Sample_Room_V1_SayReply {
        try Room.check(text)
        // Under one lock, so that all visitors get it in the same order as the lines printed here.
        return state.withLock { state in
            state.newsCount += 1
            printLine("\(name.escaped()): \(text.escaped(limit: .max))")
            let item = Sample_Room_V1_NewsItem.with {
                ($0.number, $0.from, $0.text, $0.time) = (state.newsCount, name, text, .now())
            }
            for visitor in state.visitors.values { visitor.mailbox.put(item) }
            for talker in state.talkers.values { talker.yield(item) }
            return .with { ($0.number, $0.listenerCount) = (state.newsCount, UInt32(state.visitors.count)) }
        }
    }

    func report(_ message: Sample_Room_V1_Status, context: SessionContext) async throws {
        try Room.check(message.text)
        state.withLock { $0.visitors[context.session.id]?.status = message.text }
        printLine("\(context.session.visitorName.escaped()) reports: \(message.text.escaped(limit: .max))")
    }

    func sayAll(
        _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
        context: SessionContext
    ) async throws -> Sample_Room_V1_SayAllReply {
        var reply = Sample_Room_V1_SayAllReply()
        for try await request in requests {
            reply.lastNumber = try say(request.text, as: context.session.visitorName).number
            reply.count += 1
        }
        return reply
    }

    func talk(
        _ requests: SessionMessages<Sample_Room_V1_SayRequest>,
        to stream: SessionStreamWriter<Sample_Room_V1_NewsItem>,
        context: SessionContext
    ) async throws {
        let (items, news) = AsyncStream.makeStream(
            of: Sample_Room_V1_NewsItem.self,
            bufferingPolicy: .bufferingNewest(Room.keptNewsCount)
        )
        let id = state.withLock { state in
            state.talkCount += 1
            state.talkers[state.talkCount] = news
            return state.talkCount
        }
        defer { state.withLock { _ = $0.talkers.removeValue(forKey: id) } }
        try await withThrowingTaskGroup { group in
            group.addTask { for await item in items { try await stream.send(item) } }
            for try await request in requests { _ = try say(request.text, as: context.session.visitorName) }
            // The rest of the news is sent before the stream ends.
            news.finish()
            try await group.waitForAll()
        }
    }

    private static func check(_ text: String) throws(SessionStatus) {
        guard text.utf8.count > maximumTextLength else { return }
        throw SessionStatus(.invalidArgument, "The text has \(text.utf8.count) bytes; \(maximumTextLength) may be.")
    }
}

/// The news on the way to one visitor. A slow visitor does not delay others, and misses the oldest news.
private struct NewsMailbox {
    private let news: AsyncStream<Sample_Room_V1_NewsItem>.Continuation

    init(_ session: SessionServerEnd) {
        let policy = AsyncStream<Sample_Room_V1_NewsItem>.Continuation.BufferingPolicy.bufferingNewest(
            Room.keptNewsCount
        )
        let (items, news) = AsyncStream.makeStream(bufferingPolicy: policy)
        self.news = news
        let pushes = Sample_Room_V1_RoomPushes(session)
        Task {
            do {
                for await item in items { try await pushes.news(item) }
            } catch {
                // The session is over.
            }
        }
    }

    func put(_ item: Sample_Room_V1_NewsItem) { news.yield(item) }

    func close() { news.finish() }
}

extension SessionServerEnd {
    /// The visitor's name, or a default name.
    fileprivate var visitorName: String { name.isEmpty ? "guest-\(id.prefix(8))" : name }
}
