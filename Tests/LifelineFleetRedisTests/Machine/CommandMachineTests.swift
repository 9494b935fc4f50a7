import LifelineCore
import Testing

@testable import LifelineFleetRedis

@Suite struct CommandMachineTests {
    // MARK: The way to a connection

    @Test func connectsForTheFirstCommandAndGreets() {
        var end = CommandMachineEnd()
        end.turn()
        #expect(end.takeNotes() == [], "nothing needs a connection")
        end.send()
        #expect(end.takeNotes() == ["connect 1"])
        end.opened()
        #expect(end.takeNotes() == ["write CLIENT SETNAME lifeline, PING"])
        end.receive("+OK")
        #expect(end.takeNotes() == [])
        end.receive("+PONG")
        #expect(end.takeNotes() == ["write GET"])
        end.receive(":7")
        #expect(end.takeNotes() == ["1: 7"])
    }

    @Test func greetsWithUserDatabaseAndName() {
        var end = CommandMachineEnd {
            $0.credentials = RedisCredentials(user: "ann", password: "secret")
            $0.database = 3
            $0.clientName = "node"
        }
        end.send()
        end.opened()
        #expect(
            end.takeNotes() == ["connect 1", "write AUTH ann secret, CLIENT SETNAME node, SELECT 3, PING"]
        )
        end.receive("+OK", "+OK", "+OK", "+PONG")
        #expect(end.takeNotes() == ["write GET"])
    }

    /// The server may admit the user later, so the client continues to try.
    @Test(arguments: [
        ["-WRONGPASS invalid secret"], ["-ERR unknown command 'AUTH', with args beginning with: 'secret'"],
        ["+OK", "+OK", "-ERR DB index is out of range"], ["+OK", "+OK", "+OK", "-NOAUTH Authentication required."],
    ])
    func endsWhatWaitsWhenItIsNotLetIn(replies: [String]) {
        var end = CommandMachineEnd {
            $0.credentials = RedisCredentials(password: "secret")
            $0.database = 99
        }
        end.send()
        end.opened()
        _ = end.takeNotes()
        for reply in replies { end.receive(reply) }
        let notes = end.takeNotes()
        #expect(notes.first == "disconnect" && notes.last?.hasPrefix("1: notAdmitted") == true, "\(notes)")
        #expect(end.machine.connection.lastFailure.map { "\($0)" }?.contains("'secret'") == false)
        end.send()
        end.advanceToDeadline()
        #expect(end.takeNotes() == ["connect 2"])
    }

    @Test func waitsForAServerThatLoads() {
        var end = CommandMachineEnd()
        end.send()
        end.opened()
        end.receive("+OK", "-LOADING Redis is loading the dataset in memory")
        #expect(end.takeNotes().last == "disconnect", "the command goes on waiting")
        end.advanceToDeadline()
        end.connect()
        #expect(end.takeNotes() == ["connect 2", "write CLIENT SETNAME lifeline, PING", "write GET"])
    }

    /// A server with a full disk answers PING with an error, but still reads.
    @Test func takesAServerThatCannotWrite() {
        var end = CommandMachineEnd()
        end.send()
        end.opened()
        end.receive("-ERR unknown command", "-MISCONF Redis is configured to save RDB snapshots")
        #expect(end.takeNotes().last == "write GET")
    }

    @Test func givesAGreetingUpThatIsNotAnswered() {
        var end = CommandMachineEnd { $0.connectTimeout = .seconds(3) }
        end.send()
        end.opened()
        end.advance(.seconds(2))
        _ = end.takeNotes()
        end.advance(.seconds(1))
        #expect(end.takeNotes() == ["disconnect"])
        #expect(end.machine.connection.lastFailure?.code == .connectionFailed)
    }

    @Test func waitsLongerAfterEachFailureAndNeverGivesUp() {
        var end = CommandMachineEnd { $0.backoff.maximumAttempts = 2 }
        end.send(timeout: .seconds(1000))
        var delays: [Duration] = []
        for _ in 0..<12 {
            end.lose()
            let lost = end.now
            end.advanceToDeadline()
            delays.append(end.now - lost)
        }
        #expect(delays.prefix(3) == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
        #expect(delays.last == .seconds(5))
        #expect(end.takeNotes().last == "connect 13")
    }

    @Test func connectsAtOnceAfterAStableConnection() {
        var end = CommandMachineEnd()
        end.send()
        end.connect()
        end.receive(":1")
        for _ in 1...2 {
            end.advanceToDeadline()
            end.receive("+PONG")
        }
        _ = end.takeNotes()
        end.lose()
        #expect(end.takeNotes() == ["disconnect", "connect 2"])
    }

    @Test func ignoresConnectionsOfBefore() {
        var end = CommandMachineEnd()
        end.send()
        end.lose()
        end.advanceToDeadline()
        _ = end.takeNotes()
        end.opened(1)
        end.receive(":1", attempt: 1)
        end.lose(attempt: 1)
        #expect(end.takeNotes() == ["stale"])
    }

    // MARK: Commands

    @Test func matchesRepliesInOrder() {
        var end = CommandMachineEnd()
        for name in ["A", "B", "C"] { end.send(name, turns: false) }
        end.turn()
        end.connect()
        #expect(end.takeNotes().last == "write A, B, C")
        end.receive(":1", "-WRONGTYPE no")
        #expect(end.takeNotes() == ["1: 1", "2: refused WRONGTYPE"])
        end.receive(":3")
        #expect(end.takeNotes() == ["3: 3"])
    }

    @Test func holdsBackWhatIsOverTheLimits() {
        var end = CommandMachineEnd { $0.maximumCommandsInFlight = 2 }
        for _ in 1...4 { end.send(turns: false) }
        end.turn()
        end.connect()
        #expect(end.takeNotes().last == "write GET, GET")
        end.receive(":1")
        #expect(end.takeNotes() == ["write GET", "1: 1"])
        end.receive(":2", ":3")
        #expect(end.takeNotes() == ["write GET", "2: 2", "3: 3"])
    }

    @Test func countsBytesAndRefusesWhatNeverFits() {
        var end = CommandMachineEnd { $0.maximumBytesInFlight = 1024 }
        let half = String(repeating: "x", count: 600)
        end.send(half, turns: false)
        end.send(half, turns: false)
        end.turn()
        end.connect()
        #expect(end.takeNotes().last == "write \(half)")
        end.receive(":1")
        #expect(end.takeNotes() == ["write \(half)", "1: 1"])
        end.send(String(repeating: "x", count: 1024))
        #expect(end.takeNotes() == ["3: commandTooLarge"])
    }

    @Test func cancelsWhatWaitsAndDropsTheReplyOfWhatWasWritten() {
        var end = CommandMachineEnd { $0.maximumCommandsInFlight = 1 }
        let ids = (1...3).compactMap { _ in end.send(turns: false) }
        end.turn()
        end.connect()
        _ = end.takeNotes()
        end.cancel(ids[1])
        end.cancel(ids[0])
        end.cancel(ids[0])
        #expect(end.takeNotes() == ["2: cancelled", "1: cancelled"])
        end.receive(":1")
        #expect(end.takeNotes() == ["write GET"], "the third")
        end.receive(":3")
        #expect(end.takeNotes() == ["3: 3"])
    }

    @Test func tellsWhatMayHaveRunAtATimeout() {
        var end = CommandMachineEnd { $0.maximumCommandsInFlight = 1 }
        end.send(timeout: .seconds(1))
        end.connect()
        end.send(timeout: .seconds(2))
        end.send(timeout: .seconds(3))
        _ = end.takeNotes()
        end.advanceToDeadline()
        #expect(end.takeNotes() == ["1: outcomeUnknown"])
        end.advanceToDeadline()
        #expect(end.takeNotes() == ["2: timedOut"])
        end.receive(":1")
        #expect(end.takeNotes() == ["write GET"], "the late reply is not taken for that of the third")
        end.receive(":3")
        #expect(end.takeNotes() == ["3: 3"])
    }

    @Test func timesOutWithoutAConnectionAndSaysWhyThereIsNone() {
        var end = CommandMachineEnd()
        end.send(timeout: .milliseconds(50))
        end.lose()
        end.advanceToDeadline()
        #expect(end.takeNotes() == ["connect 1", "disconnect", "1: timedOut"])
        #expect(end.machine.nextDeadline == end.now + .milliseconds(50), "it goes on connecting")
    }

    @Test func failsWhatWasWrittenAndKeepsWhatWasNotWhenTheConnectionIsLost() {
        var end = CommandMachineEnd { $0.maximumCommandsInFlight = 2 }
        for name in ["A", "B", "C"] { end.send(name, turns: false) }
        end.turn()
        end.connect()
        _ = end.takeNotes()
        end.lose()
        #expect(end.takeNotes() == ["disconnect", "1: outcomeUnknown", "2: outcomeUnknown"])
        end.advanceToDeadline()
        end.connect()
        #expect(end.takeNotes().last == "write C")
    }

    @Test func givesUpAServerThatRepliesToNothing() {
        var end = CommandMachineEnd()
        end.send()
        end.connect()
        end.receive(":1", ":2")
        #expect(end.takeNotes().suffix(2) == ["disconnect", "1: 1"])
        #expect(end.machine.connection.lastFailure?.code == .protocolViolation)
    }

    @Test func givesUpAServerThatSendsNoRESP() {
        var end = CommandMachineEnd()
        end.send("A", turns: false)
        end.send("B")
        end.connect()
        _ = end.takeNotes()
        end.receive(":1", "HTTP/1.1 400 Bad Request")
        #expect(end.takeNotes() == ["disconnect", "1: 1", "2: outcomeUnknown"])
    }

    // MARK: Signs of life

    @Test func asksASilentServerAndGivesItUp() {
        var end = CommandMachineEnd()
        end.send()
        end.connect()
        end.receive(":1")
        _ = end.takeNotes()
        end.advanceToDeadline()
        #expect(end.takeNotes() == ["write PING"])
        #expect(end.now == MonotonicTime(nanoseconds: 5_000_000_000))
        end.advanceToDeadline()
        #expect(end.takeNotes() == ["write PING"])
        end.advanceToDeadline()
        #expect(end.takeNotes() == ["disconnect"], "it has stood until its last sign of life: there is a pause")
        #expect(end.now == MonotonicTime(nanoseconds: 15_000_000_000))
    }

    @Test func takesAnyReplyForASignOfLife() throws {
        var end = CommandMachineEnd()
        end.send()
        end.connect()
        end.receive(":1")
        end.advanceToDeadline()
        let sent = end.send()
        let id = try #require(sent)
        _ = end.takeNotes()
        end.receive("+PONG")
        #expect(end.takeNotes() == [])
        end.advanceToDeadline()
        #expect(end.takeNotes() == ["write PING"])
        end.cancel(id)
        end.receive(":2", "+PONG")
        #expect(end.takeNotes() == ["2: cancelled"], "a ping behind a command does not hide it")
    }

    // MARK: The end

    @Test func closesOnce() {
        var end = CommandMachineEnd { $0.maximumCommandsInFlight = 1 }
        end.send(turns: false)
        end.send()
        end.connect()
        _ = end.takeNotes()
        end.close()
        #expect(end.takeNotes() == ["disconnect", "1: outcomeUnknown", "2: closed"])
        end.close()
        end.send()
        end.turn()
        end.lose()
        #expect(end.takeNotes() == ["3: closed"])
        #expect(end.machine.nextDeadline == nil)
    }
}
