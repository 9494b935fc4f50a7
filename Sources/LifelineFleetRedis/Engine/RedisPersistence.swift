internal import LifelineCore

/// The data that Redis has after a restart.
struct RedisPersistence: Sendable, CustomStringConvertible {
    enum Kind: Sendable {
        /// It has all confirmed data.
        case all
        /// It may lack the last writes.
        case some
        /// It has no data.
        case none
    }

    let kind: Kind
    /// The id of this run of the server.
    let run: String

    init(of client: RedisClient) async throws {
        let info = try await client.send(RedisCommand("INFO", "server")).text ?? ""
        let persistence = try await client.send(RedisCommand("INFO", "persistence")).text ?? ""
        let hasLog = Self.value(of: "aof_enabled", in: persistence) == "1"
        let savesPoints = try await Self.setting("save", of: client) != ""
        let synchronizes = try await Self.setting("appendfsync", of: client) == "always"
        kind = hasLog && synchronizes ? .all : hasLog || savesPoints ? .some : .none
        run = Self.value(of: "run_id", in: info) ?? ""
    }

    /// Reads a setting; nil if the user may not read it: then the last writes count as lost.
    private static func setting(_ name: String, of client: RedisClient) async throws -> String? {
        do {
            return try await client.send(RedisCommand("CONFIG", "GET", .text(name))).elements?.last?.text
        } catch let error as RedisError where error.code == .refused {
            return nil
        }
    }

    private static func value(of key: String, in info: String) -> String? {
        info.split(whereSeparator: \.isNewline).first { $0.hasPrefix(key + ":") }
            .map { String($0.dropFirst(key.count + 1)) }
    }

    var description: String {
        switch kind {
        case .all: "it has everything when it is started again (appendfsync always)."
        case .some:
            "when it is started again it may lack what came last, so that groups begin anew then. With appendonly yes and "
                + "appendfsync always they go on."
        case .none: "when it is started again it has nothing, so that groups begin anew then."
        }
    }
}
