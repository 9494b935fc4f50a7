public import ClubProtos
public import Lifeline

/// The service of the ledger.
public struct Ledger: Example_Club_V1_LedgerHandler {
    private static let pageSize = 16

    private let database: any ClubDatabase
    private let bells = Bells()

    public init(_ database: any ClubDatabase) { self.database = database }

    public func transfer(
        _ request: Example_Club_V1_TransferRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_Receipt {
        // Rings after an error too, because the change may have been made.
        defer {
            bells.ring(request.from)
            bells.ring(request.to)
        }
        return try await database.transaction { try $0.transfer(request) }.get()
    }

    public func balance(
        _ request: Example_Club_V1_BalanceRequest,
        context: SessionContext
    ) async throws -> Example_Club_V1_BalanceReply {
        let account = try await database.transaction { try $0.account(request.account) }
        return .with { ($0.balance, $0.number) = (account.balance, UInt64(account.entries.count)) }
    }

    public func statements(
        _ request: Example_Club_V1_StatementsRequest,
        to stream: SessionStreamWriter<Example_Club_V1_Entry>,
        context: SessionContext
    ) async throws {
        var last = request.after
        for await _ in bells.rings(of: request.account) {
            while true {
                let (account, after) = (request.account, last)
                let page = try await database.transaction {
                    try $0.entries(of: account, after: after, limit: Ledger.pageSize)
                }
                if page.isEmpty { break }
                for entry in page {
                    try await stream.send(entry)
                    last = entry.number
                }
            }
        }
    }
}
