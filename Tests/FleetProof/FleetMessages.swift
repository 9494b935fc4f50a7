import FaultSupport
import FleetProofSupport
import Lifeline
import LifelineProtos
import Logging

/// What clients and servers send: `from` names the sender, and `nonce` is the message's number.
typealias FleetMessage = Sample_Chat_V1_ChatMessage

extension FleetMessage {
    init(from sender: String, _ number: Int) {
        self = .with {
            $0.from = sender
            $0.nonce = UInt64(number)
        }
    }

    /// Numbers come from the wire.
    var number: Int { Int(clamping: nonce) }
}

enum FleetMethods {
    /// From a server to one session.
    static let tell = "fleet.Proof/Tell"
    /// From a server to a group.
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
    /// The group that every session is in by itself.
    static let automatic = "everybody"
    /// Each client joins one of them by itself.
    static let rooms = (0..<8).map { "rooms/\($0)" }
    static let all = [automatic] + rooms

    static func room(of client: Int) -> String { rooms[client % rooms.count] }
}

/// Clients whose pauses are measured: they get many messages.
enum FleetSample {
    static func contains(_ client: Int) -> Bool { client % 10 == 0 }

    /// How often a server sends to a session of such a client, at least.
    static let interval = Duration.milliseconds(100)
}

extension Logger {
    /// Says what must not happen. That servers, sessions and Redis are lost is the proof's own doing.
    static var quiet: Logger {
        var logger = Logger(label: "fleet") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .error
        return logger
    }
}
