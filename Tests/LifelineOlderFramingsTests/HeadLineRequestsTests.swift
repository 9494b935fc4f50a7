import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineOlderFramings
import LifelineTestSupport
import LifelineTransport
import NIOConcurrencyHelpers
import Testing

/// Requests over head lines to a scripted peer. Only their order distinguishes answers.
@Suite(.timeLimit(.minutes(1))) struct HeadLineRequestsTests {
    private func withScene(
        requests: RequestConfiguration = RequestConfiguration(),
        _ body: (HeadLineClient, RawSocket, ManualClock) async throws -> Void
    ) async throws {
        let listener = try await RawSocket.listen()
        let clock = ManualClock()
        let client = HeadLineClient(
            .headLine,
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: ClientConfiguration(),
            requests: requests,
            logger: TestLog().logger,
            environment: ClientEnvironment(
                transport: NIOTransport.shared,
                clock: clock,
                network: ManualNetwork(),
                seed: 1
            )
        )
        let running = Task { try await client.run() }
        defer { running.cancel() }
        try await body(client, listener, clock)
        running.cancel()
        _ = await running.result
    }

    /// Sends a request with one letter as content, and waits until the peer has read it.
    private func ask(
        _ letter: Character,
        _ client: HeadLineClient,
        _ peer: RawSocket,
        timeout: Duration = .seconds(30)
    ) async throws -> Task<HeadLineMessage, any Error> {
        let task = Task { try await client.request(type: "q", content: Array("\(letter)".utf8), timeout: timeout) }
        let frame = "{\"type\":\"q\",\"size\":1}\r\n\(letter)"
        #expect(String(decoding: try await peer.read(frame.utf8.count), as: UTF8.self) == frame)
        return task
    }

    @Test func answersInOrderWithAPushBetween() async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            let tasks = [try await ask("1", client, peer), try await ask("2", client, peer)]
            try await peer.say("q", "one")
            try await peer.say("news", "!")
            try await peer.say("q", "two")
            #expect(try await tasks[0].value.text == "one")
            #expect(try await tasks[1].value.text == "two")
            for try await push in client.pushes {
                #expect(push.type == "news" && push.text == "!")
                break
            }
        }
    }

    @Test func aRequestThatHasEndedKeepsItsPlace() async throws {
        try await withScene { client, listener, clock in
            let peer = try await listener.accept()
            let late = try await ask("1", client, peer, timeout: .seconds(5))
            let cancelled = try await ask("2", client, peer)
            let patient = try await ask("3", client, peer)
            clock.advance(by: .seconds(5))
            #expect(await late.requestError?.code == .timedOut)
            cancelled.cancel()
            #expect(await cancelled.requestError?.code == .cancelled)
            for text in ["one", "two", "three"] { try await peer.say("q", text) }
            #expect(try await patient.value.text == "three")
            #expect(client.statistics.lateAnswerCount == 2)
            try await peer.say("q", "four")
            for try await push in client.pushes {
                #expect(push.text == "four", "nobody is owed anything any more")
                break
            }
        }
    }

    @Test func placesCountAsRequests() async throws {
        var configuration = RequestConfiguration()
        configuration.maximumRequestCount = 2
        try await withScene(requests: configuration) { client, listener, _ in
            let peer = try await listener.accept()
            for letter: Character in ["1", "2"] {
                let task = try await ask(letter, client, peer)
                task.cancel()
                _ = await task.result
            }
            let error = await #expect(throws: RequestError.self) { try await client.request(type: "q") }
            #expect(error?.code == .tooManyInFlight)
            try await peer.say("q", "one")
            try await until { client.statistics.lateAnswerCount == 1 }
            let next = try await ask("3", client, peer)
            try await peer.say("q", "two")
            try await peer.say("q", "three")
            #expect(try await next.value.text == "three")
        }
    }

    @Test func aNewConnectionOwesNothing() async throws {
        try await withScene { client, listener, _ in
            var peer = try await listener.accept()
            let lost = try await ask("1", client, peer)
            let cancelled = try await ask("2", client, peer)
            cancelled.cancel()
            _ = await cancelled.result
            try peer.reset()
            #expect(await lost.requestError?.code == .connectionLost)
            client.reconnect()
            peer = try await listener.accept()
            let next = try await ask("3", client, peer)
            try await peer.say("q", "three")
            #expect(try await next.value.text == "three")
            #expect(client.statistics.lateAnswerCount == 0)
        }
    }

    @Test func unsentRequestsGoOverTheNextConnection() async throws {
        try await withScene { client, listener, _ in
            var peer = try await listener.accept()
            let sent = try await ask("1", client, peer)
            try peer.reset()
            #expect(await sent.requestError?.code == .connectionLost)
            var events = client.events.makeAsyncIterator()
            _ = try await events.reach(.backingOff)
            let waiting = Task { try await client.request(type: "q", content: Array("2".utf8)) }
            try await until { client.statistics.waitingCount == 1 }
            client.reconnect()
            peer = try await listener.accept()
            let frame = "{\"type\":\"q\",\"size\":1}\r\n2"
            #expect(String(decoding: try await peer.read(frame.utf8.count), as: UTF8.self) == frame)
            try await peer.say("q", "two")
            #expect(try await waiting.value.text == "two")
        }
    }

    /// A request that was cancelled before a connection accepted it has no place in the order.
    @Test func unwrittenRequestsAreNotAnswered() async throws {
        try await withScene { client, listener, clock in
            var peer = try await listener.accept()
            try peer.reset()
            var events = client.events.makeAsyncIterator()
            _ = try await events.reach(.backingOff)
            let unsent = Task { try await client.request(type: "q", timeout: .milliseconds(1)) }
            try await until { client.statistics.waitingCount == 1 }
            clock.advance(by: .milliseconds(1))
            #expect(await unsent.requestError?.code == .timedOut)
            client.reconnect()
            peer = try await listener.accept()
            let next = try await ask("2", client, peer)
            try await peer.say("q", "two")
            #expect(try await next.value.text == "two")
        }
    }

    @Test func notificationsAndAnswersOfAnyType() async throws {
        try await withScene { client, listener, _ in
            let peer = try await listener.accept()
            try await client.notify(type: "note")
            let anything = Task { try await client.requestAnything(type: "q") }
            let other = Task {
                _ = try? await anything.value
                return try await client.request(type: "r", answerType: "s")
            }
            let frames = "{\"type\":\"note\",\"size\":0}\r\n{\"type\":\"q\",\"size\":0}\r\n"
            #expect(String(decoding: try await peer.read(frames.utf8.count), as: UTF8.self) == frames)
            try await peer.say("whatever", "1")
            #expect(try await anything.value.type == "whatever")
            _ = try await peer.read("{\"type\":\"r\",\"size\":0}\r\n".utf8.count)
            try await peer.say("r", "a push")
            try await peer.say("s", "2")
            #expect(try await other.value.text == "2")
        }
    }

    /// Many requests at once, written in any order: each gets its own answer.
    @Test func manyTasks() async throws {
        try await withServer(
            listeningOn: anyPort,
            receiving: HeadLineMessage.self,
            sending: HeadLineMessage.self
        ) { connection in
            for try await message in connection.messages { try await connection.send(message) }
        } _: { server in
            try await withHeadLineClient(to: server.boundEndpoint) { client in
                try await withThrowingTaskGroup { group in
                    for number in 0..<1000 {
                        group.addTask {
                            let content = Array("\(number)".utf8)
                            let answer = try await client.request(type: "q", content: content)
                            #expect(answer.content == content)
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }

    /// A server that ends or cuts one connection after the other amid requests: each of these ends in time, with its
    /// own answer or with the connection. None has to wait for its deadline.
    @Test func aServerThatComesAndGoes() async throws {
        struct Cut: Error {}
        let random = NIOLockedValueBox(SeededGenerator(seed: 7))
        try await withServer(
            listeningOn: anyPort,
            logger: TestLog().logger,
            receiving: HeadLineMessage.self,
            sending: HeadLineMessage.self
        ) { connection in
            var rest = random.withLockedValue { Int.random(in: 0..<40, using: &$0) }
            for try await message in connection.messages {
                if rest == 0 { throw Cut() }
                if rest == 20 { return }
                rest -= 1
                try await connection.send(message)
            }
        } _: { server in
            var configuration = ClientConfiguration()
            configuration.backoff.initialDelay = .milliseconds(1)
            configuration.backoff.cap = .milliseconds(1)
            configuration.backoff.maximumAttempts = nil
            try await withHeadLineClient(to: server.boundEndpoint, configuration: configuration) { client in
                let ends = await withTaskGroup { group in
                    for task in 0..<10 {
                        group.addTask {
                            var ends: [RequestError.Code?] = []
                            for number in 0..<50 {
                                let content = Array("\(task) \(number)".utf8)
                                do throws(RequestError) {
                                    let answer = try await client.request(type: "q", content: content)
                                    #expect(answer.content == content)
                                    ends.append(nil)
                                } catch {
                                    ends.append(error.code)
                                }
                            }
                            return ends
                        }
                    }
                    return await group.reduce(into: []) { $0 += $1 }
                }
                #expect(ends.count == 500)
                #expect(ends.allSatisfy { $0 == nil || $0 == .connectionLost })
                #expect(ends.contains(nil) && ends.contains(.connectionLost))
                #expect(client.statistics.waitingCount == 0)
            }
        }
    }
}

extension HeadLineMessage {
    fileprivate var text: String { String(decoding: content, as: UTF8.self) }
}

extension RawSocket {
    fileprivate func say(_ type: String, _ text: String) async throws {
        try await write(Array("{\"type\":\"\(type)\",\"size\":\(text.utf8.count)}\r\n\(text)".utf8))
    }
}
