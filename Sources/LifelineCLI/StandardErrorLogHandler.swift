internal import LifelineCore
internal import Logging

/// Prints a server's log entries about single connections as lines.
struct StandardErrorLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.notice

    init(label: String) {}

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let details = metadata.merging(event.metadata ?? [:]) { $1 }
        let text = details.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        writeErrorLine("lifeline: \(event.message):\(text)".escaped(limit: .max))
    }
}
