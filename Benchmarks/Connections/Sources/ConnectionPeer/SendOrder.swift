/// The messages that a client asks a server to send.
struct SendOrder {
    let payload: Payload
    let limit: SendLimit
}

// The order as bytes, which every contender can carry.
extension SendOrder {
    init(bytes: [UInt8]) throws {
        let command = "from-server \(String(decoding: bytes, as: UTF8.self))"
        guard case .fromServer(let payload, let limit) = PeerCommand(command) else {
            throw UnknownCommand(line: command)
        }
        self.init(payload: payload, limit: limit)
    }

    var bytes: [UInt8] { Array("\(payload.name) \(limit.nanoseconds / 1_000_000) \(limit.messages)".utf8) }
}

/// A number of messages that a server reports.
extension Int {
    init(told bytes: [UInt8]) throws {
        guard let count = Int(String(decoding: bytes, as: UTF8.self)) else { throw WrongEcho() }
        self = count
    }

    var told: [UInt8] { Array("\(self)".utf8) }
}
