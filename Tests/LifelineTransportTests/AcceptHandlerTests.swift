import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

@Suite struct AcceptHandlerTests {
    private let channel = EmbeddedChannel()
    private let log = LevelLog()

    private func addHandler(maximumConnections: Int, newcomers: Newcomers? = nil) throws -> AcceptHandler {
        let handler = AcceptHandler(
            maximumConnections: maximumConnections,
            newcomers: newcomers,
            logger: Logger(label: "test") { [log] _ in log },
            whenInactive: {}
        )
        try channel.pipeline.syncOperations.addHandler(handler)
        return handler
    }

    private func accept() {
        channel.pipeline.syncOperations.fireChannelRead(NIOAny(EmbeddedChannel() as any Channel))
    }

    @Test func pausesAtTheLimitAndGoesOnBelowIt() throws {
        let handler = try addHandler(maximumConnections: 2)
        accept()
        #expect(handler.isReading)
        accept()
        #expect(!handler.isReading)
        handler.releaseConnection()
        #expect(handler.isReading)
        #expect(log.levels == [.notice])
    }

    @Test func theOldestNewcomerMakesWayAtTheLimit() throws {
        let newcomers = Newcomers()
        let handler = try addHandler(maximumConnections: 3, newcomers: newcomers)
        let closed = NIOLockedValueBox<[Int]>([])
        let entries = (0..<3).map { number in newcomers.add { closed.withLockedValue { $0.append(number) } } }
        for _ in 0..<3 { accept() }
        #expect(handler.isReading, "somebody can make way")
        #expect(closed.withLockedValue { $0 } == [], "nobody needs to")
        entries[0].leave()
        accept()
        #expect(closed.withLockedValue { $0 } == [1])
        handler.releaseConnection()
        #expect(handler.isReading)
        accept()
        #expect(closed.withLockedValue { $0 } == [1, 2])
        #expect(!handler.isReading, "nobody is left who could make way")
        handler.releaseConnection()
        #expect(!handler.isReading)
        handler.releaseConnection()
        #expect(handler.isReading)
    }

    /// A connection is accepted before its own loop has added it.
    @Test func newcomersThatComeLateMakeWay() throws {
        let newcomers = Newcomers()
        let handler = try addHandler(maximumConnections: 2, newcomers: newcomers)
        let closed = NIOLockedValueBox<[Int]>([])
        func add(_ number: Int) -> Newcomer { newcomers.add { closed.withLockedValue { $0.append(number) } } }
        accept()
        accept()
        #expect(!handler.isReading, "nobody can make way yet")
        let first = add(0)
        channel.embeddedEventLoop.run()
        #expect(handler.isReading && closed.withLockedValue { $0 } == [])
        // The second one sends before the third is accepted. So the third has no slot until the fourth can make way.
        first.leave()
        accept()
        #expect(!handler.isReading)
        _ = add(1)
        channel.embeddedEventLoop.run()
        #expect(closed.withLockedValue { $0 } == [1])
    }

    /// Their handlers may never return.
    @Test func onlySoManyMakeWayAtOnce() throws {
        let newcomers = Newcomers()
        let handler = try addHandler(maximumConnections: 1, newcomers: newcomers)
        for _ in 0..<100 { _ = newcomers.add {} }
        var count = 0
        while handler.isReading, count < 100 {
            accept()
            count += 1
        }
        #expect(count == 17)
    }

    @Test func aLimitBelowOneCountsAsOne() throws {
        let handler = try addHandler(maximumConnections: 0)
        #expect(handler.isReading)
        accept()
        #expect(!handler.isReading)
    }

    /// A read continues until it has accepted its maximum, whatever is set meanwhile.
    @Test func noReadAcceptsMoreThanThereIsRoomFor() throws {
        func acceptsPerRead() throws -> UInt? { try channel.syncOptions?.getOption(.maxMessagesPerRead) }
        let handler = try addHandler(maximumConnections: 6)
        #expect(try acceptsPerRead() == 4, "as many as a read accepts at most")
        accept()
        accept()
        #expect(try acceptsPerRead() == 4)
        accept()
        #expect(try acceptsPerRead() == 3)
        for _ in 0..<3 { accept() }
        #expect(!handler.isReading)
        #expect(try acceptsPerRead() == 1, "NIO takes no 0")
        handler.releaseConnection()
        #expect(handler.isReading)
        #expect(try acceptsPerRead() == 1)
        for _ in 0..<5 { handler.releaseConnection() }
        #expect(try acceptsPerRead() == 4)
    }

    @Test func anErrorIsLoggedAndPausesForAMoment() throws {
        let handler = try addHandler(maximumConnections: 2)
        let error = IOError(errnoCode: 24, reason: "accept")
        channel.pipeline.syncOperations.fireErrorCaught(error)
        channel.pipeline.syncOperations.fireErrorCaught(error)
        #expect(log.levels == [.error, .error])
        #expect(!handler.isReading)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(99))
        #expect(!handler.isReading)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(handler.isReading)
    }

    @Test func theEndOfThePauseRespectsTheLimit() throws {
        let handler = try addHandler(maximumConnections: 1)
        channel.pipeline.syncOperations.fireErrorCaught(IOError(errnoCode: 24, reason: "accept"))
        accept()
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(100))
        #expect(!handler.isReading)
        handler.releaseConnection()
        #expect(handler.isReading)
    }
}

/// Keeps the levels of log lines.
private struct LevelLog: LogHandler {
    private let box = NIOLockedValueBox<[Logger.Level]>([])
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    var levels: [Logger.Level] { box.withLockedValue { $0 } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        box.withLockedValue { $0.append(event.level) }
    }
}
