internal import Club
internal import ClubProtos
internal import Foundation
internal import Lifeline
package import LifelineTesting
internal import Synchronization

/// A mistake that applications make, planted into the club by a change of its cast.
package struct PlantedBug: Sendable {
    package let name: String
    let plant: @Sendable (inout Cast) -> Void

    init(_ name: String, _ plant: @escaping @Sendable (inout Cast) -> Void) { (self.name, self.plant) = (name, plant) }

    package var cast: Cast {
        var cast = Cast()
        plant(&cast)
        return cast
    }

    /// Plays stories of a club with the bug.
    package var runner: StoryRunner { StoryRunner { try await playClub(cast, in: $0) } }

    /// Returns the first seed from 1 to 200 that fails, or nil.
    package func find() async -> (seed: UInt64, failure: WorldFailure)? {
        for seed in 1...200 as ClosedRange<UInt64> {
            if let failure = await runner.play(seed, nil, isTracing: false).failure { return (seed, failure) }
        }
        return nil
    }
}

// MARK: - Transfers

extension PlantedBug {
    static let ofTransfers = [
        PlantedBug("a lost update after a retry") { cast in
            // Stores the key first, and moves the money in a later transaction.
            cast.transfer = { staff, request, context in
                let isNew = try await staff.database.transaction { tables in
                    let noted = ClubTables.Transfer(request: request, outcome: .success(.init()))
                    return tables.transfers.updateValue(noted, forKey: request.key) == nil
                }
                guard isNew else { return .init() }
                _ = try await staff.database.transaction { tables in
                    tables.transfers[request.key] = nil
                    return try tables.transfer(request)
                }
                return try await staff.ledger.transfer(request, context: context)
            }
        },
        PlantedBug("a double charge without the idempotency key") { cast in
            cast.pay = { club, request in
                try await untilAnswered {
                    var request = request
                    request.key = UUID().uuidString
                    return try await club.ledger.transfer(request, timeout: club.patience)
                }
            }
        },
        PlantedBug("a charge outside the transaction") { cast in
            // The payer is charged in the transaction, and the payee gets the money after it.
            cast.transfer = { staff, request, context in
                let outcome = try await staff.database.transaction { tables in
                    let before = tables.accounts[request.to]
                    defer { tables.accounts[request.to] = before }
                    return try tables.transfer(request)
                }
                _ = try outcome.get()
                try await staff.database.transaction {
                    $0.add(request.amount, to: request.to, other: request.from, request.memo)
                }
                return try await staff.ledger.transfer(request, context: context)
            }
        },
        PlantedBug("a read, a change and a write with an await between") { cast in
            cast.transfer = { staff, request, context in
                var copy = try await staff.database.transaction { $0 }
                _ = try copy.transfer(request)
                let transfer = copy.transfers[request.key]
                let (from, to) = (copy.accounts[request.from], copy.accounts[request.to])
                try await staff.database.transaction { tables in
                    (tables.accounts[request.from], tables.accounts[request.to]) = (from, to)
                    tables.transfers[request.key] = transfer
                }
                return try await staff.ledger.transfer(request, context: context)
            }
        },
        PlantedBug("a timeout taken for a failure") { cast in
            cast.pay = { club, request in
                try await untilAnswered {
                    do {
                        return try await club.ledger.transfer(request, timeout: club.patience)
                    } catch let error as SessionError where error.code == .timedOut {
                        throw SessionError(code: .status, message: "", status: SessionStatus(.failedPrecondition))
                    }
                }
            }
        },
        PlantedBug("a retry without limit of an error that is final") { cast in
            cast.pay = { club, request in
                while true {
                    if let receipt = try? await club.transfer(request) { return receipt }
                    try await Task.sleep(for: .seconds(1))
                }
            }
        },
        PlantedBug("a reply before the write is durable") { cast in
            cast.transfer = { staff, request, context in
                var copy = try await staff.database.transaction { $0 }
                let outcome = try copy.transfer(request)
                Task {
                    // Waits for more transfers, in order to write them together.
                    try await Task.sleep(for: .milliseconds(200))
                    return try await staff.ledger.transfer(request, context: context)
                }
                return try outcome.get()
            }
        },
        PlantedBug("a lock held across an await that deadlocks") { cast in
            cast.transfer = { staff, request, context in
                try await staff.memory.locks.withLock(of: request.from) {
                    // Asks another service. Meanwhile, another transfer may take the locks in the other order.
                    try await Task.sleep(for: .milliseconds(300))
                    return try await staff.memory.locks.withLock(of: request.to) {
                        try await staff.ledger.transfer(request, context: context)
                    }
                }
            }
        },
        PlantedBug("an exception swallowed") { cast in
            cast.transfer = { staff, request, context in
                (try? await staff.ledger.transfer(request, context: context)) ?? .init()
            }
        },
    ]

    // MARK: - Reading

    static let ofReading = [
        PlantedBug("order taken for granted between two methods") { cast in
            // The bug assumes that a balance requested after a transfer includes it.
            cast.payAndLook = { club, cast, request in
                async let receipt = cast.pay(club, request)
                async let balance = club.balance(of: request.from)
                return try await (receipt, balance)
            }
        },
        PlantedBug("a cache that is not invalidated") { cast in
            // Invalidates only the payer's account.
            cast.transfer = { staff, request, context in
                let receipt = try await staff.ledger.transfer(request, context: context)
                staff.memory.balances.withLock { $0[request.from] = nil }
                return receipt
            }
            cast.balance = { staff, request, context in
                if let known = staff.memory.balances.withLock({ $0[request.account] }) { return known }
                let balance = try await staff.ledger.balance(request, context: context)
                staff.memory.balances.withLock { $0[request.account] = balance }
                return balance
            }
        },
        PlantedBug("a handler that never returns") { cast in
            cast.statements = { staff, request, stream, context in
                var last = request.after
                while true {
                    let after = last
                    // The database does not stop when its caller is cancelled.
                    let reading = Task {
                        try await staff.database.transaction {
                            try $0.entries(of: request.account, after: after, limit: 16)
                        }
                    }
                    let page = (try? await reading.value) ?? []
                    for entry in page {
                        try? await stream.send(entry)
                        last = entry.number
                    }
                    // The sleep returns at once if the task is cancelled, and a break is missing.
                    if page.isEmpty { try? await Task.sleep(for: .seconds(1)) }
                }
            }
        },
        PlantedBug("an off-by-one in resuming a stream") { cast in
            cast.readStatements = { club, account, number, body in
                var next = number
                while true {
                    try await untilAnswered {
                        let request = Example_Club_V1_StatementsRequest.with {
                            ($0.account, $0.after) = (account, next)
                        }
                        for try await entry in club.ledger.statements(request, timeout: nil) {
                            try await body(entry)
                            next = entry.number + 1
                        }
                    }
                }
            }
        },
    ]

    // MARK: - Rooms

    static let ofRooms = [
        PlantedBug("a leaked join") { cast in
            // The task continues after the caller has given up, and perhaps left the room.
            cast.join = { staff, request, context in
                try await Task { try await staff.rooms.join(request, context: context) }.value
            }
        },
        PlantedBug("history trimmed before it is written") { cast in
            cast.say = { staff, request, context in
                try await staff.database.transaction { tables in
                    guard let room = tables.rooms[request.room],
                        request.sequence > room.lastSaid[request.speaker]?.sequence ?? 0
                    else { return }
                    let surplus = room.messages.count + 1 - ClubTables.keptMessageCount
                    tables.rooms[request.room]?.messages.removeFirst(max(0, surplus))
                }
                return try await staff.rooms.say(request, context: context)
            }
        },
        PlantedBug("an id from the clock") { cast in
            cast.say = { staff, request, context in
                let now = UInt64(Date().timeIntervalSince1970 * 1_000)
                try await staff.database.transaction { tables in
                    let last = tables.rooms[request.room]?.lastSaid[request.speaker]?.sequence ?? 0
                    if request.sequence > last { tables.rooms[request.room]?.lastNumber = now }
                }
                return try await staff.rooms.say(request, context: context)
            }
        },
        PlantedBug("a push sent before its state is stored") { cast in
            cast.say = { staff, request, context in
                let room = try await staff.database.transaction { try $0.room(request.room) }
                let isKnown = request.sequence <= room.lastSaid[request.speaker]?.sequence ?? 0
                let message = Example_Club_V1_Message.with {
                    ($0.room, $0.number, $0.missedCount) = (request.room, room.lastNumber + 1, room.lastNumber)
                    ($0.speaker, $0.sequence, $0.text) = (request.speaker, request.sequence, request.text)
                }
                // Visitors have no names.
                for session in context.server.sessions where !isKnown && !session.name.isEmpty {
                    try? await Example_Club_V1_RoomsPushes(session).heard(message, delivery: .atMostOnce)
                }
                return try await staff.rooms.say(request, context: context)
            }
        },
        PlantedBug("a member that is not removed after its session is lost") { cast in
            cast.sessionEnded = { _, _ in }
        },
        PlantedBug("an unbounded buffer") { cast in
            // Each message adds three notices to an unlimited queue of each member: written, stored, and read.
            cast.say = { staff, request, context in
                let reply = try await staff.rooms.say(request, context: context)
                for queue in staff.memory.queues.withLock({ $0.values }) {
                    staff.memory.queued.add(3, ordering: .relaxed)
                    for _ in 1...3 { queue.yield(request) }
                }
                return reply
            }
            cast.join = { staff, request, context in
                // Visitors have no names.
                if context.session.name.isEmpty { return try await staff.rooms.join(request, context: context) }
                let (queue, continuation) = AsyncStream.makeStream(of: Example_Club_V1_SayRequest.self)
                staff.memory.queues.withLock { $0[context.session.id] = continuation }
                Task {
                    for await said in queue {
                        let message = Example_Club_V1_Message.with {
                            ($0.room, $0.text) = ("echo of the hall", said.text)
                        }
                        try? await Example_Club_V1_RoomsPushes(context.session).heard(message)
                        staff.memory.queued.subtract(1, ordering: .relaxed)
                    }
                }
                return try await staff.rooms.join(request, context: context)
            }
            cast.waitingCount = { $0.rooms.waitingCount + $0.memory.queued.load(ordering: .relaxed) }
        },
        PlantedBug("a task that outlives its session, and writes late") { cast in
            // Looks for the message first, and writes it in a later batch that other sessions do not wait for.
            cast.say = { staff, request, context in
                let isKnown = try await staff.database.transaction {
                    request.sequence <= $0.rooms[request.room]?.lastSaid[request.speaker]?.sequence ?? 0
                }
                if isKnown { return .init() }
                let writing = Task {
                    try await Task.sleep(for: .seconds(1))
                    try await staff.database.transaction { $0.rooms[request.room]?.lastSaid[request.speaker] = nil }
                    return try await staff.rooms.say(request, context: context)
                }
                return try await writing.value
            }
        },
    ]

    // MARK: - All

    package static let all = ofTransfers + ofReading + ofRooms
}

/// The state of planted bugs in a server process.
final class BugMemory: Sendable {
    let balances = Mutex<[String: Example_Club_V1_BalanceReply]>([:])
    let queues = Mutex<[String: AsyncStream<Example_Club_V1_SayRequest>.Continuation]>([:])
    let queued = Atomic(0)
    let locks = NamedLocks()
}

/// Locks that may be held across an await.
actor NamedLocks {
    private var held: Set<String> = []
    private var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]

    nonisolated func withLock<Result>(
        of name: String,
        _ body: () async throws -> Result
    ) async throws -> Result {
        await lock(name)
        do {
            let result = try await body()
            await unlock(name)
            return result
        } catch {
            await unlock(name)
            throw error
        }
    }

    private func lock(_ name: String) async {
        if held.insert(name).inserted { return }
        await withCheckedContinuation { waiting[name, default: []].append($0) }
    }

    private func unlock(_ name: String) {
        if waiting[name]?.isEmpty == false {
            waiting[name]?.removeFirst().resume()
        } else {
            held.remove(name)
        }
    }
}
