public import ClubProtos
public import Lifeline

/// The data of the club, and all changes to it. A change either happens completely, or throws a `SessionStatus` and
/// changes nothing.
public struct ClubTables: Sendable {
    public struct Room: Sendable {
        /// The newest messages, oldest first.
        public var messages: [Example_Club_V1_Message] = []
        /// The number of the last message.
        public var lastNumber: UInt64 = 0
        /// The last message of each speaker.
        public var lastSaid: [String: (sequence: UInt64, number: UInt64)] = [:]
    }

    public struct Account: Sendable {
        public var balance: Int64
        /// The entries, from number 1 on.
        public var entries: [Example_Club_V1_Entry] = []
    }

    /// A transfer that was carried out or refused.
    public struct Transfer: Sendable {
        public let request: Example_Club_V1_TransferRequest
        public let outcome: Result<Example_Club_V1_Receipt, SessionStatus>

        public init(
            request: Example_Club_V1_TransferRequest,
            outcome: Result<Example_Club_V1_Receipt, SessionStatus>
        ) {
            (self.request, self.outcome) = (request, outcome)
        }
    }

    /// The number of messages that a room keeps.
    public static let keptMessageCount = 20

    public var rooms: [String: Room]
    public var accounts: [String: Account]
    /// All transfers by key, including refused ones. A request may arrive again late, when the account has more money.
    /// It must not be carried out after the member was told that it was refused.
    public var transfers: [String: Transfer] = [:]

    public init(rooms: [String], accounts: [String: Int64]) {
        self.rooms = Dictionary(uniqueKeysWithValues: rooms.map { ($0, Room()) })
        self.accounts = accounts.mapValues { Account(balance: $0) }
    }

    // MARK: Rooms

    public func room(_ name: String) throws -> Room {
        guard let room = rooms[name] else { throw SessionStatus(.notFound, "There is no such room.") }
        return room
    }

    /// Returns at most `limit` of the messages after `number` that the room has kept.
    public func messages(in name: String, after number: UInt64, limit: Int) throws -> [Example_Club_V1_Message] {
        Array(try room(name).messages.lazy.filter { $0.number > number }.prefix(limit))
    }

    /// Stores a message, unless the room has it already.
    ///
    /// - Returns: its number.
    public mutating func say(_ request: Example_Club_V1_SayRequest) throws -> UInt64 {
        guard 1...1_000 ~= request.text.utf8.count, 1...64 ~= request.speaker.utf8.count else {
            throw SessionStatus(.invalidArgument, "A message has 1 to 1,000 bytes, and a speaker's name 1 to 64.")
        }
        var room = try room(request.room)
        if let last = room.lastSaid[request.speaker], request.sequence <= last.sequence { return last.number }
        room.lastNumber += 1
        room.lastSaid[request.speaker] = (request.sequence, room.lastNumber)
        room.messages.append(
            .with {
                ($0.room, $0.number) = (request.room, room.lastNumber)
                ($0.speaker, $0.sequence, $0.text) = (request.speaker, request.sequence, request.text)
            }
        )
        room.messages.removeFirst(max(0, room.messages.count - ClubTables.keptMessageCount))
        rooms[request.room] = room
        return room.lastNumber
    }

    // MARK: Ledger

    public func account(_ name: String) throws -> Account {
        guard let account = accounts[name] else { throw SessionStatus(.notFound, "There is no such account.") }
        return account
    }

    /// Returns at most `limit` of the entries after `number`.
    public func entries(of name: String, after number: UInt64, limit: Int) throws -> [Example_Club_V1_Entry] {
        let entries = try account(name).entries
        return Array(entries.dropFirst(Int(clamping: number)).prefix(limit))
    }

    /// Moves money, unless the key has an outcome already. Remembers the outcome.
    ///
    /// - Returns: the receipt, or `failedPrecondition` if the account has too little.
    /// - Throws: `SessionStatus` for requests that can never be carried out. They are not remembered.
    public mutating func transfer(
        _ request: Example_Club_V1_TransferRequest
    ) throws -> Result<Example_Club_V1_Receipt, SessionStatus> {
        guard 1...64 ~= request.key.utf8.count, request.memo.utf8.count <= 200, request.amount > 0,
            request.from != request.to
        else {
            throw SessionStatus(
                .invalidArgument,
                "A transfer has a key of 1 to 64 bytes, an amount above 0, and two accounts."
            )
        }
        if let known = transfers[request.key] {
            guard known.request == request else {
                throw SessionStatus(.invalidArgument, "Another transfer has this key. Make up a new one.")
            }
            return known.outcome
        }
        let payer = try account(request.from)
        _ = try account(request.to)
        let outcome: Result<Example_Club_V1_Receipt, SessionStatus> =
            payer.balance >= request.amount
            ? .success(move(request))
            : .failure(SessionStatus(.failedPrecondition, "The account has less than that."))
        transfers[request.key] = Transfer(request: request, outcome: outcome)
        return outcome
    }

    private mutating func move(_ request: Example_Club_V1_TransferRequest) -> Example_Club_V1_Receipt {
        add(-request.amount, to: request.from, other: request.to, request.memo)
        add(request.amount, to: request.to, other: request.from, request.memo)
        return .with { $0.number = UInt64(accounts[request.from]?.entries.count ?? 0) }
    }

    /// Adds an entry to an account, if there is one.
    public mutating func add(_ amount: Int64, to name: String, other: String, _ memo: String) {
        guard var account = accounts[name] else { return }
        account.balance += amount
        account.entries.append(
            .with {
                ($0.number, $0.balance) = (UInt64(account.entries.count + 1), account.balance)
                ($0.other, $0.amount, $0.memo) = (other, amount, memo)
            }
        )
        accounts[name] = account
    }
}
