/// The data that another server needs to continue a session: the frames that the client has not acknowledged, and the
/// progress of both sides. The session is at rest: everything received was processed, and no call runs.
package struct SessionSnapshot: Sendable, Equatable {
    /// A push that was accepted, and waits for credit.
    package struct Push: Sendable, Equatable {
        package let method: String
        /// The encoded fields besides the message.
        package let fields: [UInt8]
        package let payload: [UInt8]
        package let details: LaneSnapshot.Details

        package init(method: String, fields: [UInt8], payload: [UInt8], details: LaneSnapshot.Details) {
            (self.method, self.fields, self.payload, self.details) = (method, fields, payload, details)
        }
    }

    /// A method that this side pushes, and its credit.
    package struct OwnMethod: Sendable, Equatable {
        package let name: String
        package let granted: UInt64
        package let used: UInt64

        package init(name: String, granted: UInt64, used: UInt64) {
            (self.name, self.granted, self.used) = (name, granted, used)
        }
    }

    /// A method of the client, and the credit of its pushes.
    package struct PeerMethod: Sendable, Equatable {
        package let name: String
        package let received: UInt64
        package let told: UInt64

        package init(name: String, received: UInt64, told: UInt64) {
            (self.name, self.received, self.told) = (name, received, told)
        }
    }

    /// The terms of the client.
    package let peerTerms: SessionTerms
    /// The terms of the servers so far.
    package let ownTerms: SessionTerms
    package let ordinary: LaneSnapshot
    package let urgent: LaneSnapshot
    package let waiting: [Push]
    package let methods: [OwnMethod]
    package let peerMethods: [PeerMethod]
    /// The number of frames received in each lane.
    package let received: UInt64
    package let urgentReceived: UInt64
    /// The highest received place that the client has reported in an opening.
    package let peerReceived: UInt64

    package init(
        peerTerms: SessionTerms,
        ownTerms: SessionTerms,
        ordinary: LaneSnapshot,
        urgent: LaneSnapshot,
        waiting: [Push],
        methods: [OwnMethod],
        peerMethods: [PeerMethod],
        received: UInt64,
        urgentReceived: UInt64,
        peerReceived: UInt64
    ) {
        (self.peerTerms, self.ownTerms) = (peerTerms, ownTerms)
        (self.ordinary, self.urgent, self.waiting) = (ordinary, urgent, waiting)
        (self.methods, self.peerMethods) = (methods, peerMethods)
        (self.received, self.urgentReceived, self.peerReceived) = (received, urgentReceived, peerReceived)
    }
}

extension LaneSnapshot.Details {
    var delivery: SessionDelivery {
        if let key { return .replaceable(key: key, timeToLive: timeLeft) }
        return timeLeft.map { .expiring(after: $0) } ?? .reliable
    }
}
