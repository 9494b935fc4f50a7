internal import Lifeline
internal import LifelineMessages

extension Lifeline_Fleet_V1_GroupMessage {
    /// - Throws: `badMessage` for what cannot be pushed to a group.
    static func encoded(
        _ method: String,
        payload: [UInt8],
        metadata: SessionMetadata,
        delivery: SessionDelivery
    ) throws(FleetError) -> [UInt8] {
        if delivery.isDurable {
            throw FleetError(
                code: .badMessage,
                message: "A push to a group cannot be durable. Its history keeps it: set FleetConfiguration.history."
            )
        }
        if metadata.keys.contains(where: { $0.hasPrefix("lifeline-") }) {
            throw FleetError(
                code: .badMessage,
                message: "Names of metadata that begin with lifeline- are Lifeline's own. Choose another one."
            )
        }
        do {
            return try Self.with {
                $0.method = method
                $0.payload = payload
                for (key, value) in metadata { $0.metadata[key] = value }
                if delivery != .reliable { $0.delivery = Lifeline_Fleet_V1_Delivery(delivery) }
            }.serializedBytes()
        } catch {
            throw FleetError(code: .badMessage, message: "The message cannot be encoded.", cause: error)
        }
    }

    /// The push of this message to a member.
    ///
    /// - Parameter age: how long ago it was pushed to the group.
    /// - Returns: nil where it is not worth sending any more.
    /// - Throws: `SessionError`: it has more metadata than a push may have.
    func push(_ mark: GroupMark, age: Duration = .zero) throws(SessionError) -> SessionServerEnd.EncodedPush? {
        let timeToLive = delivery.hasMillisecondsToLive ? .milliseconds(delivery.millisecondsToLive) - age : nil
        if let timeToLive, timeToLive <= .zero { return nil }
        var metadata: SessionMetadata = [mark.metadata.key: mark.metadata.value]
        for entry in self.metadata { metadata[entry.key] = entry.value }
        return try SessionServerEnd.EncodedPush(
            method,
            payload: [UInt8](payload),
            metadata: metadata,
            delivery: delivery.delivery(timeToLive: timeToLive, in: mark.group)
        )
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

    fileprivate func delivery(timeToLive: Duration?, in group: String) -> SessionDelivery {
        if atMostOnce { return .atMostOnce }
        // A session's keys are those of its methods, and a method may be pushed to several groups.
        if hasKey { return .replaceable(key: "\(group) \(key)", timeToLive: timeToLive) }
        return timeToLive.map { .expiring(after: $0) } ?? .reliable
    }
}
