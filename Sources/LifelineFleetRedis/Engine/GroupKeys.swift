/// How keys and channels of groups are named in Redis: those of a group are in one slot of a cluster, as they have its
/// name in braces.
struct GroupKeys: Sendable {
    private let prefix: String
    private static let channelEnd = "}:news"

    init(prefix: String) { self.prefix = prefix + ":{" }

    /// The keys that scripts get.
    func keys(of group: String) -> [RedisArgument] {
        let tag = prefix + Self.escaped(group)
        return [.text(tag + "}:state"), .text(tag + "}:log")]
    }

    func channel(of group: String) -> String { prefix + Self.escaped(group) + Self.channelEnd }

    /// The group of a channel; nil: it is another one's.
    func group(ofChannel channel: String) -> String? {
        guard channel.hasPrefix(prefix), channel.hasSuffix(Self.channelEnd) else { return nil }
        return Self.unescaped(channel.dropFirst(prefix.count).dropLast(Self.channelEnd.count))
    }

    /// Without braces, which would end the name early. Redis takes all else.
    private static func escaped(_ group: String) -> String {
        guard group.utf8.contains(where: { [UInt8(ascii: "%"), UInt8(ascii: "{"), UInt8(ascii: "}")].contains($0) })
        else { return group }
        return group.replacing("%", with: "%25").replacing("{", with: "%7B").replacing("}", with: "%7D")
    }

    private static func unescaped(_ name: Substring) -> String {
        String(name.replacing("%7D", with: "}").replacing("%7B", with: "{").replacing("%25", with: "%"))
    }
}
