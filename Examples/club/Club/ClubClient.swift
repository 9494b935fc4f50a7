public import ClubProtos
public import Lifeline

/// A client of the club. Its calls return when their outcome is known, even if that takes several connections and
/// sessions.
public struct ClubClient: Sendable {
    public let rooms: Example_Club_V1_RoomsClient
    public let ledger: Example_Club_V1_LedgerClient
    /// The time that a call waits for an answer before it is repeated.
    public let patience: Duration

    public init(_ session: SessionClient, patience: Duration = .seconds(10)) {
        rooms = Example_Club_V1_RoomsClient(session)
        ledger = Example_Club_V1_LedgerClient(session)
        self.patience = patience
    }

    // MARK: Calls

    /// Moves money exactly once. Repeats the request with the same key until the server answers.
    ///
    /// - Throws: `SessionError`: `status` if the server refused the transfer and moved no money; `cancelled`.
    public func transfer(_ request: Example_Club_V1_TransferRequest) async throws -> Example_Club_V1_Receipt {
        try await untilAnswered { try await ledger.transfer(request, timeout: patience) }
    }

    /// Posts a message exactly once. The speaker's next message has to wait until this one is answered.
    public func say(_ request: Example_Club_V1_SayRequest) async throws -> Example_Club_V1_SayReply {
        try await untilAnswered { try await rooms.say(request, timeout: patience) }
    }

    public func balance(of account: String) async throws -> Example_Club_V1_BalanceReply {
        try await untilAnswered { try await ledger.balance(.with { $0.account = account }, timeout: patience) }
    }

    // MARK: Messages and entries

    /// Receives the messages of a room until the task is cancelled.
    ///
    /// - Parameters:
    ///   - number: the number of the last message that was received.
    ///   - body: handles a message. Messages come in order and once; `missedCount` counts those that were dropped.
    public func listen(
        in room: String,
        after number: UInt64,
        _ body: (Example_Club_V1_Message) async throws -> Void
    ) async throws {
        let heard = LastNumber(number)
        try await withThrowingTaskGroup { group in
            group.addTask {
                // Ends the loop below.
                defer { rooms.heard.stop() }
                try await joinAgainAndAgain(room, after: heard)
            }
            defer { group.cancelAll() }
            for try await message in rooms.heard {
                let last = await heard.value
                guard message.room == room, message.number > last else { continue }
                // The room may have counted from a message before `last`.
                var message = message
                message.missedCount = min(message.missedCount, message.number - last - 1)
                try await body(message)
                await heard.set(to: message.number)
            }
            try await group.waitForAll()
        }
    }

    private func joinAgainAndAgain(_ room: String, after last: LastNumber) async throws {
        // A new session is in no room.
        for await event in rooms.session.sessionEvents {
            guard case .opened(_, resumed: false) = event.kind else { continue }
            let number = await last.value
            let request = Example_Club_V1_JoinRequest.with { ($0.room, $0.after) = (room, number) }
            _ = try await untilAnswered { try await rooms.join(request, timeout: patience) }
        }
    }

    /// Reads the entries of an account until the task is cancelled.
    ///
    /// - Parameters:
    ///   - number: the number of the last known entry.
    ///   - body: handles an entry. Entries come in order and once.
    public func readStatements(
        of account: String,
        after number: UInt64,
        _ body: (Example_Club_V1_Entry) async throws -> Void
    ) async throws {
        var last = number
        while true {
            try await untilAnswered {
                let request = Example_Club_V1_StatementsRequest.with { ($0.account, $0.after) = (account, last) }
                for try await entry in ledger.statements(request, timeout: nil) {
                    try await body(entry)
                    last = entry.number
                }
            }
        }
    }
}

/// Repeats a call until its outcome is known.
///
/// - Throws: the error of the call if another try would not help; `CancellationError`.
public func untilAnswered<Answer>(_ call: () async throws -> Answer) async throws -> Answer {
    while true {
        do {
            return try await call()
        } catch let error as SessionError where error.isWorthAnotherTry {
            try await Task.sleep(for: .milliseconds(200))
        }
    }
}

extension SessionError {
    /// Whether only the connection, the session or the server's state may have caused the failure. The server may have
    /// handled the call nevertheless.
    public var isWorthAnotherTry: Bool {
        switch code {
        case .sessionLost, .messageInDoubt, .messageUnsent, .timedOut, .tooManyInFlight: true
        case .status: [.unavailable, .cancelled, .resourceExhausted, .deadlineExceeded].contains(status?.code)
        default: false
        }
    }
}

/// The number of the last message that was received, for the task that joins again.
private actor LastNumber {
    private(set) var value: UInt64
    init(_ value: UInt64) { self.value = value }
    func set(to number: UInt64) { value = number }
}
