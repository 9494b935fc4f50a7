import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import NIOConcurrencyHelpers
import TestProtos
import Testing

@testable import Lifeline

/// A session server against clients that a test scripts frame by frame, on a manual clock.
@Suite(.timeLimit(.minutes(1))) struct SessionServerTests {
    private typealias Frame = Lifeline_Session_V1_Frame

    var echo: SessionMethod { .unary("t.T/Echo") { (message: TestMessage, _) in message } }

    @Test func itWelcomesAndResumes() async throws {
        try await withServer(echo, configure: { $0.limits.maximumHandlerCount = 7 }) { server, _ in
            let first = try await RawSessionClient.connect(to: server)
            let welcome = try await first.hello { $0.name = "anna" }.welcome
            #expect(welcome.version == 1)
            #expect((welcome.sessionID.count, welcome.token.count) == (16, 16))
            #expect(!welcome.resumed)
            #expect(welcome.keptMilliseconds == 120_000)
            #expect(welcome.terms.maximumRequests == 7)
            try await first.ask("t.T/Echo")
            let reply = try await first.next().urgentResponse
            #expect((first.urgentCount, reply.serial, reply.status) == (1, 1, 0))
            try first.socket.reset()
            // Unacknowledged frames arrive again.
            let second = try await RawSessionClient.connect(to: server)
            let back = try await second.resume(welcome) {
                $0.name = "berta"
            }.welcome
            #expect(back.resumed)
            #expect((back.sessionID, back.token) == (welcome.sessionID, welcome.token))
            // The method's name, and the request.
            #expect((back.progress.processed, back.progress.received, back.progress.urgent) == (2, 2, 0))
            #expect(try await second.next().urgentResponse.serial == 1)
            #expect(server.sessions.count == 1)
            #expect(server.session(named: "anna") == nil)
            #expect(server.session(named: "berta") != nil)
        }
    }

    /// Its tasks stop when no request has come for 10 s, and others take their place.
    @Test func aSessionHandlesRequestsAfterAQuietTime() async throws {
        let echo = SessionMethod.unary("t.T/Echo") { (message: TestMessage, _) async throws in
            await Task.yield()
            return message
        }
        try await withServer(echo) { server, clock in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            var serial: UInt32 = 0
            func ask() async throws {
                serial += 1
                try await client.ask("t.T/Echo", serial: serial)
                #expect(try await client.next().urgentResponse.serial == serial)
            }
            for _ in 1...5 {
                try await ask()
                try await ask()
                // The acknowledgement that waits comes first.
                try await until { clock.nextWakeUp != nil }
                while let next = clock.nextWakeUp {
                    clock.advance(to: next)
                    await Task.yield()
                }
            }
        }
    }

    @Test func anOvertakenHelloCostsItsOwnConnectionAlone() async throws {
        try await withServer(echo) { server, _ in
            let first = try await RawSessionClient.connect(to: server)
            let welcome = try await first.hello { $0.attempt = 2 }.welcome
            let second = try await RawSessionClient.connect(to: server)
            let answer = try await second.resume(welcome)
            #expect(answer.goodbye.code == .replaced)
            #expect(try await second.isEnded())
            try await first.ask("t.T/Echo")
            #expect(try await first.next().urgentResponse.serial == 1)
        }
    }

    @Test func aFrameThatIsNoMessageEndsTheSession() async throws {
        // A field with a wire type that does not exist, and a frame with two kinds.
        let frames: [[UInt8]] = [[0x02, 0x08 | 7, 0x01], [0x04, 0x7A, 0x00, 0x7A, 0x00]]
        for bytes in frames {
            try await withServer(echo) { server, _ in
                let client = try await RawSessionClient.connect(to: server)
                let welcome = try await client.hello().welcome
                try await client.socket.write(bytes)
                while (try? await client.next()) != nil {}
                try await until { server.sessions.isEmpty }
                let again = try await RawSessionClient.connect(to: server)
                let answer = try await again.resume(welcome)
                #expect(!answer.welcome.resumed)
            }
        }
    }

    /// A killed relay leaves such a connection.
    @Test func aConnectionThatEndsInAFrameIsOnlyLost() async throws {
        try await withServer(echo) { server, _ in
            let first = try await RawSessionClient.connect(to: server)
            let welcome = try await first.hello().welcome
            let method = try await first.name("t.T/Echo")
            let frame = Frame.with { ($0.request.serial, $0.request.method) = (1, method) }
            try await first.socket.write(frame.withDelimitedBytes { Array($0.dropLast()) })
            try first.socket.finish()
            #expect(try await first.isEnded())
            let second = try await RawSessionClient.connect(to: server, methods: first.methods)
            let back = try await second.resume(welcome).welcome
            #expect(back.resumed && back.progress.received == 1, "the name of the method")
            try await second.send(frame)
            #expect(try await second.next().urgentResponse.serial == 1)
        }
    }

    /// The registry still finds the session until it has removed it; the client does not compete with another
    /// connection.
    @Test func aClientOfASessionThatHasJustEndedBeginsANewOne() async throws {
        try await withServer(echo) { server, clock in
            let first = try await RawSessionClient.connect(to: server)
            let welcome = try await first.hello().welcome
            let session = try #require(server.sessions.first)
            var ending: [SessionMachine.Action] = []
            session.engine.state.withLock { $0.machine.end(.closed, now: clock.now, into: &ending) }
            let second = try await RawSessionClient.connect(to: server)
            let goodbye = try await second.resume(welcome).goodbye
            #expect((goodbye.code, goodbye.pauseMilliseconds) == (.draining, 0))
            #expect(try await second.isEnded())
            session.engine.change { state, _ in state.actions += ending }
        }
    }

    @Test func theNewerConnectionHasTheSession() async throws {
        try await withServer(echo) { server, _ in
            let first = try await RawSessionClient.connect(to: server)
            let welcome = try await first.hello().welcome
            let second = try await RawSessionClient.connect(to: server)
            #expect(try await second.resume(welcome).welcome.resumed)
            #expect(try await first.next().goodbye.code == .replaced)
            #expect(try await first.isEnded())
            // The end of the older connection changes nothing.
            try await second.ask("t.T/Echo")
            #expect(try await second.next().urgentResponse.serial == 1)
        }
    }

    @Test func aWrongTokenBeginsANewSession() async throws {
        try await withServer(echo) { server, _ in
            let welcome = try await RawSessionClient.connect(to: server).hello().welcome
            let other = try await RawSessionClient.connect(to: server)
            let answer = try await other.resume(welcome) { $0.token = [UInt8](repeating: 1, count: 16) }.welcome
            #expect(!answer.resumed)
            #expect(answer.sessionID != welcome.sessionID)
        }
    }

    @Test func aSessionIsKeptForAWhile() async throws {
        try await withServer(echo) { server, clock in
            let first = try await RawSessionClient.connect(to: server)
            let welcome = try await first.hello().welcome
            try first.socket.reset()
            let end = clock.now + .seconds(120)
            try await until { clock.nextWakeUp == end }
            clock.advance(to: end)
            try await until { server.sessions.isEmpty }
            let second = try await RawSessionClient.connect(to: server)
            #expect(try await !second.resume(welcome).welcome.resumed)
        }
    }

    @Test func aClientThatSaysNothing() async throws {
        try await withServer(echo) { server, clock in
            let client = try await RawSessionClient.connect(to: server)
            let late = clock.now + .seconds(10)
            try await until { clock.nextWakeUp == late }
            clock.advance(to: late)
            #expect(try await client.isEnded())
        }
    }

    @Test func hostileFirstFrames() async throws {
        let frames: [Frame] = [
            .with { $0.request.serial = 1 },
            .with { $0.push.method = 1 },
            .method(1, "t.T/Echo"),
            .with { $0.acknowledgement.ordinary = 1 },
            .with { $0.credit.method = 1 },
            .with { $0.welcome.version = 1 },
            .with { $0.goodbye.code = .closed },
            .with { $0.hello.maximumVersion = 1 },
        ]
        try await withServer(echo) { server, _ in
            for frame in frames {
                let client = try await RawSessionClient.connect(to: server)
                try await client.send(frame)
                #expect(try await client.next().goodbye.code == .violation)
                #expect(try await client.isEnded())
            }
            #expect(server.sessions.isEmpty)
            let client = try await RawSessionClient.connect(to: server)
            #expect(try await client.hello { ($0.minimumVersion, $0.maximumVersion) = (2, 3) }.goodbye.code == .version)
            #expect(try await client.isEnded())
        }
    }

    /// Such a frame has no meaning and no place.
    @Test func aFrameWithoutAKindIsIgnored() async throws {
        try await withServer(echo) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            try await client.send(Frame())
            #expect(try await client.hello().welcome.version == 1)
            try await client.send(Frame())
            try await client.ask("t.T/Echo")
            #expect(try await client.next().urgentResponse.serial == 1)
        }
    }

    @Test func aClientThatBreaksTheRules() async throws {
        let frames: [Frame] = [
            .with { $0.push.method = 1 },
            .method(2, "t.T/Push"),
            .with { ($0.request.serial, $0.request.method) = (1, 1) },
            .with { $0.acknowledgement.ordinary = 1 },
            .with { $0.credit.bytes = 1 },
            .with { $0.welcome.version = 1 },
            .with { $0.hello.maximumVersion = 1 },
        ]
        try await withServer(echo) { server, _ in
            for frame in frames {
                let client = try await RawSessionClient.connect(to: server)
                _ = try await client.hello()
                try await client.send(frame)
                #expect(try await client.next().goodbye.code == .violation)
                #expect(try await client.isEnded(), "\(frame)")
            }
            // A session ends with a violation.
            try await until { server.sessions.isEmpty }
        }
    }

    /// The limit is 64 KiB, and then the one of the welcome.
    @Test func framesBeforeTheWelcomeAreShort() async throws {
        try await withServer(echo) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            // A length prefix of 64 KiB and one byte is enough.
            try await client.socket.write([0x81, 0x80, 0x04])
            await #expect(throws: RawSocket.Failure.self) { try await client.socket.read() }
            let other = try await RawSessionClient.connect(to: server)
            _ = try await other.hello { $0.terms.windowBytes = 1 << 20 }
            let message = TestMessage([UInt8](repeating: 7, count: 200_000))
            let payload = try message.withDelimitedBytes { Array($0.dropFirst(3)) }
            try await other.ask("t.T/Echo", payload)
            #expect(try await other.next().urgentResponse.payload.count == payload.count)
        }
    }

    @Test func aFullServer() async throws {
        try await withServer(echo, configure: { $0.maximumSessionCount = 1 }) { server, _ in
            let first = try await RawSessionClient.connect(to: server)
            _ = try await first.hello()
            let second = try await RawSessionClient.connect(to: server)
            #expect(try await second.hello().goodbye.code == .full)
            // The end of a session makes room.
            try await first.send(.with { $0.goodbye.code = .closed })
            #expect(try await first.isEnded())
            try await until { server.state.withLockedValue { $0.sessions.isEmpty } }
            #expect(try await RawSessionClient.connect(to: server).hello().welcome.version == 1)
        }
    }

    @Test func aDeadlineCancelsTheHandler() async throws {
        let (begun, cancelled) = (Event(), Event())
        let method = SessionMethod.unary("t.T/Wait") { (message: TestMessage, _) in
            begun.signal()
            try? await Event().wait()
            cancelled.signal()
            return message
        }
        try await withServer(method) { server, clock in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await client.ask("t.T/Wait") { $0.timeoutMilliseconds = 5 }
            try await begun.wait()
            clock.advance(by: .milliseconds(5))
            try await cancelled.wait()
        }
    }

    @Test func pingsAreAnsweredAndCount() async throws {
        try await withServer(echo) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            let session = try #require(server.sessions.first)
            try await session.push("t.T/News", TestMessage(number: 1))
            let method = try await client.nextFrame().method
            #expect((method.number, method.name) == (1, "t.T/News"))
            let push = try await client.next().push
            #expect((client.ordinaryCount, push.method) == (2, 1))
            try await client.acknowledgeAll()
            try await client.send(.with { $0.ping.number = 9 })
            #expect(try await client.next().pong.number == 9)
            try await until { session.statistics.keptMessageCount == 0 }
        }
    }

    @Test func shuttingDownFinishesWhatWasBegun() async throws {
        let (begun, release) = (Event(), Event())
        let method = SessionMethod.unary("t.T/Wait") { (message: TestMessage, _) in
            begun.signal()
            try await release.wait()
            return message
        }
        try await withServer(method, configure: { $0.drainSpread = .milliseconds(700) }) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            let welcome = try await client.hello().welcome
            try await client.ask("t.T/Wait")
            try await begun.wait()
            async let down: Void = server.shutdown(gracePeriod: .seconds(100))
            let goodbye = try await client.next().goodbye
            #expect(goodbye.code == .draining)
            #expect(goodbye.pauseMilliseconds <= 700)
            release.signal()
            #expect(try await client.next().urgentResponse.serial == 1)
            #expect(!welcome.resumed)
            // The client leaves.
            try client.socket.finish()
            #expect(try await client.isEnded())
            await down
            #expect(server.sessions.isEmpty)
        }
    }

    /// Pushes that exceed the window are sent before the goodbye.
    @Test func pushesThatWaitAreSentBeforeTheGoodbye() async throws {
        let inDoubt = Notes<SessionMessageInDoubt>()
        try await withServer(
            echo,
            configure: { $0.whenInDoubt = { _, messages in messages.forEach(inDoubt.add) } },
            { server, _ in
                let client = try await RawSessionClient.connect(to: server)
                // The window has room for the method's name and two pushes.
                _ = try await client.hello { $0.terms.windowFrames = 3 }
                let session = try #require(server.sessions.first)
                for number in 1...4 { try await session.push("t.T/News", TestMessage(number: number)) }
                async let down: Void = server.shutdown(gracePeriod: .seconds(100))
                func expectPush(_ number: Int) async throws {
                    #expect(try await client.next().push.payload == TestMessage(number: number).serializedBytes())
                }
                for number in 1...2 { try await expectPush(number) }
                try await client.acknowledge(ordinary: 3)
                for number in 3...4 { try await expectPush(number) }
                #expect(try await client.next().goodbye.code == .draining)
                try await client.acknowledge(ordinary: 4)
                try client.socket.finish()
                #expect(try await client.isEnded())
                await down
            }
        )
        // The outcome of the last push is unknown.
        #expect(inDoubt.all.map(\.method) == ["t.T/News"])
        #expect(inDoubt.all.map(\.outcome) == [.inDoubt])
        #expect(inDoubt.all.map(\.payload) == [try TestMessage(number: 4).serializedBytes()])
    }

    @Test func aSessionThatIsNotComeBackForIsInDoubt() async throws {
        let inDoubt = Notes<SessionMessageInDoubt>()
        try await withServer(
            echo,
            configure: { $0.whenInDoubt = { _, messages in messages.forEach(inDoubt.add) } },
            { server, clock in
                let client = try await RawSessionClient.connect(to: server)
                // The window has room for the method's name and one push.
                _ = try await client.hello { $0.terms.windowFrames = 2 }
                let session = try #require(server.sessions.first)
                for number in 1...2 { try await session.push("t.T/News", TestMessage(number: number)) }
                _ = try await client.next()
                try client.socket.reset()
                let end = clock.now + .seconds(120)
                try await until { clock.nextWakeUp == end }
                clock.advance(to: end)
                try await until { inDoubt.count == 2 }
            }
        )
        #expect(inDoubt.all.map(\.outcome) == [.inDoubt, .unsent])
    }

    // MARK: Letting in

    @Test func aFailureOfTheServersIsTriedAgain() async throws {
        struct Down: Error {}
        let errors: [(any Error, SessionGoodbye.Code)] = [
            (Down(), .draining), (SessionStatus(.unavailable), .draining), (CancellationError(), .draining),
            (SessionStatus(.unauthenticated), .refused), (SessionStatus(.permissionDenied), .refused),
        ]
        for (error, code) in errors {
            try await withServer(
                echo,
                configure: {
                    $0.authenticate = { _ in throw error }
                    $0.drainSpread = .milliseconds(300)
                },
                { server, _ in
                    let client = try await RawSessionClient.connect(to: server)
                    let goodbye = try await client.hello().goodbye
                    #expect(UInt32(goodbye.code.rawValue) == code.rawValue, "\(error)")
                    #expect(goodbye.pauseMilliseconds <= 300)
                    #expect(try await client.isEnded())
                }
            )
        }
    }

    @Test func aClientThatLeavesDuringAuthenticationIsForgotten() async throws {
        for way in 0..<4 {
            let (begun, cancelled) = (Event(), Event())
            try await withServer(
                echo,
                configure: {
                    $0.authenticate = { _ in
                        begun.signal()
                        try? await Event().wait()
                        cancelled.signal()
                        // The handler ignores the cancellation.
                        return nil
                    }
                },
                { server, clock in
                    let client = try await RawSessionClient.connect(to: server)
                    try await client.sayHello {
                        // A goodbye for a session is kept, but a server that cannot decide does not wait because of it.
                        guard way == 3 else { return }
                        $0.sessionID = [UInt8](repeating: 1, count: 16)
                        $0.token = [UInt8](repeating: 2, count: 16)
                    }
                    try await begun.wait()
                    if way == 0 { try client.socket.reset() }
                    if way == 1 || way == 3 { try await client.send(.with { $0.goodbye.code = .closed }) }
                    if way >= 2 { clock.advance(by: .seconds(10)) }
                    try await cancelled.wait()
                    try await until { server.state.withLockedValue { $0.connections.isEmpty } }
                    #expect(server.sessions.isEmpty)
                }
            )
        }
    }

    /// The goodbye counts, although the client leaves before it is authenticated.
    @Test func aClientThatComesBackToSayGoodbyeEndsItsSession() async throws {
        let (begun, release, ended) = (Event(), Event(), Event())
        try await withServer(
            echo,
            configure: {
                $0.authenticate = { candidate in
                    if candidate.isReturning {
                        begun.signal()
                        try await release.wait()
                    }
                    return nil
                }
                $0.whenEnded = { _ in ended.signal() }
            },
            { server, _ in
                let first = try await RawSessionClient.connect(to: server)
                let welcome = try await first.hello().welcome
                try first.socket.reset()
                let second = try await RawSessionClient.connect(to: server)
                try await second.sayHello {
                    ($0.sessionID, $0.token, $0.attempt) = (welcome.sessionID, welcome.token, 2)
                }
                try await second.send(.with { $0.goodbye.code = .closed })
                try await begun.wait()
                try second.socket.finish()
                release.signal()
                try await ended.wait()
                #expect(server.sessions.isEmpty)
            }
        )
    }

    @Test func aPingWhileTheServerDecides() async throws {
        let (begun, release) = (Event(), Event())
        try await withServer(
            echo,
            configure: {
                $0.authenticate = { _ in
                    begun.signal()
                    try await release.wait()
                    return nil
                }
            },
            { server, _ in
                let client = try await RawSessionClient.connect(to: server)
                try await client.sayHello()
                try await begun.wait()
                try await client.send(.with { $0.ping.number = 3 })
                #expect(try await client.next().pong.number == 3)
                release.signal()
                #expect(try await client.next().welcome.version == 1)
            }
        )
    }

    @Test func aSessionBelongsToWhoBeganIt() async throws {
        try await withServer(
            echo,
            configure: { $0.authenticate = { SessionIdentity($0.metadata["user"] ?? "") } },
            { server, _ in
                let first = try await RawSessionClient.connect(to: server)
                let welcome = try await first.hello { $0.metadata["user"] = "anna" }.welcome
                for (user, isResumed) in [("berta", false), ("anna", true)] {
                    let client = try await RawSessionClient.connect(to: server)
                    let answer = try await client.resume(welcome) {
                        $0.metadata["user"] = user
                    }.welcome
                    #expect(answer.resumed == isResumed)
                    #expect(server.session(named: user)?.identity?.subject == user)
                }
            }
        )
    }

    @Test func aHelloThatIsTooLong() async throws {
        try await withServer(echo) { server, _ in
            for (length, isWelcome) in [(16 << 10, true), ((16 << 10) + 1, false)] {
                let client = try await RawSessionClient.connect(to: server)
                let answer = try await client.hello { $0.name = String(repeating: "n", count: length) }
                if isWelcome {
                    #expect(answer.welcome.version == 1)
                } else {
                    #expect(answer.goodbye.code == .violation)
                }
            }
            // The encoded size of metadata counts: the entry has 3 bytes of tag and length, its key 5, its value 3 in
            // addition.
            for (length, isWelcome) in [((16 << 10) - 11, true), ((16 << 10) - 10, false)] {
                let client = try await RawSessionClient.connect(to: server)
                let answer = try await client.hello { $0.metadata = ["key": String(repeating: "v", count: length)] }
                #expect(isWelcome ? answer.welcome.version == 1 : answer.goodbye.code == .violation)
            }
        }
    }

    /// Handlers of ended sessions take memory as sessions do.
    @Test func handlersThatOutliveTheirSessionsHaveAPlace() async throws {
        let (begun, release) = (Event(), Event())
        let method = SessionMethod.push("t.T/Slow") { (_: TestMessage, _) in
            begun.signal()
            try await release.wait()
        }
        try await withServer(method, configure: { $0.maximumSessionCount = 1 }) { server, _ in
            let first = try await RawSessionClient.connect(to: server)
            _ = try await first.hello()
            try await first.push("t.T/Slow")
            try await begun.wait()
            try await first.send(.with { $0.goodbye.code = .closed })
            #expect(try await first.isEnded())
            try await until { server.sessions.isEmpty }
            let second = try await RawSessionClient.connect(to: server)
            #expect(try await second.hello().goodbye.code == .full)
            release.signal()
            try await until { server.state.withLockedValue { $0.sessions.isEmpty } }
            #expect(try await RawSessionClient.connect(to: server).hello().welcome.version == 1)
        }
    }

    @Test func shuttingDownEndsWithTheGracePeriod() async throws {
        let cancelled = Event()
        let begun = Event()
        let method = SessionMethod.unary("t.T/Wait") { (message: TestMessage, _) in
            begun.signal()
            try? await Event().wait()
            cancelled.signal()
            return message
        }
        try await withServer(method) { server, clock in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await client.ask("t.T/Wait")
            try await begun.wait()
            let down = Notes<Void>()
            let shutdown = Task {
                await server.shutdown(gracePeriod: .seconds(5))
                down.add(())
            }
            #expect(try await client.next().goodbye.code == .draining)
            try await until {
                clock.advance(by: .seconds(5))
                return down.count == 1
            }
            try await cancelled.wait()
            await shutdown.value
        }
    }
}
