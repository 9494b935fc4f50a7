/// How keys and channels are named in Redis: those of a group are in one slot of a cluster, as they have its
/// name in braces.
struct GroupKeys: Sendable {
    private let prefix: String
    private static let channelEnd = "}:news"
    private static let nodeChannelEnd = "}:told"
    private static let presenceChannelEnd = "}:presence"

    init(prefix: String) { self.prefix = prefix + ":{" }

    /// The keys that scripts get.
    func keys(of group: String) -> [RedisArgument] {
        let tag = prefix + Self.escaped(group)
        return [.text(tag + "}:state"), .text(tag + "}:log")]
    }

    /// The key that there is while a node is alive.
    func lease(of node: String) -> RedisArgument { .text(prefix + Self.escaped(node) + "}:lease") }

    /// The key of a session.
    func session(_ id: String) -> RedisArgument { .text(prefix + Self.escaped(id) + "}:session") }

    /// Where a node is told something.
    func channel(ofNode node: String) -> String { prefix + Self.escaped(node) + Self.nodeChannelEnd }

    /// The node of a channel; nil: it is a group's, or another one's.
    func node(ofChannel channel: String) -> String? { name(in: channel, before: Self.nodeChannelEnd) }

    /// The keys that scripts of presence get for the members of a node.
    func presenceKeys(of group: String, at node: String) -> [RedisArgument] {
        let tag = prefix + Self.escaped(group)
        return [.text(tag + "}:nodes"), .text(tag + "}:members:" + node)]
    }

    func channel(of group: String) -> String { prefix + Self.escaped(group) + Self.channelEnd }

    func presenceChannel(of group: String) -> String { prefix + Self.escaped(group) + Self.presenceChannelEnd }

    /// The group of a channel; nil: it is another one's.
    func group(ofChannel channel: String) -> String? { name(in: channel, before: Self.channelEnd) }

    /// The group of a channel that tells of members; nil: it is another one's.
    func group(ofPresenceChannel channel: String) -> String? { name(in: channel, before: Self.presenceChannelEnd) }

    private func name(in channel: String, before end: String) -> String? {
        let (bytes, prefix, end) = (Array(channel.utf8), prefix.utf8, end.utf8)
        guard bytes.count >= prefix.count + end.count, bytes.starts(with: prefix),
            bytes.suffix(end.count).elementsEqual(end)
        else { return nil }
        return Self.unescaped(bytes[prefix.count..<bytes.count - end.count])
    }

    // Byte by byte: characters may be made of several of them, a brace and an accent for example.

    /// Without braces, which would end the name early, and in ASCII, so that names which look alike are not the same for
    /// anybody.
    private static func escaped(_ group: String) -> String {
        // As nearly all are.
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
