import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

@Suite struct AcceptHandlerTests {
    private let channel = EmbeddedChannel()
    private let log = LevelLog()

    private func addHandler(maximumConnections: Int) throws -> AcceptHandler {
        let handler = AcceptHandler(
            maximumConnections: maximumConnections,
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

    @Test func aLimitBelowOneCountsAsOne() throws {
        let handler = try addHandler(maximumConnections: 0)
        #expect(handler.isReading)
        accept()
        #expect(!handler.isReading)
    }

    /// A read goes on until it has accepted as many as it may, whatever is set meanwhile.
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

/// Keeps the levels of what is logged.
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
