import Club
import ClubProtos
import Lifeline
import Testing

/// Transfers as changes of the tables, without a network.
@Suite struct TransferTests {
    private func transfer(_ key: String, of amount: Int64) -> Example_Club_V1_TransferRequest {
        .with { ($0.key, $0.from, $0.to, $0.amount) = (key, "ada", "ben", amount) }
    }

    @Test func aTransferIsCarriedOutOnce() throws {
        var tables = ClubTables(rooms: [], accounts: ["ada": 100, "ben": 100])
        let receipt = try tables.transfer(transfer("1", of: 30)).get()
        #expect(try tables.transfer(transfer("1", of: 30)).get() == receipt)
        #expect(tables.accounts.mapValues(\.balance) == ["ada": 70, "ben": 130])
    }

    /// Otherwise a request that arrives late would be carried out after its repetition was refused.
    @Test func aRefusedTransferStaysRefused() throws {
        var tables = ClubTables(rooms: [], accounts: ["ada": 100, "ben": 100])
        for _ in 1...2 {
            let refusal = #expect(throws: SessionStatus.self) { try tables.transfer(transfer("1", of: 150)).get() }
            #expect(refusal?.code == .failedPrecondition)
            tables.add(100, to: "ada", other: "cleo", "")
        }
        #expect(tables.accounts["ben"]?.balance == 100)
        _ = try tables.transfer(transfer("2", of: 150)).get()
        #expect(tables.accounts["ben"]?.balance == 250)
    }

    @Test func aKeyBelongsToOneTransfer() throws {
        var tables = ClubTables(rooms: [], accounts: ["ada": 100, "ben": 100])
        _ = try tables.transfer(transfer("1", of: 30)).get()
        let refusal = #expect(throws: SessionStatus.self) { try tables.transfer(transfer("1", of: 40)) }
        #expect(refusal?.code == .invalidArgument)
        #expect(tables.accounts["ben"]?.balance == 130)
    }
}
