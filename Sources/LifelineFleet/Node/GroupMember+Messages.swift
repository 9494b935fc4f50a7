internal import LifelineMessages

extension GroupMember {
    init(_ member: Lifeline_Fleet_V1_Member) {
        var attributes: [String: String] = [:]
        for entry in member.attributes { attributes[entry.key] = entry.value }
        self.init(member.name, attributes: attributes)
    }
}

// For engines that keep bytes.
extension GroupMember {
    /// The encoded attributes, for the member's initializer.
    package var encodedAttributes: [UInt8] {
        let message = Lifeline_Fleet_V1_Member.with { message in
            for (key, value) in attributes { message.attributes[key] = value }
        }
        // This cannot fail, because the message is far below every limit.
        return (try? message.serializedBytes()) ?? []
    }

    /// Makes a member; nil if the bytes are not attributes.
    package init?(_ name: String, encodedAttributes bytes: [UInt8]) {
        guard let message = try? Lifeline_Fleet_V1_Member(serializedBytes: bytes) else { return nil }
        self.init(name, attributes: GroupMember(message).attributes)
    }
}

extension PresenceChange {
    /// Returns the change as news for nodes. If it has all members, or is longer than the limit, the news only reports
    /// that there is a change.
    package func encodedNews(limit: Int) -> [UInt8] {
        var news = Lifeline_Fleet_V1_PresenceNews.with {
            $0.node = node
            $0.version = version
        }
        guard let base else { return news.encoded }
        let marker = news.encoded
        news.base = base
        for member in present { news.present.append(Lifeline_Fleet_V1_Member(member)) }
        for name in absent { news.absent.append(name) }
        let bytes = news.encoded
        return bytes.count <= limit ? bytes : marker
    }

    /// Reads news; nil if the bytes are malformed.
    package init?(encodedNews bytes: [UInt8]) {
        guard let news = try? Lifeline_Fleet_V1_PresenceNews(serializedBytes: bytes) else { return nil }
        self.init(
            node: news.node,
            version: news.version,
            base: news.hasBase ? news.base : nil,
            present: news.present.map { GroupMember($0) },
            absent: Array(news.absent)
        )
    }
}

extension Lifeline_Fleet_V1_PresenceNews {
    /// The encoded message. This cannot fail, because strings are valid, and changes are bounded.
    fileprivate var encoded: [UInt8] { (try? serializedBytes()) ?? [] }
}

extension Lifeline_Fleet_V1_Member {
    init(_ member: GroupMember) {
        self.init()
        name = member.name
        for (key, value) in member.attributes { attributes[key] = value }
    }
}

extension Lifeline_Fleet_V1_PresenceUpdate {
    /// The most members of an update, far below the limit of a frame.
    private static let memberLimit = 500

    /// Returns the updates for an event.
    static func updates(of event: PresenceEvent) -> [Lifeline_Fleet_V1_PresenceUpdate] {
        switch event {
        case .present(let members):
            stride(from: 0, to: max(members.count, 1), by: memberLimit).map { start in
                .with {
                    $0.present = .with { present in
                        for member in members[start...].prefix(memberLimit) {
                            present.members.append(Lifeline_Fleet_V1_Member(member))
                        }
                        present.more = start + memberLimit < members.count
                    }
                }
            }
        case .joined(let member): [.with { $0.joined = .init(member) }]
        case .left(let member): [.with { $0.left = .init(member) }]
        }
    }
}
