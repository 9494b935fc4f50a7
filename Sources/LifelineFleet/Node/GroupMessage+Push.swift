internal import Lifeline
internal import LifelineMessages

extension Lifeline_Fleet_V1_GroupMessage {
    /// - Throws: `badMessage` for a message that cannot be pushed to a group.
    init(
        _ method: String,
        payload: [UInt8],
        metadata: SessionMetadata,
        delivery: SessionDelivery
    ) throws(FleetError) {
        if delivery.isDurable {
            throw FleetError(
                code: .badMessage,
                message: "A push to a group cannot be durable. Its history keeps it: set FleetConfiguration.history."
            )
        }
        if metadata.keys.contains(where: { $0.hasPrefix("lifeline-") }) {
            throw FleetError(
                code: .badMessage,
                message: "Names of metadata that begin with lifeline- are reserved for Lifeline. Choose another one."
            )
        }
        self.init()
        self.method = method
        self.payload = payload
        for (key, value) in metadata { self.metadata[key] = value }
        if delivery != .reliable { self.delivery = Lifeline_Fleet_V1_Delivery(delivery) }
    }

    /// Returns the message for a machine; nil for malformed bytes.
    static func decoded(_ bytes: [UInt8]) -> GroupNode.Machine.Decoded? {
        guard let message = try? Self(serializedBytes: bytes) else { return nil }
        let key = message.delivery.hasKey ? "\(message.method) \(message.delivery.key)" : nil
        return GroupNode.Machine.Decoded(message, key: key)
    }

    /// Returns the push of this message to a member.
    ///
    /// - Parameter age: the time since it was pushed to the group.
    /// - Returns: nil when its time to live is over.
    /// - Throws: `SessionError`: when it has more metadata than a push may have.
    func push(_ mark: GroupMark, age: Duration) throws(SessionError) -> SessionServerEnd.EncodedPush? {
        var metadata: SessionMetadata = [mark.metadata.key: mark.metadata.value]
        for entry in self.metadata { metadata[entry.key] = entry.value }
        guard let delivery = sessionDelivery(mark, age: age) else { return nil }
        return try SessionServerEnd.EncodedPush(
            method,
            payload: [UInt8](payload),
            metadata: metadata,
            delivery: delivery
        )
    }

    /// Returns the delivery to a member; nil when the time to live is over.
    ///
    /// The key is not used: in a session the newer message would take the older one's place, before other messages of
    /// the group.
    private func sessionDelivery(_ mark: GroupMark, age: Duration) -> SessionDelivery? {
        // A message that reports a gap must not be dropped.
        if mark.followsGap { return .reliable }
        if delivery.atMostOnce { return .atMostOnce }
        guard delivery.hasMillisecondsToLive else { return .reliable }
        let timeToLive = .milliseconds(delivery.millisecondsToLive) - age
        return timeToLive > .zero ? .expiring(after: timeToLive) : nil
    }
}

extension Lifeline_Fleet_V1_Delivery {
    fileprivate init(_ delivery: SessionDelivery) {
        self.init()
        if let timeToLive = delivery.timeToLive {
            millisecondsToLive = UInt64(max(timeToLive / .milliseconds(1), 0))
        }
        if let key = delivery.key { self.key = key }
        atMostOnce = delivery.isAtMostOnce
    }
}
