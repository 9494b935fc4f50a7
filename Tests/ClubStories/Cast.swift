package import Club
package import ClubProtos
package import Lifeline

/// The functions of the club that a bug may replace. The defaults are the club's own.
package struct Cast: Sendable {
    // Server.
    package var join:
        @Sendable (Staff, Example_Club_V1_JoinRequest, SessionContext) async throws -> Example_Club_V1_JoinReply =
            { try await $0.rooms.join($1, context: $2) }
    package var say:
        @Sendable (Staff, Example_Club_V1_SayRequest, SessionContext) async throws -> Example_Club_V1_SayReply =
            { try await $0.rooms.say($1, context: $2) }
    package var sessionEnded: @Sendable (Staff, SessionServerEnd) -> Void = { $0.rooms.sessionEnded($1) }
    package var waitingCount: @Sendable (Staff) -> Int = { $0.rooms.waitingCount }
    package var transfer:
        @Sendable (Staff, Example_Club_V1_TransferRequest, SessionContext) async throws -> Example_Club_V1_Receipt =
            { try await $0.ledger.transfer($1, context: $2) }
    package var balance:
        @Sendable (Staff, Example_Club_V1_BalanceRequest, SessionContext) async throws -> Example_Club_V1_BalanceReply =
            { try await $0.ledger.balance($1, context: $2) }
    package var statements:
        @Sendable (Staff, Example_Club_V1_StatementsRequest, SessionStreamWriter<Example_Club_V1_Entry>, SessionContext)
            async throws -> Void = { try await $0.ledger.statements($1, to: $2, context: $3) }

    // Clients.
    package var pay: @Sendable (ClubClient, Example_Club_V1_TransferRequest) async throws -> Example_Club_V1_Receipt =
        { try await $0.transfer($1) }
    package var payAndLook:
        @Sendable (ClubClient, Cast, Example_Club_V1_TransferRequest) async throws
            -> (Example_Club_V1_Receipt, Example_Club_V1_BalanceReply) = { club, cast, request in
                let receipt = try await cast.pay(club, request)
                return (receipt, try await club.balance(of: request.from))
            }
    package var readStatements:
        @Sendable (ClubClient, String, UInt64, (Example_Club_V1_Entry) async throws -> Void) async throws -> Void =
            { try await $0.readStatements(of: $1, after: $2, $3) }

    package init() {}
}

/// The objects of a server process.
package struct Staff: Sendable {
    let database: any ClubDatabase
    let rooms: Rooms
    let ledger: Ledger
    /// The state of a planted bug.
    let memory = BugMemory()

    package init(_ database: any ClubDatabase) {
        self.database = database
        (rooms, ledger) = (Rooms(database), Ledger(database))
    }

    package func services(_ cast: Cast) -> [any SessionService] {
        [RoomsOfCast(staff: self, cast: cast), LedgerOfCast(staff: self, cast: cast)]
    }
}

private struct RoomsOfCast: Example_Club_V1_RoomsHandler {
    let staff: Staff
    let cast: Cast

    func sessionOpened(_ session: SessionServerEnd) { staff.rooms.sessionOpened(session) }

    func sessionEnded(_ session: SessionServerEnd) { cast.sessionEnded(staff, session) }

    func join(
        _ request: Example_Club_V1_JoinRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_JoinReply {
        try await cast.join(staff, request, context)
    }

    func leave(
        _ request: Example_Club_V1_LeaveRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_LeaveReply {
        try await staff.rooms.leave(request, context: context)
    }

    func say(_ request: Example_Club_V1_SayRequest, context: SessionContext) async throws -> Example_Club_V1_SayReply {
        try await cast.say(staff, request, context)
    }

    func history(
        _ request: Example_Club_V1_HistoryRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_HistoryReply {
        try await staff.rooms.history(request, context: context)
    }
}

private struct LedgerOfCast: Example_Club_V1_LedgerHandler {
    let staff: Staff
    let cast: Cast

    func transfer(
        _ request: Example_Club_V1_TransferRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_Receipt {
        try await cast.transfer(staff, request, context)
    }

    func balance(
        _ request: Example_Club_V1_BalanceRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_BalanceReply {
        try await cast.balance(staff, request, context)
    }

    func statements(
        _ request: Example_Club_V1_StatementsRequest,
        to stream: SessionStreamWriter<Example_Club_V1_Entry>,
        context: SessionContext
    ) async throws {
        try await cast.statements(staff, request, stream, context)
    }
}
