internal import LifelineCore
internal import Logging

/// Prints what a server that receives reports about single connections, a line each, in words for its user.
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
        // An error of the handler's is in words already.
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

/// Why a connection of the server was closed, in words.
struct ConnectionProblem: Error, CustomStringConvertible {
    /// One that the user was told of already, or need not know.
    static let told = ConnectionProblem(description: "")

    let description: String
}
