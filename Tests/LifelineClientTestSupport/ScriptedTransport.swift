internal import Lifeline
package import LifelineCore
internal import LifelineRuntime
package import LifelineTransport
internal import NIOConcurrencyHelpers
internal import NIOCore

/// A transport in memory whose peers a test scripts. Nothing takes time.
package final class ScriptedTransport: Transport {
    /// An attempt to connect that waits for the test's decision.
    package struct Attempt: Sendable {
        package let endpoint: Endpoint
        private let decision: Latch<Result<ScriptedPeer, ConnectionError>>
        private let makePeer: @Sendable () -> ScriptedPeer

        fileprivate init(
            endpoint: Endpoint,
            decision: Latch<Result<ScriptedPeer, ConnectionError>>,
            makePeer: @escaping @Sendable () -> ScriptedPeer
        ) {
            self.endpoint = endpoint
            self.decision = decision
            self.makePeer = makePeer
        }

        @discardableResult
        package func accept(unacknowledgedFrameCount: Int? = nil) -> ScriptedPeer {
            let peer = makePeer()
            peer.unacknowledgedFrameCount.withLockedValue { $0 = unacknowledgedFrameCount }
            decision.open(with: .success(peer))
            return peer
        }

        /// Makes the connection, but does not report it to the client yet.
        package func acceptUnnoticed() -> ScriptedPeer { makePeer() }

        /// Accepts, and ends the peer's side before the client has the connection.
        @discardableResult
        package func acceptAndFinish() -> ScriptedPeer {
            let peer = makePeer()
            peer.finish()
            decision.open(with: .success(peer))
            return peer
        }

        package func refuse(_ code: ConnectionError.Code = .connectFailed) {
            decision.open(with: .failure(ConnectionError(code: code, message: "Refused by the test.")))
        }
    }

    package init() {}

    private let attempts = AsyncStream.makeStream(of: Attempt.self)
    /// Connections that are not closed.
    private let connections = NIOLockedValueBox((open: 0, maximum: 0))

    private let attemptsBegun = NIOLockedValueBox(0)

    /// Attempts that were begun.
    package var attemptCount: Int { attemptsBegun.withLockedValue { $0 } }
    package var connectionCount: Int { connections.withLockedValue { $0.open } }
    /// The largest number of connections that were open at once.
    package var maximumConnectionCount: Int { connections.withLockedValue { $0.maximum } }

    /// The next attempt. For one task at a time.
    package func nextAttempt() async throws -> Attempt {
        for await attempt in attempts.stream { return attempt }
        throw CancellationError()
    }

    package func connect<Receiver: FrameReceiver>(
        to endpoint: Endpoint,
        options: ConnectionOptions,
        makeReceiver: @escaping @Sendable () -> Receiver
    ) async throws -> OpenedConnection<Receiver.Inbox> {
        let decision = Latch<Result<ScriptedPeer, ConnectionError>>()
        let state = NIOLockedValueBox(MadeConnection<Receiver>())
        let attempt = Attempt(endpoint: endpoint, decision: decision) { [self] in
            let made = ScriptedConnection(receiver: makeReceiver(), options: options, endpoint: endpoint) { [self] in
                connections.withLockedValue { $0.open -= 1 }
            }
            connections.withLockedValue { connections in
                connections.open += 1
                connections.maximum = max(connections.maximum, connections.open)
            }
            let isAbandoned = state.withLockedValue { state in
                state.connection = made
                return state.isAbandoned
            }
            if isAbandoned { made.abort(.closedLocally) }
            return made.peer
        }
        attemptsBegun.withLockedValue { $0 += 1 }
        attempts.continuation.yield(attempt)
        do {
            _ = try await decision.wait().get()
        } catch is CancellationError {
            let made = state.withLockedValue { state in
                state.isAbandoned = true
                return state.connection
            }
            made?.abort(.closedLocally)
            throw CancellationError()
        }
        guard let made = state.withLockedValue({ $0.connection }) else { throw CancellationError() }
        return OpenedConnection(made, inbox: made.inbox)
    }

    package func listen<Receiver: FrameReceiver>(
        on endpoint: Endpoint,
        options: ListenerOptions,
        makeReceiver: @escaping @Sendable () -> Receiver
    ) async throws(ConnectionError) -> any TransportListener<Receiver.Inbox> {
        throw ConnectionError(code: .listenFailed, message: "Nobody listens here.")
    }
}

private struct MadeConnection<Receiver: FrameReceiver>: Sendable {
    var connection: ScriptedConnection<Receiver>?
    /// Nobody waits for it any more.
    var isAbandoned = false
}

/// The other end of a scripted connection.
package struct ScriptedPeer: Sendable {
    /// Delivers a batch of frames' payloads. Returns false if the client wants no more for now.
    package let send: @Sendable (_ payloads: [[UInt8]]) -> Bool
    /// Takes the bytes that the client has written so far. Without this, its outgoing queue fills.
    package let read: @Sendable () -> [UInt8]
    /// Makes the client's heartbeat send a ping.
    package let ping: @Sendable (UInt64) -> [UInt8]?
    /// Ends the peer's side.
    package let finish: @Sendable () -> Void
    /// Ends the connection: in order, or with an error.
    package let close: @Sendable (ConnectionError?) -> Void
    /// Ends the client's close without the peer's end, as after a timeout.
    package let missEnd: @Sendable () -> Void
    /// How often the client asked for a sign of life.
    fileprivate let probes = NIOLockedValueBox(0)
    /// How often the client asked to continue reading.
    fileprivate let resumes = NIOLockedValueBox(0)
    /// Whether the client's close waits for the test's `close`.
    fileprivate let holdsClosing = NIOLockedValueBox(false)
    /// The senders with something to offer, while the test decides when; nil while offers are made at once.
    fileprivate let heldSources = NIOLockedValueBox<[any FrameSource]?>(nil)
    fileprivate let unacknowledgedFrameCount = NIOLockedValueBox<Int?>(nil)
    /// The connection's report about the last received bytes.
    fileprivate let lastInbound = NIOLockedValueBox<MonotonicTime?>(nil)
    /// Opens when the client closes in order.
    fileprivate let closeRequested = Latch<Void>()
    /// Opens when the client cuts the connection.
    fileprivate let aborted = Latch<ConnectionError>()

    /// The time of the last received bytes, for the report of the connection's end.
    package func spoke(at time: MonotonicTime) { lastInbound.withLockedValue { $0 = time } }

    package var probeCount: Int { probes.withLockedValue { $0 } }
    package var resumeCount: Int { resumes.withLockedValue { $0 } }

    /// Lets the client's close wait for `close`.
    package func holdClosing() { holdsClosing.withLockedValue { $0 = true } }

    /// Makes the client hold back its offers if it can, as on a loop that runs its tasks.
    package func holdOffers() { heldSources.withLockedValue { $0 = [] } }

    /// Makes it offer now, and hold back the next offers. Returns how many senders held something back.
    package func takeOffers() -> Int {
        let sources = heldSources.withLockedValue { sources in
            defer { sources = [] }
            return sources ?? []
        }
        for source in sources { source.offer() }
        return sources.count
    }

    /// The error with which the client has cut the connection; nil if it has not.
    package var abortReason: ConnectionError? { aborted.value }

    /// Waits until the client closes in order.
    package func waitForClose() async throws { _ = try await closeRequested.wait() }

    /// Waits until the client cuts the connection.
    package func waitForAbort() async throws { _ = try await aborted.wait() }
}

/// The client's end of a scripted connection, with the outgoing queue of a real one.
///
/// Unchecked, as the receiver is not Sendable: it is touched only while `lock` is held.
private final class ScriptedConnection<Receiver: FrameReceiver>: TransportConnection, @unchecked Sendable {
    let localEndpoint = Endpoint.unix(path: "/scripted/local")
    let remoteEndpoint: Endpoint
    let inbox: Receiver.Inbox

    private let lock = NIOLock()
    private var receiver: Receiver
    private let isInputFinished = NIOLockedValueBox(false)
    private let deferred = NIOLockedValueBox(Deferred())
    private let outbound: OutboundQueue
    private let closed = Latch<ClosureReport>()
    private let whenClosed: @Sendable () -> Void
    private let thePeer = NIOLockedValueBox<ScriptedPeer?>(nil)

    /// An end of the connection that waits until the current call of the receiver returns.
    private struct Deferred {
        var tellerCount = 0
        var ends: [@Sendable () -> Void] = []
    }

    init(receiver: Receiver, options: ConnectionOptions, endpoint: Endpoint, whenClosed: @escaping @Sendable () -> Void)
    {
        self.inbox = receiver.inbox
        self.receiver = receiver
        self.outbound = OutboundQueue(marks: options.outboundMarks)
        self.remoteEndpoint = endpoint
        self.whenClosed = whenClosed
        let peer = ScriptedPeer(
            send: { [self] in receive($0) },
            read: { [self] in takeWritten() },
            ping: { [self] in ping(number: $0) },
            finish: { [self] in finishInput(throwing: nil) },
            close: { [self] in end($0) },
            missEnd: { [self] in end(nil, peerEndedInTime: false) }
        )
        thePeer.withLockedValue { $0 = peer }
    }

    var peer: ScriptedPeer {
        guard let peer = thePeer.withLockedValue({ $0 }) else { preconditionFailure("set by init") }
        return peer
    }

    private func receive(_ payloads: [[UInt8]]) -> Bool {
        if isInputFinished.withLockedValue({ $0 }) { return false }
        return tell { receiver in
            for payload in payloads {
                try? RawMessage(bytes: payload).withDelimitedBytes {
                    try receiver.receive(FrameRun(unchecked: $0, count: 1))
                }
            }
            return receiver.finishBatch() == .more
        }
    }

    /// Calls the receiver. If the connection ends meanwhile, the end follows the call, as on an event loop.
    private func tell<Result>(_ body: (inout Receiver) -> Result) -> Result {
        deferred.withLockedValue { $0.tellerCount += 1 }
        defer {
            let ends = deferred.withLockedValue { deferred -> [@Sendable () -> Void] in
                deferred.tellerCount -= 1
                guard deferred.tellerCount == 0 else { return [] }
                defer { deferred.ends = [] }
                return deferred.ends
            }
            for end in ends { end() }
        }
        return lock.withLock { body(&receiver) }
    }

    private func afterTelling(_ end: @escaping @Sendable () -> Void) {
        let isDeferred = deferred.withLockedValue { deferred in
            guard deferred.tellerCount > 0 else { return false }
            deferred.ends.append(end)
            return true
        }
        if !isDeferred { end() }
    }

    private func ping(number: UInt64) -> [UInt8]? {
        lock.withLock { try? receiver.pingFrame(number: number) }
    }

    private func takeWritten() -> [UInt8] {
        guard case .write(let buffer, _, _) = outbound.takeForFlush() else { return [] }
        _ = outbound.completeWrite()
        return Array(buffer.readableBytesView)
    }

    private func finishInput(throwing error: ConnectionError?) {
        let isFirst = isInputFinished.withLockedValue { isFinished in
            defer { isFinished = true }
            return !isFinished
        }
        if isFirst { tell { $0.finish(throwing: error) } }
    }

    private func end(_ failure: ConnectionError?, peerEndedInTime: Bool = true) {
        finishInput(throwing: failure)
        let unwritten = outbound.close(failure ?? .closedLocally)
        let report = ClosureReport(
            failure: failure,
            peerEndedInTime: peerEndedInTime,
            unwrittenByteCount: unwritten,
            lastInboundAt: peer.lastInbound.withLockedValue { $0 },
            acceptedFrameCount: outbound.acceptedFrameCount,
            unacknowledgedFrameCount: peer.unacknowledgedFrameCount.withLockedValue { $0 }
        )
        if closed.open(with: report) { whenClosed() }
    }

    func offer(_ frames: UnsafeRawBufferPointer, count: Int) throws(ConnectionError) -> PendingSend? {
        pending(try outbound.offer(frames, count: count))
    }

    func offer(writing body: (inout OutboundBytes) -> Void) throws(ConnectionError) -> PendingSend? {
        pending(try outbound.offer(writing: body))
    }

    private func pending(_ offer: OutboundQueue.Offer) -> PendingSend? {
        if case .pending(let pending) = offer { pending } else { nil }
    }

    func offerLater(_ source: any FrameSource) -> Bool {
        peer.heldSources.withLockedValue { sources in
            sources?.append(source)
            return sources != nil
        }
    }

    func writeEarly() {}

    nonisolated(nonsending) func wait(for pending: PendingSend) async throws {
        try await outbound.wait(for: pending)
    }

    func offerNow(_ head: UnsafeRawBufferPointer, _ rest: UnsafeRawBufferPointer) throws(ConnectionError) -> Bool {
        try outbound.offerNow(head, rest) != nil
    }

    nonisolated(nonsending) func waitForRoom() async throws {
        try await outbound.waitForRoom()
    }

    func finishSending() async throws {}

    func endSending() { _ = outbound.finish() }

    func resumeReading() { peer.resumes.withLockedValue { $0 += 1 } }

    func stopReceiving() {}

    func probe() { peer.probes.withLockedValue { $0 += 1 } }

    func close() {
        afterTelling { [self] in
            finishInput(throwing: nil)
            _ = outbound.finish(closing: .closedLocally)
            peer.closeRequested.open(with: ())
            if !peer.holdsClosing.withLockedValue({ $0 }) { end(nil) }
        }
    }

    func undeliveredByteCount() async -> Int { 0 }
    func abort(_ reason: ConnectionError) {
        afterTelling { [self] in
            peer.aborted.open(with: reason)
            end(reason)
        }
    }

    func waitUntilClosed() async -> ClosureReport { await closed.waitUninterrupted() }
    func whenClosed(_ call: @escaping @Sendable () -> Void) { closed.whenOpened { _ in call() } }
}
