package import LifelineCore
package import Logging
internal import NIOConcurrencyHelpers

/// A log that peers cannot fill. Lines with the same message and different metadata are limited to a few in a period
/// (`LineLimit`). Lines below `info` are always written, because a user who asks for them wants to see all.
package struct LimitedLog: Sendable {
    /// Writes to the log.
    package let logger: Logger
    private let limit: NIOLockedValueBox<LineLimit>

    private init(_ logger: Logger, _ limit: LineLimit, now: @escaping @Sendable () -> MonotonicTime) {
        let limit = NIOLockedValueBox(limit)
        var logger = logger
        logger.handler = LimitedLogHandler(base: logger.handler, limit: limit, now: now)
        self.logger = logger
        self.limit = limit
    }

    /// The log of one session: 5 lines of a kind in ten minutes, enough to show what happens to which session, even
    /// with many sessions.
    static func ofSession(_ logger: Logger, now: @escaping @Sendable () -> MonotonicTime) -> LimitedLog {
        LimitedLog(logger, LineLimit(lineCount: 5, period: .seconds(600)), now: now)
    }

    /// The log of a server and its connections: 100 lines of a kind in ten seconds, which a disk and a reader can take.
    package static func ofServer(_ logger: Logger, now: @escaping @Sendable () -> MonotonicTime) -> LimitedLog {
        LimitedLog(logger, LineLimit(lineCount: 100, period: .seconds(10)), now: now)
    }

    /// Writes one line with the number of left-out lines of each kind that were not reported yet, if there are any.
    func logLeftOutCounts() {
        let leftOut = limit.withLockedValue { $0.takeLeftOut() }
        if leftOut.isEmpty { return }
        let counts = leftOut.map { "\($0.count) of \"\($0.kind)\"" }.joined(separator: ", ")
        logger.notice("Lines were left out of the log", metadata: ["left-out": "\(counts)"])
    }
}

private struct LimitedLogHandler: LogHandler {
    var base: any LogHandler
    let limit: NIOLockedValueBox<LineLimit>
    let now: @Sendable () -> MonotonicTime

    var metadata: Logger.Metadata {
        get { base.metadata }
        set { base.metadata = newValue }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { base.metadataProvider }
        set { base.metadataProvider = newValue }
    }

    var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set { base[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        guard event.level >= .info else { return base.log(event: event) }
        let now = now()
        guard case .write(let leftOut) = limit.withLockedValue({ $0.verdict(on: "\(event.message)", now: now) }) else {
            return
        }
        var event = event
        if leftOut > 0 { event.metadata = (event.metadata ?? [:]).merging(["left-out": "\(leftOut)"]) { $1 } }
        base.log(event: event)
    }
}
