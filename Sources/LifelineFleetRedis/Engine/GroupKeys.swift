/// The names of keys and channels in Redis. Those of a group are in one slot of a cluster, because they have its name
/// in braces.
struct GroupKeys: Sendable {
    private let prefix: String
    private static let channelEnd = "}:news"
    private static let nodeChannelEnd = "}:told"
    private static let presenceChannelEnd = "}:presence"

    init(prefix: String) { self.prefix = prefix + ":{" }

    /// Returns the keys for scripts.
    func keys(of group: String) -> [RedisArgument] {
        let tag = prefix + Self.escaped(group)
        return [.text(tag + "}:state"), .text(tag + "}:log")]
    }

    /// Returns the key that exists while a node is alive.
    func lease(of node: String) -> RedisArgument { .text(prefix + Self.escaped(node) + "}:lease") }

    /// Returns the key of a session.
    func session(_ id: String) -> RedisArgument { .text(prefix + Self.escaped(id) + "}:session") }

    /// Returns the channel for messages to a node.
    func channel(ofNode node: String) -> String { prefix + Self.escaped(node) + Self.nodeChannelEnd }

    /// Returns the node of a channel; nil for channels of groups, and others.
    func node(ofChannel channel: String) -> String? { name(in: channel, before: Self.nodeChannelEnd) }

    /// Returns the keys for presence scripts and the members of a node.
    func presenceKeys(of group: String, at node: String) -> [RedisArgument] {
        let tag = prefix + Self.escaped(group)
        return [.text(tag + "}:nodes"), .text(tag + "}:members:" + node)]
    }

    func channel(of group: String) -> String { prefix + Self.escaped(group) + Self.channelEnd }

    func presenceChannel(of group: String) -> String { prefix + Self.escaped(group) + Self.presenceChannelEnd }

    /// Returns the group of a channel; nil for other channels.
    func group(ofChannel channel: String) -> String? { name(in: channel, before: Self.channelEnd) }

    /// Returns the group of a presence channel; nil for other channels.
    func group(ofPresenceChannel channel: String) -> String? { name(in: channel, before: Self.presenceChannelEnd) }

    private func name(in channel: String, before end: String) -> String? {
        let (bytes, prefix, end) = (Array(channel.utf8), prefix.utf8, end.utf8)
        guard bytes.count >= prefix.count + end.count, bytes.starts(with: prefix),
            bytes.suffix(end.count).elementsEqual(end)
        else { return nil }
        return Self.unescaped(bytes[prefix.count..<bytes.count - end.count])
    }

    // Byte by byte, because a character may consist of several scalars, a brace and an accent for example.

    /// Escapes a name: without braces, which would end the name early, and in ASCII, so that names that look alike are
    /// never equal.
    private static func escaped(_ group: String) -> String {
        // Nearly all names are plain.
        if group.utf8.allSatisfy(isPlain) { return group }
        return String(
            decoding: group.utf8.flatMap { byte -> [UInt8] in
                if isPlain(byte) { return [byte] }
                return Array("%\(byte < 16 ? "0" : "")\(String(byte, radix: 16, uppercase: true))".utf8)
            },
            as: UTF8.self
        )
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        byte < 0x80 && byte != UInt8(ascii: "%") && byte != UInt8(ascii: "{") && byte != UInt8(ascii: "}")
    }

    private static func unescaped(_ name: ArraySlice<UInt8>) -> String {
        var bytes: [UInt8] = []
        var rest = name
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%"),
                let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else {
                bytes.append(byte)
                continue
            }
            bytes.append(code)
            rest = rest.dropFirst(2)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
