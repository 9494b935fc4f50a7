import Lifeline
import Synchronization
import TestServices
import Testing

/// A store with transactions, and streams both ways that stay open: watches, and leases that are kept alive.
@Suite(.timeLimit(.minutes(1))) struct WatchTests {
    @Test func theStoreIsReadAndChanged() async throws {
        try await withSession(serving: Store()) { session in
            let store = Test_Realistic_Watch_StoreClient(session)
            // Outside of #expect: Swift 6.3 gives this closure and the next one the same symbol there.
            let first = try await store.put(.with { ($0.key, $0.value) = ([1], [10]) })
            #expect(first.header.revision == 1)
            let second = try await store.put(.with { ($0.key, $0.value) = ([1], [11]) })
            #expect(second.header.revision == 2 && second.previous.value == [10])

            let range = try await store.range(.with { ($0.key, $0.end, $0.order) = ([0], [9], .descending) })
            #expect(range.entries.map(\.value) == [[11]] && range.count == 1)

            let transaction = Test_Realistic_Watch_Transaction.with {
                $0.comparisons.append(.with { ($0.key, $0.relation, $0.value) = ([1], .equal, [11]) })
                $0.then.append(.with { $0.transaction.then.append(.with { $0.put.key = [2] }) })
                $0.then.append(.with { $0.delete.key = [1] })
            }
            let done = try await store.transact(transaction)
            #expect(done.succeeded && done.replies.count == 2)
            #expect(done.replies.first?.transaction.replies.first?.put.header.revision == 3)
            #expect(try await store.transact(transaction).succeeded == false)
            #expect(try await store.delete(.with { $0.key = [2] }).count == 1)
        }
    }

    @Test func oneStreamHasSeveralWatches() async throws {
        try await withSession(serving: Watch()) { session in
            let (created, creation) = AsyncStream.makeStream(of: Int64.self)
            let replies = try await Test_Realistic_Watch_WatchClient(session).watch { stream in
                var ids = created.makeAsyncIterator()
                for key in [[1], [2]] as [[UInt8]] {
                    try await stream.send(.with { ($0.create.key, $0.create.without) = (key, [.delete]) })
                }
                // Cancels each watch after the server has sent its number.
                for _ in 1...2 {
                    guard let id = await ids.next() else { return }
                    try await stream.send(.with { $0.cancel.watchID = id })
                }
            } receive: { replies in
                var all: [Test_Realistic_Watch_WatchReply] = []
                for try await reply in replies {
                    if reply.isCreated { creation.yield(reply.watchID) }
                    all.append(reply)
                }
                return all
            }
            #expect(replies.filter(\.isCreated).map(\.watchID) == [1, 2])
            #expect(replies.filter(\.isCancelled).map(\.watchID) == [1, 2])
            #expect(replies.flatMap(\.events).map(\.entry.key) == [[1], [2]])
        }
    }

    @Test func leasesAreKeptAlive() async throws {
        try await withSession(serving: Lease()) { session in
            let lease = Test_Realistic_Watch_LeaseClient(session)
            let id = try await lease.grant(.with { $0.seconds = 5 }).id
            #expect(id == 7)
            let seconds = try await lease.keepAlive { stream in
                for _ in 1...3 { try await stream.send(.with { $0.id = id }, until: .processed) }
            } receive: { replies in
                try await replies.collected().map(\.seconds)
            }
            #expect(seconds == [5, 5, 5])
        }
    }
}

private final class Store: Test_Realistic_Watch_StoreHandler {
    private struct State {
        var entries: [[UInt8]: Test_Realistic_Watch_Entry] = [:]
        var revision: Int64 = 0
        var header: Test_Realistic_Watch_Header { .with { ($0.clusterID, $0.revision) = (1, revision) } }
    }

    private let state = Mutex(State())

    func range(
        _ request: Test_Realistic_Watch_RangeRequest,
        context: SessionContext
    ) -> Test_Realistic_Watch_RangeReply {
        state.withLock { state in
            .with { reply in
                reply.header = state.header
                for entry in state.entries.values where !entry.key.lexicographicallyPrecedes(request.key) {
                    if entry.key.lexicographicallyPrecedes(request.end) { reply.entries.append(entry) }
                }
                reply.count = Int64(reply.entries.count)
            }
        }
    }

    func put(_ request: Test_Realistic_Watch_PutRequest, context: SessionContext) -> Test_Realistic_Watch_PutReply {
        state.withLock { Self.put(request, into: &$0) }
    }

    func delete(
        _ request: Test_Realistic_Watch_DeleteRequest,
        context: SessionContext
    ) -> Test_Realistic_Watch_DeleteReply {
        state.withLock { Self.delete(request, from: &$0) }
    }

    func transact(
        _ request: Test_Realistic_Watch_Transaction,
        context: SessionContext
    ) -> Test_Realistic_Watch_TransactionReply {
        state.withLock { Self.transact(request, on: &$0) }
    }

    private static func put(
        _ request: Test_Realistic_Watch_PutRequest,
        into state: inout State
    ) -> Test_Realistic_Watch_PutReply {
        let previous = state.entries[request.key]
        state.revision += 1
        state.entries[request.key] = .with { ($0.key, $0.value) = (request.key, request.value) }
        return .with { reply in
            reply.header = state.header
            if let previous { reply.previous = previous }
        }
    }

    private static func delete(
        _ request: Test_Realistic_Watch_DeleteRequest,
        from state: inout State
    ) -> Test_Realistic_Watch_DeleteReply {
        let count: Int64 = state.entries.removeValue(forKey: request.key) == nil ? 0 : 1
        state.revision += count
        return .with { ($0.header, $0.count) = (state.header, count) }
    }

    private static func transact(
        _ request: Test_Realistic_Watch_Transaction,
        on state: inout State
    ) -> Test_Realistic_Watch_TransactionReply {
        let succeeded = request.comparisons.allSatisfy { state.entries[$0.key]?.value == $0.value }
        var reply = Test_Realistic_Watch_TransactionReply.with { $0.succeeded = succeeded }
        for operation in succeeded ? request.then : request.otherwise {
            var done = Test_Realistic_Watch_OperationReply()
            switch operation.request {
            case .put(let put): done.put = Self.put(put, into: &state)
            case .delete(let delete): done.delete = Self.delete(delete, from: &state)
            case .transaction(let nested): done.transaction = transact(nested, on: &state)
            case .range, nil: break
            }
            reply.replies.append(done)
        }
        reply.header = state.header
        return reply
    }
}

/// Sends one event of each watch when it is created.
private struct Watch: Test_Realistic_Watch_WatchHandler {
    func watch(
        _ requests: SessionMessages<Test_Realistic_Watch_WatchRequest>,
        to stream: SessionStreamWriter<Test_Realistic_Watch_WatchReply>,
        context: SessionContext
    ) async throws {
        var lastID: Int64 = 0
        for try await request in requests {
            switch request.request {
            case .create(let creation):
                lastID += 1
                try await stream.send(.with { ($0.watchID, $0.isCreated) = (lastID, true) })
                try await stream.send(
                    .with {
                        $0.watchID = lastID
                        $0.events.append(.with { ($0.kind, $0.entry.key) = (.put, creation.key) })
                    }
                )
            case .cancel(let cancellation):
                try await stream.send(.with { ($0.watchID, $0.isCancelled) = (cancellation.watchID, true) })
            case nil:
                throw SessionStatus(.invalidArgument)
            }
        }
    }
}

private struct Lease: Test_Realistic_Watch_LeaseHandler {
    func grant(
        _ request: Test_Realistic_Watch_LeaseRequest,
        context: SessionContext
    ) async throws -> Test_Realistic_Watch_LeaseReply {
        .with { ($0.id, $0.seconds) = (7, request.seconds) }
    }

    func keepAlive(
        _ requests: SessionMessages<Test_Realistic_Watch_LeaseRequest>,
        to stream: SessionStreamWriter<Test_Realistic_Watch_LeaseReply>,
        context: SessionContext
    ) async throws {
        for try await request in requests { try await stream.send(.with { ($0.id, $0.seconds) = (request.id, 5) }) }
    }
}
