#if Store
import GRDB
import Lifeline
import LifelineRuntime
import LifelineStore
import LifelineTestSupport
import LifelineWellKnownTypes
import NIOConcurrencyHelpers
import Testing

/// Durable calls between clients and servers that are started again, over Unix sockets and databases.
@Suite(.timeLimit(.minutes(2))) struct DurableCallTests {
    private typealias Number = Google_Protobuf_Int64Value

    private struct Services: SessionService {
        let methods: [SessionMethod]
    }

    private let method = "t.T/Double"

    /// Doubles numbers, and counts how often it has.
    private func double(_ counts: Counts) -> SessionMethod {
        .unary(method) { (number: Number, _) async throws in
            counts.add(number.value)
            return Number(2 * number.value)
        }
    }

    /// How often each number arrived.
    private final class Counts: Sendable {
        private let counts = NIOLockedValueBox<[Int64: Int]>([:])

        var all: [Int64: Int] { counts.withLockedValue { $0 } }

        func add(_ number: Int64) { counts.withLockedValue { $0[number, default: 0] += 1 } }
    }

    private func withServer(
        _ place: DurablePlace,
        hasStore: Bool = true,
        frameLimit: Int? = nil,
        _ methods: [SessionMethod],
        interceptors: [any SessionServerInterceptor] = [],
        _ body: (SessionServer) async throws -> Void
    ) async throws {
        let store = try hasStore ? SQLiteSessionStore(path: place.serverPath, for: .server) : nil
        var configuration = SessionServerConfiguration()
        configuration.store = store
        if let frameLimit { configuration.server.connection.maximumFrameLength = frameLimit }
        configuration.server.shutdownGracePeriod = .zero
        configuration.drainSpread = .zero
        try await withSessionServer(
            listeningOn: place.endpoint,
            configuration: configuration,
            services: [Services(methods: methods)],
            interceptors: interceptors,
            body
        )
        try store?.close()
    }

    private func call(_ client: SessionClient, _ number: Int64) async throws -> Int64 {
        try await client.call(method, Number(number), returning: Number.self, timeout: nil, delivery: .durable).value
    }

    private func doubles(_ client: SessionClient, _ number: Int64) async throws {
        let reply = try await call(client, number)
        #expect(reply == 2 * number)
    }

    @Test func callsAreAnswered() async throws {
        try await withDurablePlace { place in
            let counts = Counts()
            try await withServer(place, [double(counts)]) { _ in
                try await place.withClient { client in
                    try await withThrowingTaskGroup { group in
                        for number in 1...50 as ClosedRange<Int64> {
                            group.addTask { try await doubles(client, number) }
                        }
                        try await group.waitForAll()
                    }
                }
            }
            #expect(counts.all == Dictionary(uniqueKeysWithValues: (1...50).map { (Int64($0), 1) }))
        }
    }

    @Test func metadataAndStatusesComeBack() async throws {
        try await withDurablePlace { place in
            let fail = SessionMethod.unary("t.T/Fail") { (_: Number, context) async throws -> Number in
                #expect(context.metadata == ["a": "b"] && context.durableMessage?.isCall == true)
                let detail = SessionStatus.Detail(typeURL: "t", value: [1, 2])
                throw SessionStatus(.notFound, "There is none.", details: [detail])
            }
            try await withServer(place, [fail]) { _ in
                try await place.withClient { client in
                    let error = await #expect(throws: SessionError.self) {
                        try await client.call(
                            "t.T/Fail",
                            Number(1),
                            returning: Number.self,
                            delivery: .durable,
                            metadata: ["a": "b"]
                        )
                    }
                    #expect(error?.status?.code == .notFound && error?.status?.message == "There is none.")
                    #expect(error?.status?.details == [SessionStatus.Detail(typeURL: "t", value: [1, 2])])
                }
            }
        }
    }

    /// A call that was made without a server is answered to the next client.
    @Test func anEarlierClientsCallsAreAnswered() async throws {
        try await withDurablePlace { place in
            try await place.withClient { client in
                try await withThrowingTaskGroup { group in
                    group.addTask {
                        await #expect { _ = try await call(client, 7) } throws: { error in
                            (error as? SessionError)?.code == .messageKept
                        }
                    }
                    await waitUntilStored(client, 1)
                    await client.close()
                    try await group.waitForAll()
                }
            }
            let counts = Counts()
            try await withServer(place, [double(counts)]) { _ in
                try await place.withClient { client in
                    let replies = client.lateReplies(to: method, of: Number.self)
                    let reply = try #require(try await replies.first { _ in true })
                    #expect(try reply.result.get().value == 14)
                    // The client continues with other calls.
                    try await doubles(client, 8)
                }
                // The reply does not arrive again.
                try await place.withClient { client in
                    let replies = client.lateReplies(to: method, of: Number.self)
                    try await doubles(client, 9)
                    async let reply = replies.first { _ in true }
                    await client.close()
                    let late = try await reply
                    #expect(late == nil)
                }
            }
            #expect(counts.all == [7: 1, 8: 1, 9: 1])
        }
    }

    /// Waits until a number of messages are stored that cannot be sent.
    private func waitUntilStored(_ client: SessionClient, _ count: Int) async {
        while client.statistics.keptMessageCount < count { await Task.yield() }
    }

    /// Makes a call while there is no server, and cancels its task once it is stored.
    private func cancelStoredCall(_ client: SessionClient, _ number: Int64) async {
        let waiting = Task { try await call(client, number) }
        await waitUntilStored(client, 1)
        waiting.cancel()
        await #expect { _ = try await waiting.value } throws: { error in
            (error as? SessionError)?.code == .cancelled
        }
    }

    @Test func aCallThatIsCancelledGoesOn() async throws {
        try await withDurablePlace { place in
            let counts = Counts()
            try await place.withClient { client in
                let replies = client.lateReplies(to: method, of: Number.self)
                await cancelStoredCall(client, 7)
                try await withServer(place, [double(counts)]) { _ in
                    let reply = try await replies.first { _ in true }
                    #expect(try reply?.result.get().value == 14)
                }
            }
            #expect(counts.all == [7: 1])
        }
    }

    @Test func waitingEndsInTime() async throws {
        try await withDurablePlace { place in
            try await place.withClient { client in
                await #expect {
                    try await client.call(
                        method,
                        Number(1),
                        returning: Number.self,
                        timeout: .zero,
                        delivery: .durable
                    )
                } throws: { error in
                    (error as? SessionError)?.code == .timedOut
                }
            }
        }
    }

    /// Every call is answered, and has its effect once, though the server is shut down again and again.
    @Test func callsSurviveServers() async throws {
        try await withDurablePlace { place in
            let counts = Counts()
            try await place.withClient { client in
                try await withThrowingTaskGroup { group in
                    for task in 0..<20 as Range<Int64> {
                        group.addTask {
                            for number in 0..<25 as Range<Int64> {
                                let number = 25 * task + number
                                try await doubles(client, number)
                            }
                        }
                    }
                    for round in 1...4 {
                        try await withServer(place, [counting(counts)]) { _ in
                            while counts.all.count < round * 100 { await Task.yield() }
                            if round == 4 { try await group.waitForAll() }
                        }
                    }
                }
                for event in client.sessionHistory {
                    if case .lost(let inDoubt) = event.kind { #expect(inDoubt.isEmpty) }
                }
            }
            #expect(counts.all.count == 500)
            let store = try SQLiteSessionStore(path: place.serverPath, for: .server)
            let numbers = try await store.database.read { try Int.fetchAll($0, sql: "SELECT number FROM numbers") }
            #expect(numbers.sorted() == Array(0..<500))
        }
    }

    /// The same as `double`, with an effect in the store's database.
    private func counting(_ counts: Counts) -> SessionMethod {
        .unary(method) { (number: Number, context) async throws in
            let reply = try await context.transaction { db in
                try db.execute(sql: "CREATE TABLE IF NOT EXISTS numbers (number INTEGER)")
                try db.execute(sql: "INSERT INTO numbers VALUES (?)", arguments: [number.value])
                return Number(2 * number.value)
            }
            counts.add(number.value)
            return reply
        }
    }

    /// The server ends between the handler's transaction and its return: the next one has the reply.
    @Test func aTransactionHasTheReply() async throws {
        try await withDurablePlace { place in
            let counts = Counts()
            let (marked, continuation) = AsyncStream.makeStream(of: Void.self)
            let stuck = SessionMethod.unary(method) { (number: Number, context) async throws -> Number in
                let reply = try await context.transaction { _ in Number(2 * number.value) }
                counts.add(number.value)
                continuation.yield()
                // Until it is cancelled.
                try await Latch<Void>().wait()
                return reply
            }
            try await place.withClient { client in
                let answer = Task { try await call(client, 21) }
                try await withServer(place, [stuck]) { _ in _ = await marked.first { _ in true } }
                try await withServer(place, [stuck]) { _ in
                    let answer = try await answer.value
                    #expect(answer == 42)
                }
            }
            #expect(counts.all == [21: 1])
            let store = try SQLiteSessionStore(path: place.serverPath, for: .server)
            let marks = try await store.database.read {
                try Int.fetchOne($0, sql: "SELECT count(*) FROM lifeline_mark")
            }
            #expect(marks == 0)
        }
    }

    @Test func aTransactionWithoutTheReplyIsRefused() async throws {
        try await withDurablePlace { place in
            let wrong = SessionMethod.unary(method) { (number: Number, context) async throws -> Number in
                await #expect { try await context.transaction { _ in } } throws: { error in
                    (error as? StoreError)?.code == .otherUse
                }
                return number
            }
            try await withServer(place, [wrong]) { _ in
                try await place.withClient { client in _ = try await call(client, 3) }
            }
        }
    }

    /// Calls that exceed the server's frame length end, even if they are read from the store again.
    @Test func callsThatAreTooLongEnd() async throws {
        try await withDurablePlace { place in
            try await place.withClient { client in
                try await withThrowingTaskGroup { group in
                    for _ in 1...4 {
                        group.addTask {
                            await #expect {
                                _ = try await client.call(
                                    method,
                                    Google_Protobuf_BytesValue([UInt8](repeating: 1, count: 300 << 10)),
                                    returning: Number.self,
                                    timeout: nil,
                                    delivery: .durable
                                )
                            } throws: { error in
                                (error as? SessionError)?.code == .messageRefused
                            }
                        }
                    }
                    // As many as wait in memory; the others are only in the store.
                    await waitUntilStored(client, 2)
                    let counts = Counts()
                    try await withServer(place, frameLimit: 128 << 10, [double(counts)]) { _ in
                        try await group.waitForAll()
                        #expect(try await call(client, 1) == 2)
                    }
                    #expect(counts.all == [1: 1])
                }
            }
        }
    }

    /// If a stored reply is too long for the client, the client gets a status instead of waiting for ever.
    @Test func aStoredReplyThatIsTooLongIsAStatus() async throws {
        try await withDurablePlace { place in
            let (marked, continuation) = AsyncStream.makeStream(of: Void.self)
            let stuck = SessionMethod.unary(method) {
                (_: Number, context) async throws -> Google_Protobuf_BytesValue in
                let reply = try await context.transaction { _ in
                    Google_Protobuf_BytesValue([UInt8](repeating: 1, count: 300 << 10))
                }
                continuation.yield()
                // Until it is cancelled.
                try await Latch<Void>().wait()
                return reply
            }
            try await place.withClient(frameLimit: 128 << 10) { client in
                let answer = Task { try await call(client, 1) }
                try await withServer(place, [stuck]) { _ in _ = await marked.first { _ in true } }
                try await withServer(place, [stuck]) { _ in
                    await #expect { _ = try await answer.value } throws: { error in
                        (error as? SessionError)?.status?.code == .internal
                    }
                }
            }
        }
    }

    /// Interceptors see the delivery of the call.
    @Test func interceptorsSeeThatACallIsDurable() async throws {
        struct Seeing: SessionServerInterceptor {
            let deliveries = NIOLockedValueBox<[SessionDelivery]>([])

            func intercept(
                _ call: SessionCall,
                session: SessionServerEnd,
                next: @escaping @Sendable (SessionCall) async throws -> SessionReply
            ) async throws -> SessionReply {
                deliveries.withLockedValue { $0.append(call.delivery) }
                return try await next(call)
            }
        }
        try await withDurablePlace { place in
            let (seeing, counts) = (Seeing(), Counts())
            try await withServer(place, [double(counts)], interceptors: [seeing]) { _ in
                try await place.withClient { client in
                    try await doubles(client, 1)
                    _ = try await client.call(method, Number(2), returning: Number.self)
                }
            }
            #expect(seeing.deliveries.withLockedValue { $0 } == [.durable, .reliable])
        }
    }

    /// Late replies that are stopped hold up no others.
    @Test func stoppedLateRepliesAreDropped() async throws {
        try await withDurablePlace { place in
            let counts = Counts()
            try await place.withClient { client in
                let replies = client.lateReplies(to: method, of: Number.self)
                await cancelStoredCall(client, 7)
                replies.stop()
                #expect(try await replies.first { _ in true } == nil)
                try await withServer(place, [double(counts)]) { _ in
                    try await doubles(client, 8)
                    // It is kept until the program asks for it.
                    let replies = client.lateReplies(to: method, of: Number.self)
                    let late = try await replies.first { _ in true }
                    #expect(try late?.result.get().value == 14)
                }
            }
        }
    }

    @Test func aServerWithoutAStoreAnswers() async throws {
        try await withDurablePlace { place in
            let counts = Counts()
            try await withServer(place, hasStore: false, [double(counts)]) { _ in
                try await place.withClient(closeTimeout: .seconds(60)) { client in
                    for number in 1...10 as ClosedRange<Int64> { try await doubles(client, number) }
                }
            }
            // No message is left to send again.
            let store = try SQLiteSessionStore(path: place.clientPath, for: .client(of: place.endpoint))
            let content = try await store.content(for: nil)
            #expect(content.byteCount == 0 && content.next == 11)
        }
    }

    @Test func methodsThatCannotBeCalledSo() async throws {
        try await withDurablePlace { place in
            let stream = SessionMethod.stream("t.T/Stream") {
                (_: Number, _: SessionStreamWriter<Number>, _) async throws in
                Issue.record("A stream was called durably.")
            }
            let push = SessionMethod.push("t.T/Push") { (_: Number, _) async throws in
                Issue.record("A push was called durably.")
            }
            try await withServer(place, [stream, push]) { _ in
                try await place.withClient { client in
                    for method in ["t.T/Stream", "t.T/Push", "t.T/None"] {
                        await #expect {
                            try await client.call(method, Number(1), returning: Number.self, delivery: .durable)
                        } throws: { error in
                            (error as? SessionError)?.status?.code == .unimplemented
                        }
                    }
                    for delivery in [SessionDelivery.atMostOnce, .expiring(after: .seconds(1)), .replaceable(key: "a")]
                    {
                        await #expect {
                            try await client.call(method, Number(1), returning: Number.self, delivery: delivery)
                        } throws: { error in
                            (error as? SessionError)?.code == .messageRefused
                        }
                    }
                }
                try await withSessionClient(to: place.endpoint) { client in
                    let error = await #expect(throws: SessionError.self) { try await call(client, 1) }
                    #expect(error?.code == .noStore)
                }
            }
        }
    }
}
#endif
