package import ArgumentParser
package import LifelineCore
package import LifelineProtos
package import Logging

/// The common options of client and server.
package struct CutTraffic: ParsableArguments, Sendable {
    @Option(help: "The number of messages, both ways together.") package var messages: Int
    @Option(help: "The file for the record of processed messages.") package var record: String

    package init() {}

    /// The numbers of a flow's messages, in order.
    package func numbers(of flow: CutFlow) -> some Sequence<Int> {
        (0..<flow.count(of: messages)).lazy.map { $0 + 1 }
    }

    /// Short, so that hundreds of silent connections are given up within minutes: each after 350 ms.
    package static var heartbeat: HeartbeatConfiguration {
        var heartbeat = HeartbeatConfiguration()
        heartbeat.interval = .milliseconds(150)
        heartbeat.timeout = .milliseconds(100)
        heartbeat.allowedMisses = 2
        return heartbeat
    }

    /// Writes errors to standard error, such as a peer that breaks the rules.
    package static func logger(_ name: String) -> Logger {
        Logger(label: name) { label in
            var handler = StreamLogHandler.standardError(label: label)
            handler.logLevel = .warning
            return handler
        }
    }
}

extension CutRecord.Entry {
    /// A received message of a flow.
    package init(_ flow: CutFlow, _ message: Sample_Chat_V1_ChatMessage) {
        // A call and its reply have the same content.
        let sent = flow == .replies ? .calls : flow
        self.init(flow, Int(truncatingIfNeeded: message.nonce), isIntact: sent.isIntact(message))
    }
}
