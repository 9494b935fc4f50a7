import FaultSupport
import FleetProofSupport
import Lifeline
import LifelineProtos
import Logging

/// The messages of clients and servers: `from` names the sender, and `nonce` is the message's number.
typealias FleetMessage = Sample_Chat_V1_ChatMessage

extension FleetMessage {
    init(from sender: String, _ number: Int) {
        self = .with {
            $0.from = sender
            $0.nonce = UInt64(number)
        }
    }

    /// Clamped, because numbers come from the wire.
    var number: Int { Int(clamping: nonce) }
}

enum FleetMethods {
    /// The method of a server's messages to one session.
    static let tell = "fleet.Proof/Tell"
    /// The method of a server's messages to a group.
    static let push = SessionPushMethod<FleetMessage>("fleet.Proof/Push")
}

extension ClientMethod {
    var name: String {
        switch self {
        case .note: "fleet.Proof/Note"
        case .ask: "fleet.Proof/Ask"
        }
    }
}

enum FleetGroups {
    /// The group that all sessions join automatically.
    static let automatic = "everybody"
    /// The groups of which each client joins one itself.
    static let rooms = (0..<8).map { "rooms/\($0)" }
    static let all = [automatic] + rooms

    static func room(of client: Int) -> String { rooms[client % rooms.count] }
}

/// The clients whose pauses are measured. They receive many messages.
enum FleetSample {
    static func contains(_ client: Int) -> Bool { client % 10 == 0 }

    /// The longest time between two messages of a server to a session of such a client.
    static let interval = Duration.milliseconds(100)
}

extension Logger {
    /// Logs errors only. The losses of servers, sessions and Redis are the proof's own doing.
    static var quiet: Logger {
        var logger = Logger(label: "fleet") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .error
        return logger
    }
}
