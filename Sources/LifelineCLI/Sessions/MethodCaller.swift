internal import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import Synchronization

/// Calls a method, and prints its replies as JSON lines.
struct MethodCaller {
    let client: SessionClient
    let method: String
    let timeout: Duration?
    let metadata: SessionMetadata
    /// The delivery of calls with one reply, and of pushes.
    let delivery: SessionDelivery
    let replies: MessageTextEncoder

    // MARK: One reply

    /// Makes a call for each request, and prints the reply.
    ///
    /// - Parameters:
    ///   - concurrency: the number of calls at once. Replies are printed as they arrive.
    ///   - retries: whether to repeat calls that are in doubt.
    /// - Throws: the first failure of a call or of reading the requests, after the other begun calls have ended.
    func calls(_ requests: CallRequests, concurrency: Int, retries: Bool) async throws {
        try await withLateReplies(print) {
            try await makeCalls(requests, concurrency: concurrency, retries: retries)
        }
    }

    private func makeCalls(_ requests: CallRequests, concurrency: Int, retries: Bool) async throws {
        var reader = try requests.reader()
        try await withThrowingTaskGroup(of: Result<Void, any Error>.self) { group in
            var (runningCount, result) = (0, Result<Void, any Error>.success(()))
            while case .success = result {
                do {
                    guard let request = try await reader.next() else { break }
                    group.addTask { await call(request, requests, retries: retries) }
                    runningCount += 1
                } catch {
                    result = .failure(error)
                }
                // With a single call at once, wait for it, so that its failure is reported before the next request is
                // read, which a user may still have to type.
                if runningCount == concurrency, let ended = try await group.next() {
                    runningCount -= 1
                    if case .failure = ended { result = ended }
                }
            }
            for try await ended in group {
                if case .success = result { result = ended }
            }
            try result.get()
        }
    }

    private func call(_ request: RawMessage, _ requests: CallRequests, retries: Bool) async -> Result<Void, any Error> {
        do {
            return .success(try await print(try await reply(to: request, requests, retries: retries) {}))
        } catch {
            return .failure(error)
        }
    }

    /// Makes calls, and measures how long the replies take.
    func measure(
        _ count: Int,
        _ requests: CallRequests,
        concurrency: Int,
        retries: Bool
    ) async throws -> CallTally {
        let run = MeasuredRun(count: count)
        let requestsInTurn = try await requests.all()
        try await withLateReplies({ _ in await run.repliedLate() }) {
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<min(concurrency, count) {
                    group.addTask {
                        while let number = await run.next() {
                            let start = ContinuousClock.now
                            let request = requestsInTurn[number % requestsInTurn.count]
                            do throws(SessionError) {
                                _ = try await reply(to: request, requests, retries: retries) { await run.wasInDoubt() }
                                await run.replied(after: start.duration(to: .now))
                            } catch {
                                guard error.code == .sessionLost else { throw error }
                            }
                        }
                    }
                }
            }
        }
        return await run.finish()
    }

    /// Runs `body`, and meanwhile takes late replies to durable calls: of an earlier run, and of calls that took longer
    /// than the timeout.
    private func withLateReplies(
        _ take: @escaping @Sendable (RawMessage) async throws -> Void,
        _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        guard delivery.isDurable else { return try await body() }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                for try await late in client.lateReplies(to: method, of: RawMessage.self) {
                    switch late.result {
                    case .success(let reply): try await take(reply)
                    case .failure(let status): tellStep("an earlier call has failed: \("\(status)".escaped())")
                    }
                }
                return false
            }
            group.addTask {
                try await body()
                return true
            }
            defer { group.cancelAll() }
            while let isDone = try await group.next(), !isDone {}
        }
    }

    /// - Parameter whenInDoubt: called when it is unknown whether the server has handled the call.
    private func reply(
        to request: RawMessage,
        _ requests: CallRequests,
        retries: Bool,
        whenInDoubt: @Sendable () async -> Void
    ) async throws(SessionError) -> RawMessage {
        while true {
            do throws(SessionError) {
                return try await client.call(
                    method,
                    request,
                    timeout: timeout,
                    delivery: delivery,
                    metadata: metadata
                )
            } catch {
                guard error.code == .sessionLost else { throw error }
                await whenInDoubt()
                let words = retries ? "; it is called again" : ""
                tellStep("in doubt: \(requests.json(request).escaped())\(words)")
                if !retries { throw error }
            }
        }
    }

    // MARK: Streams

    /// Makes a call for each request, one after the other, and prints the replies, up to the maximum.
    func serverStreams(_ requests: CallRequests, maximumCount: Int?) async throws {
        var reader = try requests.reader()
        var rest = maximumCount ?? .max
        while rest > 0, let request = try await reader.next() {
            let stream = client.stream(method, request, of: RawMessage.self, timeout: timeout, metadata: metadata)
            for try await reply in stream {
                try await print(reply)
                rest -= 1
                if rest == 0 { break }
            }
        }
    }

    /// - Throws: the error of the call; the failure to read all requests, after those before that place were sent and
    ///   the reply is printed.
    func clientStream(_ requests: CallRequests) async throws {
        try await reportingFirst { failure in
            let reply = try await client.clientStream(
                method,
                of: RawMessage.self,
                returning: RawMessage.self,
                timeout: timeout,
                metadata: metadata
            ) { writer in
                try await send(requests, to: writer, failure)
            }
            try await print(reply)
        }
    }

    /// - Throws: as `clientStream`.
    func bothWays(_ requests: CallRequests, maximumCount: Int?) async throws {
        try await reportingFirst { failure in
            try await client.bothWays(
                method,
                sending: RawMessage.self,
                receiving: RawMessage.self,
                timeout: timeout,
                metadata: metadata
            ) { writer in
                try await send(requests, to: writer, failure)
            } receive: { replies in
                try await print(replies, maximumCount: maximumCount)
            }
        }
    }

    /// Makes a call. If its requests could not be read, throws that failure in place of the call's own error.
    private func reportingFirst(_ call: (ReadingFailure) async throws -> Void) async throws {
        let failure = ReadingFailure()
        do {
            try await call(failure)
        } catch {
            try failure.check()
            throw error
        }
        try failure.check()
    }

    /// Sends the requests up to the first that cannot be read.
    private func send(
        _ requests: CallRequests,
        to writer: SessionStreamWriter<RawMessage>,
        _ failure: ReadingFailure
    ) async throws {
        var reader = try requests.reader()
        do {
            while let request = try await reader.next() { try await writer.send(request) }
        } catch let error as CommandFailure {
            failure.keep(error)
        }
    }

    // MARK: Pushes

    /// Pushes each request. Returns when the server has processed the last one, and therefore all.
    func pushes(_ requests: CallRequests) async throws {
        var reader = try requests.reader()
        guard var last = try await reader.next() else { return }
        do {
            while let next = try await reader.next() {
                try await client.push(method, last, delivery: delivery, metadata: metadata)
                last = next
            }
        } catch let failure as CommandFailure {
            // The pushes before it are then processed, too.
            try await client.push(method, last, delivery: delivery, until: .processed, metadata: metadata)
            throw failure
        }
        try await client.push(method, last, delivery: delivery, until: .processed, metadata: metadata)
    }

    // MARK: Printing

    func print<Replies: AsyncSequence>(
        _ replies: Replies,
        maximumCount: Int?
    ) async throws where Replies.Element == RawMessage {
        var rest = maximumCount ?? .max
        for try await reply in replies {
            try await print(reply)
            rest -= 1
            if rest == 0 { return }
        }
    }

    private func print(_ reply: RawMessage) async throws {
        var output: [UInt8] = []
        do {
            try reply.withUnsafeBytes { try replies.append($0, to: &output) }
        } catch let error as MessageError {
            throw CommandFailure(status: .badData, message: "Cannot decode a reply of \(method). \(error.words)")
        }
        try await OutputFile.standardOutput.write(output)
    }
}

/// The failure to read all requests of a stream, which ends the stream in order.
private final class ReadingFailure: Sendable {
    private let failure = Mutex<CommandFailure?>(nil)

    func keep(_ error: CommandFailure) { failure.withLock { $0 = error } }

    /// - Throws: the failure.
    func check() throws { if let failure = failure.withLock({ $0 }) { throw failure } }
}

/// Counts calls while they are made.
private actor MeasuredRun {
    private let count: Int
    private var begunCount = 0
    private var tally = CallTally()
    private var progress = Progress(verb: "replied:", noun: "calls")

    init(count: Int) { self.count = count }

    /// Returns the number of the next call, from 0; nil when there are enough.
    func next() -> Int? {
        if Task.isCancelled || begunCount == count { return nil }
        defer { begunCount += 1 }
        return begunCount
    }

    func replied(after latency: Duration) {
        tally.replied(after: latency)
        progress.report(count: tally.repliedCount)
    }

    func repliedLate() { tally.repliedLate() }

    func wasInDoubt() { tally.wasInDoubt() }

    func finish() -> CallTally {
        progress.finish(count: tally.repliedCount)
        return tally
    }
}
