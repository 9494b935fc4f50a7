public import Logging

extension World {
    /// Adds lines to the trace in place of the process's log. For the clients and servers of the world.
    public var logger: Logger { Logger(label: "world") { _ in TraceLogHandler(world: self) } }
}

private struct TraceLogHandler: LogHandler {
    weak var world: World?
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        guard let world, world.isCurrent else { return }
        let values = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
        world.note(([event.message.description] + values.map { "\($0.key)=\($0.value)" }).joined(separator: " "))
    }
}
