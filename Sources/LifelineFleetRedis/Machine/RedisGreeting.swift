internal import NIOCore

/// The commands that open a connection, written together.
struct RedisGreeting: Sendable {
    enum Step: Sendable {
        case authenticate, name, select
        /// The last step: shows that the server answers commands.
        case ping
    }

    private let commands: [(step: Step, bytes: ByteBuffer)]

    init(_ configuration: RedisConfiguration) {
        var commands: [(Step, RedisCommand)] = []
        if let credentials = configuration.credentials {
            let user = credentials.user.map { [RedisArgument.text($0)] } ?? []
            commands.append((.authenticate, RedisCommand("AUTH", user + [.text(credentials.password)])))
        }
        commands.append((.name, RedisCommand("CLIENT", "SETNAME", .text(configuration.clientName))))
        if configuration.database != 0 {
            commands.append((.select, RedisCommand("SELECT", .number(Int64(configuration.database)))))
        }
        commands.append((.ping, RedisCommand("PING")))
        self.commands = commands.map { ($0.0, $0.1.bytes) }
    }

    var steps: [Step] { commands.map(\.step) }

    var bytes: ByteBuffer {
        var bytes = ByteBuffer()
        for command in commands { bytes.writeImmutableBuffer(command.bytes) }
        return bytes
    }
}

extension RedisGreeting.Step {
    /// Returns the reason why a reply to the step makes the connection unusable; nil if it does not.
    func failure(_ reply: RedisValue) -> RedisError? {
        guard case .error(let error) = reply else { return nil }
        switch self {
        case .authenticate, .select:
            return RedisError(error, opening: self)
        case .name, .ping:
            // The name is only for people. A server that cannot write, for example, answers even a ping with an error.
            return ["NOAUTH", "LOADING"].contains(error.code) ? RedisError(error, opening: self) : nil
        }
    }
}
