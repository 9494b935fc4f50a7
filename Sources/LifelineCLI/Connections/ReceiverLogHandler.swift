internal import LifelineCore
internal import Logging

/// Prints a receiving server's log entries about single connections as lines for its user.
struct ReceiverLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.notice

    private let isQuiet: Bool

    init(label: String, isQuiet: Bool) {
        self.isQuiet = isQuiet
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        if isQuiet { return }
        let details = metadata.merging(event.metadata ?? [:]) { $1 }
        var text = "\(event.message)"
        // An error of the handler is already in words.
        if let peer = details["remote"], let error = details["error"] {
            text =
                "\(error)" == ConnectionProblem.told.description
                ? "" : "closed the connection of \(peer): \(error)"
        }
        if let count = details["left-out"] {
            text += text.isEmpty ? "\(count) lines were left out" : " (\(count) such lines were left out)"
        }
        if !text.isEmpty { tellStep(text) }
    }
}

/// The reason for which the server closed a connection, in words.
struct ConnectionProblem: Error, CustomStringConvertible {
    /// A problem that the user knows already, or need not know.
    static let told = ConnectionProblem(description: "")

    let description: String
}
