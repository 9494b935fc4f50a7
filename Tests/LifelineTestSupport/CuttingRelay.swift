internal import NIOConcurrencyHelpers

/// A relay between a client and a server that cuts their connections at any byte.
package final class CuttingRelay: Sendable {
    /// The direction of bytes.
    package enum Direction: Sendable, Hashable, CaseIterable {
        case toServer, toClient
    }

    /// The way in which a connection is cut.
    package struct Cut: Sendable, Hashable {
        package enum Kind: Sendable, Hashable {
            /// Both sides get a reset.
            case reset
            /// The streams of both sides end in order, as after the kill of a relay that had read everything.
            case end
            /// Bytes in these directions vanish from now on, and so does the end of the stream. Both sides stay
            /// connected.
            case silence(Set<Direction>)
            /// The bytes of both sides stay in the relay. The connection counts as cut when it has bytes of both.
            case hold
        }

        package let kind: Kind
        /// After how many bytes of both directions together; at least 1.
        package let byteCount: Int

        package init(_ kind: Kind, after byteCount: Int) {
            self.kind = kind
            self.byteCount = byteCount
        }
    }

    /// An event of a relay.
    package enum Event: Sendable {
        case accepted
        /// A connection was cut, after this many bytes: fewer than planned after `hurry`.
        case cut(Cut)
        /// A connection has ended before it could be cut.
        case ended(Cut?)
    }

    private struct State {
        var passages: [ObjectIdentifier: NIOLockedValueBox<Passage>] = [:]
        var cutCount = 0
        var isStopped = false
        var sockets: [ObjectIdentifier: RawSocket] = [:]
    }

    package let port: Int
    private let listener: RawSocket
    private let serverPort: NIOLockedValueBox<Int>
    private let nextCut: @Sendable () async -> Cut?
    private let observe: @Sendable (Event) -> Void
    private let state = NIOLockedValueBox(State())

    /// How often it has cut.
    package var cutCount: Int { state.withLockedValue { $0.cutCount } }

    private init(
        on port: Int,
        to serverPort: Int,
        nextCut: @escaping @Sendable () async -> Cut?,
        observe: @escaping @Sendable (Event) -> Void
    ) async throws {
        listener = try await RawSocket.listen(port: port)
        self.port = listener.port
        self.serverPort = NIOLockedValueBox(serverPort)
        self.nextCut = nextCut
        self.observe = observe
    }

    /// Runs `body` with a relay that cuts all connections in one way.
    ///
    /// - Parameters:
    ///   - kind: how it cuts. Default: with a reset.
    ///   - cuts: how often it cuts; after that, it passes everything.
    ///   - byteRange: after how many bytes of both directions together it cuts a connection.
    package static func run<Result: Sendable>(
        to serverPort: Int,
        seed: UInt64,
        kind: Cut.Kind = .reset,
        cuts: Int,
        after byteRange: ClosedRange<Int>,
        _ body: @Sendable (CuttingRelay) async throws -> Result
    ) async throws -> Result {
        let plan = NIOLockedValueBox((random: SeededGenerator(seed: seed), cutsLeft: cuts))
        return try await run(
            to: serverPort,
            nextCut: {
                plan.withLockedValue { plan in
                    guard plan.cutsLeft > 0 else { return nil }
                    plan.cutsLeft -= 1
                    return Cut(kind, after: Int.random(in: byteRange, using: &plan.random))
                }
            },
            body
        )
    }

    /// Runs `body` with a relay.
    ///
    /// - Parameters:
    ///   - port: the port on which it listens; 0: one that the system chooses.
    ///   - nextCut: called for each connection, which waits for it; nil: that one is not cut.
    package static func run<Result: Sendable>(
        on port: Int = 0,
        to serverPort: Int,
        nextCut: @escaping @Sendable () async -> Cut?,
        observe: @escaping @Sendable (Event) -> Void = { _ in },
        _ body: @Sendable (CuttingRelay) async throws -> Result
    ) async throws -> Result {
        let relay = try await CuttingRelay(on: port, to: serverPort, nextCut: nextCut, observe: observe)
        async let accepting: Void = relay.accept()
        let result: Swift.Result<Result, any Error>
        do { result = .success(try await body(relay)) } catch { result = .failure(error) }
        await relay.stop()
        await accepting
        return try result.get()
    }

    /// Makes planned cuts with the next byte, even if more bytes should have passed.
    package func hurry() {
        for passage in state.withLockedValue({ Array($0.passages.values) }) { passage.withLockedValue { $0.hurry() } }
    }

    /// Connects clients to another server from now on.
    package func redirect(to port: Int) { serverPort.withLockedValue { $0 = port } }

    /// Resets all connections at once.
    package func reset() {
        for socket in state.withLockedValue({ Array($0.sockets.values) }) { try? socket.reset() }
    }

    private func accept() async {
        await withDiscardingTaskGroup { group in
            while let client = try? await listener.accept(), !state.withLockedValue({ $0.isStopped }) {
                group.addTask { await self.serve(client) }
            }
            group.cancelAll()
        }
    }

    private func stop() async {
        state.withLockedValue { $0.isStopped = true }
        reset()
        // Wakes the task that waits for a client.
        _ = try? await RawSocket.connect(toPort: port)
    }

    private func serve(_ client: RawSocket) async {
        observe(.accepted)
        let port = serverPort.withLockedValue { $0 }
        guard let server = try? await RawSocket.connect(toPort: port) else { return observe(.ended(nil)) }
        let isStopped = state.withLockedValue { state in
            for socket in [client, server] { state.sockets[ObjectIdentifier(socket)] = socket }
            return state.isStopped
        }
        if isStopped { for socket in [client, server] { try? socket.reset() } }
        let passage = NIOLockedValueBox(Passage(await nextCut()))
        state.withLockedValue { $0.passages[ObjectIdentifier(client)] = passage }
        await withDiscardingTaskGroup { group in
            group.addTask { await self.pump(.toServer, from: client, to: server, passage) }
            group.addTask { await self.pump(.toClient, from: server, to: client, passage) }
        }
        state.withLockedValue { state in
            for socket in [client, server] { state.sockets[ObjectIdentifier(socket)] = nil }
            state.passages[ObjectIdentifier(client)] = nil
        }
        passage.withLockedValue { if !$0.isCut { observe(.ended($0.cut)) } }
    }

    private func pump(
        _ direction: Direction,
        from source: RawSocket,
        to target: RawSocket,
        _ passage: NIOLockedValueBox<Passage>
    ) async {
        while let bytes = try? await source.readSome(4096), !bytes.isEmpty {
            let permit = passage.withLockedValue { $0.take(bytes.count, direction) }
            var isWritten = true
            if permit.count > 0 { isWritten = (try? await target.write(Array(bytes[..<permit.count]))) != nil }
            if permit.resets {
                // Counted first, because a client that is reset reconnects at once, and may be done before this
                // continues.
                if permit.completesCut { hasCut(passage) }
                try? source.reset()
                try? target.reset()
                return
            }
            if permit.ends {
                // Further bytes are dropped. A reset could overtake earlier bytes.
                try? source.finish()
                try? target.finish()
            }
            if permit.completesCut { hasCut(passage) }
            if !isWritten { break }
        }
        let permit = passage.withLockedValue { $0.end(direction) }
        // The end of a stream is passed to the other side, even that of a reset connection.
        if permit.passesEnd { try? target.finish() }
        if permit.completesCut { hasCut(passage) }
    }

    private func hasCut(_ passage: NIOLockedValueBox<Passage>) {
        state.withLockedValue { $0.cutCount += 1 }
        let (cut, byteCount) = passage.withLockedValue { ($0.cut, $0.byteCount) }
        if let cut { observe(.cut(CuttingRelay.Cut(cut.kind, after: byteCount))) }
    }
}

/// The cut of one connection.
private struct Passage {
    typealias Direction = CuttingRelay.Direction

    /// The decision about bytes, or about the end of a stream.
    struct Permit {
        /// The number of bytes that are passed on.
        var count = 0
        var passesEnd = false
        /// Both connections are reset, after that.
        var resets = false
        /// Both streams end, after that.
        var ends = false
        /// And this was the cut.
        var completesCut = false
    }

    let cut: CuttingRelay.Cut?
    /// How many bytes pass before the cut.
    private(set) var byteCount: Int
    /// How many of these have not arrived yet.
    private var rest: Int
    private var holding: Set<Direction> = []

    init(_ cut: CuttingRelay.Cut?) {
        self.cut = cut
        byteCount = cut.map { max($0.byteCount, 1) } ?? .max
        rest = byteCount
    }

    var isCut: Bool { rest == 0 }

    mutating func hurry() {
        guard cut != nil, rest > 1 else { return }
        byteCount -= rest - 1
        rest = 1
    }

    mutating func take(_ count: Int, _ direction: Direction) -> Permit {
        guard let cut else { return Permit(count: count) }
        let before = min(count, rest)
        let isCutNow = before > 0 && before == rest
        rest -= before
        if rest > 0 { return Permit(count: count) }
        switch cut.kind {
        case .reset:
            return Permit(count: before, resets: true, completesCut: isCutNow)
        case .end:
            return Permit(count: before, ends: isCutNow, completesCut: isCutNow)
        case .silence(let directions):
            return Permit(count: directions.contains(direction) ? before : count, completesCut: isCutNow)
        case .hold:
            return Permit(count: before, completesCut: count > before && hold(direction))
        }
    }

    mutating func end(_ direction: Direction) -> Permit {
        guard let cut, isCut else { return Permit(passesEnd: true) }
        switch cut.kind {
        case .reset, .end: return Permit(passesEnd: true)
        case .silence(let directions): return Permit(passesEnd: !directions.contains(direction))
        case .hold: return Permit(completesCut: hold(direction))
        }
    }

    /// Whether it now has bytes of both sides.
    private mutating func hold(_ direction: Direction) -> Bool {
        holding.insert(direction).inserted && holding.count == Direction.allCases.count
    }
}
