package import Logging
internal import NIOConcurrencyHelpers

/// Keeps log lines.
package final class TestLog: Sendable {
    package struct Entry: Sendable {
        package let level: Logger.Level
        /// The message and its metadata.
        package let text: String
    }

    private let log = NIOLockedValueBox<[Entry]>([])

    package init() {}

    package var entries: [Entry] { log.withLockedValue { $0 } }

    package var logger: Logger { Logger(label: "test") { _ in Handler(log: self) } }

    private struct Handler: LogHandler {
        let log: TestLog
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let text = "\(event.message) \(event.metadata ?? [:])"
            log.log.withLockedValue { $0.append(Entry(level: event.level, text: text)) }
        }
    }
}
