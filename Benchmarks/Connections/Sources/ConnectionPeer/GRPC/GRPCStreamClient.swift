internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix

/// Sends on one bidirectional stream.
final class GRPCStreamClient: PeerClient {
    private var held: Held<HTTP2Client>?
    private var stream: Held<GRPCStream>?

    func open(port: Int, connectionCount: Int) async throws {
        let held = try await holdClient(port: port, connectionCount: connectionCount)
        let client = held.value
        self.held = held
        stream = try await Held { hold in
            let stream = GRPCStream()
            let request = StreamingClientRequest<[UInt8]>(metadata: [:]) { writer in
                stream.began.yield(writer)
                await hold(stream)
                stream.runs.finish()
            }
            do {
                try await client.bidirectionalStreaming(
                    request: request,
                    descriptor: .stream,
                    serializer: RawBytes(),
                    deserializer: RawBytes(),
                    options: .defaults
                ) { try await stream.serveRuns($0) }
            } catch {
                await stream.refuseRuns(error)
                throw error
            }
            await stream.refuseRuns(ConnectionEnded())
        }
    }

    func close() async throws {
        try await stream?.release()
        try await held?.release()
    }

    func oneWay(_ payload: Payload, _ limit: SendLimit) async throws -> Outcome {
        try await run(payload.bytes, inFlight: nil, limit)
    }

    func echo(_ payload: Payload, inFlight: Int, _ limit: SendLimit) async throws -> Outcome {
        try await run(payload.bytes, inFlight: inFlight, limit)
    }

    private func run(_ payload: [UInt8], inFlight: Int?, _ limit: SendLimit) async throws -> Outcome {
        guard let stream = stream?.value else { throw Unsupported() }
        return try await withCheckedThrowingContinuation { done in
            let run = GRPCStream.Run(payload: payload, inFlight: inFlight, limit: limit, done: done)
            if case .terminated = stream.runs.yield(run) { done.resume(throwing: ConnectionEnded()) }
        }
    }
}

/// The two halves of a stream, which grpc-swift passes to two closures. The reading one does all the work.
private final class GRPCStream: Sendable {
    struct Run {
        let payload: [UInt8]
        let inFlight: Int?
        let limit: SendLimit
        let done: CheckedContinuation<Outcome, any Error>
    }

    let runs: AsyncStream<Run>.Continuation
    let began: AsyncStream<RPCWriter<[UInt8]>>.Continuation
    private let runsToServe: AsyncStream<Run>
    private let writers: AsyncStream<RPCWriter<[UInt8]>>

    init() {
        (runsToServe, runs) = AsyncStream.makeStream()
        (writers, began) = AsyncStream.makeStream()
    }

    func serveRuns(_ response: StreamingClientResponse<[UInt8]>) async throws {
        var writers = writers.makeAsyncIterator()
        guard let writer = await writers.next() else { return }
        var messages = response.messages.makeAsyncIterator()
        for await run in runsToServe {
            do {
                run.done.resume(returning: try await perform(run, writer, &messages))
            } catch {
                run.done.resume(throwing: error)
            }
        }
    }

    /// Ends the runs after the stream has ended.
    func refuseRuns(_ error: any Error) async {
        runs.finish()
        for await run in runsToServe { run.done.resume(throwing: error) }
    }

    private func perform(
        _ run: Run,
        _ writer: RPCWriter<[UInt8]>,
        _ messages: inout RPCAsyncSequence<[UInt8], any Error>.AsyncIterator
    ) async throws -> Outcome {
        var outcome = Outcome()
        let begin = now()
        if let inFlight = run.inFlight, inFlight * run.payload.count > safelyHeldByteCount {
            let payload = run.payload
            return try await echoSendingBesides(inFlight: inFlight, run.limit) { count in
                for _ in 0..<count { try await writer.write(payload) }
            } receive: { check in
                guard let echo = try await messages.next() else { return 0 }
                try check.received { echo == payload }
                return 1
            }
        }
        if let inFlight = run.inFlight {
            var trips = RoundTrips(inFlight: inFlight, begin: begin)
            var check = EchoCheck()
            var sent = inFlight
            try await writer.write(contentsOf: Array(repeating: run.payload, count: inFlight))
            while outcome.messages < sent {
                guard let echo = try await messages.next() else { throw ConnectionEnded() }
                trips?.end()
                try check.received { echo == run.payload }
                outcome.messages += 1
                if !run.limit.isReached(since: begin, sent: sent) {
                    sent += 1
                    try await writer.write(run.payload)
                }
            }
            trips?.complete(&outcome)
        } else {
            outcome.messages = try await writer.write(run.payload, until: run.limit)
            try await writer.write([])
            guard let answer = try await messages.next() else { throw ConnectionEnded() }
            guard answer.isEmpty else { throw WrongEcho() }
        }
        outcome.nanoseconds = now() - begin
        return outcome
    }
}
