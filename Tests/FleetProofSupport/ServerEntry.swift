/// A line in the record of a server. The file survives the kill of its process.
package enum ServerEntry: Hashable, Sendable {
    /// A handler has processed a client's message, at a time in nanoseconds.
    case processed(ClientMethod, client: Int, number: Int, time: Int64)
    /// A push to a client's session was accepted.
    case told(sender: String, client: Int, session: String, number: Int)
    /// The engine has a message to a group.
    case pushed(sender: String, group: String, number: Int)
    /// The engine may have a message to a group: the push failed with an error that says so.
    case doubted(sender: String, group: String, number: Int)
    /// A session has begun, at a time in nanoseconds.
    case opened(server: String, time: Int64)

    package var line: String {
        switch self {
        case .processed(let method, let client, let number, let time): "\(method.rawValue) \(client) \(number) \(time)"
        case .told(let sender, let client, let session, let number): "told \(sender) \(client) \(session) \(number)"
        case .pushed(let sender, let group, let number): "pushed \(sender) \(group) \(number)"
        case .doubted(let sender, let group, let number): "doubted \(sender) \(group) \(number)"
        case .opened(let server, let time): "opened \(server) \(time)"
        }
    }

    /// Reads a line; nil if it is malformed.
    package init?(line: Substring) {
        let words = line.split(separator: " ")
        guard words.count >= 3, let last = Int64(words[words.count - 1]) else { return nil }
        switch (words[0], words.count) {
        case ("note", 4), ("ask", 4):
            guard let method = ClientMethod(rawValue: String(words[0])), let client = Int(words[1]),
                let number = Int(words[2])
            else { return nil }
            self = .processed(method, client: client, number: number, time: last)
        case ("told", 5):
            guard let client = Int(words[2]) else { return nil }
            self = .told(sender: String(words[1]), client: client, session: String(words[3]), number: Int(last))
        case ("pushed", 4): self = .pushed(sender: String(words[1]), group: String(words[2]), number: Int(last))
        case ("doubted", 4): self = .doubted(sender: String(words[1]), group: String(words[2]), number: Int(last))
        case ("opened", 3): self = .opened(server: String(words[1]), time: last)
        default: return nil
        }
    }
}
