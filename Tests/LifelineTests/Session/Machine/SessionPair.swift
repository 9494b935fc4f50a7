import Lifeline

/// A client and a server that are connected, over links that are never slow.
struct SessionPair {
    var client: TestMachine
    var server: TestMachine
    /// What each was told, but for the session's being opened.
    var told: [TestMachine.Action] = []
    var toldServer: [TestMachine.Action] = []

    init(_ options: SessionOptions = SessionOptions()) {
        client = TestMachine(role: .client, options: options)
        server = TestMachine(role: .server, options: options)
        connect(isResumed: false, now: .ms(0))
    }

    mutating func connect(isResumed: Bool, now: MonotonicTime) {
        _ = client.connected(now: now)
        guard case .hello(let hello)? = client.nextFrame(now: now)?.0 else { return }
        toldServer += server.opened(by: hello, .test(1), isResumed: isResumed, now: now)
        exchange(now: now)
    }

    mutating func exchange(now: MonotonicTime) {
        while true {
            if let (frame, actions) = client.nextFrame(now: now) {
                told += actions
                toldServer += server.received(frame, now: now)
            } else if let (frame, actions) = server.nextFrame(now: now) {
                toldServer += actions
                told += client.received(frame, now: now)
            } else {
                return
            }
        }
    }

    mutating func cut(now: MonotonicTime) {
        told += client.disconnected(now: now)
        toldServer += server.disconnected(now: now)
    }

    mutating func take() -> (client: [TestMachine.Action], server: [TestMachine.Action]) {
        defer { (told, toldServer) = ([], []) }
        return (told, toldServer)
    }
}

/// A content of a number.
func content(_ number: Int, _ byteCount: Int = 10) -> TestContent {
    TestContent(number: number, byteCount: byteCount)
}

/// The receipts of what is to be processed.
func receipts(_ actions: [TestMachine.Action]) -> [TestMachine.Receipt] {
    actions.compactMap { if case .deliverPush(_, _, let receipt) = $0 { receipt } else { nil } }
}

/// The requests that are to be processed.
func incoming(_ actions: [TestMachine.Action]) -> [IncomingRequest] {
    actions.compactMap { action in
        switch action {
        case .beginRequest(let request, _, _), .refuseRequest(let request, _, _): request
        default: nil
        }
    }
}
