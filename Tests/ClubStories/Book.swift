package import Club
internal import ClubProtos
internal import Synchronization

/// The knowledge of a story that no member has: the content of the database, and all messages ever said.
package final class Book: Sendable {
    private struct State {
        var said: [Example_Club_V1_Message] = []
        var isOver = false
        var staff: Staff?
        var hasServerEnded = false
        var findings = Findings()
    }

    /// The findings in the database after a number of transactions.
    private struct Findings {
        var transactionCount = -1
        var isMoneyThere = true
        var isRoomInOrder = true
    }

    static let members = ["ada", "ben", "cleo"]
    /// More than the sessions of the three members and the visitor, including lost ones that have not expired.
    private static let maximumMemberCount = 16
    private static let openingBalance: Int64 = 100

    /// Returns the content of the database, and the number of committed transactions.
    private let readTables: @Sendable () -> (tables: ClubTables, transactionCount: Int)
    /// Reports a violation.
    let complain: @Sendable (String) -> Void
    private let state = Mutex(State())

    /// - Parameter readTables: reads the database directly, without a transaction, and counts its transactions.
    package init(
        readTables: @escaping @Sendable () -> (tables: ClubTables, transactionCount: Int),
        complain: @escaping @Sendable (String) -> Void
    ) {
        (self.readTables, self.complain) = (readTables, complain)
    }

    /// The tables at the beginning of a story.
    package static var tables: ClubTables {
        let accounts = Dictionary(uniqueKeysWithValues: members.map { ($0, openingBalance) })
        return ClubTables(rooms: [Phone.room], accounts: accounts)
    }

    package var isOver: Bool {
        get { state.withLock { $0.isOver } }
        set { state.withLock { $0.isOver = newValue } }
    }

    /// The staff of the server's newest process.
    var staff: Staff? {
        get { state.withLock { $0.staff } }
        set { state.withLock { $0.staff = newValue } }
    }

    var hasServerEnded: Bool {
        get { state.withLock { $0.hasServerEnded } }
        set { state.withLock { $0.hasServerEnded = newValue } }
    }

    /// Makes the phones of the members.
    ///
    /// - Parameter slowness: the time that the last member takes to handle a message.
    package func phones(_ cast: Cast, slowness: Duration, maximumPause: Duration) -> [Phone] {
        Book.members.map { name in
            Phone(
                name,
                others: Book.members.filter { $0 != name },
                slowness: name == Book.members.last ? slowness : .zero,
                maximumPause: maximumPause,
                cast: cast,
                book: self
            )
        }
    }

    func heard(_ message: Example_Club_V1_Message) {
        _ = currentFindings()
        let isStored = state.withLock { state in
            state.said.contains { ($0.number, $0.text) == (message.number, message.text) }
        }
        if !isStored { complain("what a member hears is stored: \(message.number), \(message.speaker)") }
    }

    // MARK: Invariants

    package var isMoneyThere: Bool { currentFindings().isMoneyThere }

    package var isRoomInOrder: Bool { currentFindings().isRoomInOrder }

    /// Returns the findings. Renews them after each transaction.
    private func currentFindings() -> Findings {
        let (tables, count) = readTables()
        return state.withLock { state in
            if state.findings.transactionCount == count { return state.findings }
            let sum = tables.accounts.values.reduce(0) { $0 + $1.balance }
            let messages = tables.rooms[Phone.room]?.messages ?? []
            let lastNumber = state.said.last?.number ?? 0
            state.said += messages.filter { $0.number > lastNumber }
            state.findings = Findings(
                transactionCount: count,
                isMoneyThere: sum == Int64(Book.members.count) * Book.openingBalance,
                isRoomInOrder: messages.count == min(state.said.count, ClubTables.keptMessageCount)
            )
            return state.findings
        }
    }

    /// Whether at most a page of messages waits for each member.
    func isBounded(_ cast: Cast) -> Bool {
        guard let staff else { return true }
        return cast.waitingCount(staff) <= Rooms.pageSize * Book.maximumMemberCount
    }

    // MARK: Checks at the end

    /// Whether all members have finished their plans, and have heard and read everything.
    package func haveAllDoneEverything(_ phones: [Phone]) -> Bool {
        let tables = readTables().tables
        return phones.allSatisfy { phone in
            let storage = phone.storage
            return phone.hasFinished && storage.heard == tables.rooms[Phone.room]?.lastNumber
                && Int(storage.entryCount) == tables.accounts[phone.name]?.entries.count
        }
    }

    /// Returns the first violation, or nil.
    package func complaint(about phones: [Phone]) -> String? {
        _ = currentFindings()
        let (tables, said) = (readTables().tables, state.withLock { $0.said })
        for phone in phones {
            let storage = phone.storage
            let sequences = said.filter { $0.speaker == phone.name }.map(\.sequence)
            if sequences != Array(1...storage.saidCount) {
                return "\(phone.name) has said \(storage.saidCount) messages, and the room has had \(sequences)"
            }
            let memos = (tables.accounts[phone.name]?.entries ?? []).filter { $0.amount < 0 }.map(\.memo)
            for memo in storage.paid {
                let count = memos.count { $0 == memo }
                if count != 1 { return "the transfer \(memo) was confirmed, and has happened \(count) times" }
            }
            if let memo = storage.refused.first(where: memos.contains) {
                return "the transfer \(memo) was refused, and has happened"
            }
            if memos.count != storage.paid.count { return "\(phone.name) has paid what nobody has confirmed" }
        }
        return nil
    }
}
